"""SGD-s and SGD-m: the published sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers import Options, SGDm, SGDs
from tests.problems import Case, cases

seeds = st.integers(0, 2**32 - 1)


class Paper:
    """SGD-s, or SGD-m if ``multiple``, as the paper prints it: one presentation at a time."""

    def __init__(self, case: Case, seed: int, multiple: bool) -> None:
        self.patterns = case.patterns()
        self.C = case.C
        self.m = len(self.patterns)
        self.rng = np.random.default_rng(seed)
        self.multiple = multiple
        self.a = np.zeros(self.patterns.shape[1])
        self.t = self.M = self.T = self.passes = 0

    def epoch(self) -> tuple[np.ndarray, int, int, float]:  # type: ignore[type-arg]
        self.passes += 1
        ell = 5 if self.multiple and 0 < self.passes % 9 < 5 else 1
        for k in self.rng.permutation(self.m):
            for _ in range(ell):
                if self.a @ self.patterns[k] <= self.t / (self.C * self.m):
                    self.a = self.a + self.patterns[k]
                    self.M += 1
                self.t += 1
        self.T += ell
        w = self.a * (self.C * self.m) / self.t
        return w, self.M, self.T, self.C * self.M / self.T - 0.5 * float(w @ w)


@pytest.mark.parametrize("solver", [SGDs, SGDm])
@given(case=cases(dyadic=True, weighted=False), seed=seeds)
def test_the_published_sequence(solver: type[SGDs], case: Case, seed: int) -> None:
    as_published = solver(windows=0, shuffled=False)
    run = as_published.start(case.problem(), Options(np.random.default_rng(seed)))
    paper = Paper(case, seed, multiple=solver is SGDm)
    errors = 0
    for _ in range(12):
        w, M, T, L = paper.epoch()
        epoch = run.epoch()
        errors += epoch.margin_errors or 0
        assert (errors, epoch.epochs) == (M, T)
        np.testing.assert_allclose(next(run.candidates()), w, rtol=1e-12)
        point = run.dual()
        assert point is not None
        np.testing.assert_allclose(
            dual_bound(point, scaled=False)[0].value, L, rtol=1e-9, atol=1e-9
        )
