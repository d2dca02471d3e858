"""SGD-s and SGD-m: the published sequence, and what weights mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers import Options, SGDm, SGDs
from certsvm.training.loop import train
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


@given(case=cases(weighted=False), seed=seeds, data=st.data())
def test_integer_weights_are_repeated_rows(case: Case, seed: int, data: st.DataObject) -> None:
    """Their certified intervals overlap: both contain the optimum."""
    n = len(case.labels)
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    weighted = case._replace(weights=times.astype(float))
    repeated = case._replace(
        X=np.repeat(case.X, times, axis=0), labels=np.repeat(case.labels, times)
    )
    a, b = (
        train(c.problem(), SGDs(), tol=0.02, seed=seed, max_iter=200).certificate
        for c in (weighted, repeated)
    )
    slack = 1e-9 * (a.primal + b.primal)
    assert a.dual <= b.primal + slack
    assert b.dual <= a.primal + slack
