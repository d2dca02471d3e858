"""SGD-s: the published sequence, and what weights mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers import Options, SGDm, SGDs, Start
from certsvm.training.loop import train
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)
AS_PUBLISHED: dict[str, Any] = {"windows": 0, "shuffled": False}


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


def assert_follows_the_paper(solver: SGDs, case: Case, seed: int, *, multiple: bool) -> None:
    run = solver.start(case.problem(), Options(np.random.default_rng(seed)))
    paper = Paper(case, seed, multiple)
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


@given(case=cases(dyadic=True, weighted=False), seed=seeds)
def test_the_published_sequence(case: Case, seed: int) -> None:
    assert_follows_the_paper(SGDs(**AS_PUBLISHED), case, seed, multiple=False)


@pytest.mark.parametrize("make", [SGDs, SGDm])
def test_the_improvements_leave_the_sequence_alone(make: type[SGDs]) -> None:
    runs = [
        s.start(noisy(), Options(np.random.default_rng(5))) for s in (make(), make(**AS_PUBLISHED))
    ]
    for _ in range(20):
        ours, paper = (run.epoch() for run in runs)
        assert (ours.epochs, ours.margin_errors) == (paper.epochs, paper.margin_errors)
        np.testing.assert_array_equal(next(runs[0].candidates()), next(runs[1].candidates()))


@pytest.mark.parametrize("solver", [SGDs(), SGDm()], ids=repr)
def test_a_warm_start_is_certified_too(solver: SGDs) -> None:
    """The first window begins at the start, whatever w that is."""
    problem = noisy()
    cold = train(problem, solver, tol=0.05, seed=0)
    warm = train(
        problem, solver, tol=0.01, seed=1, start=Start(cold.w, cold.epochs), keep_alpha=True
    )
    low = train(problem, SGDs(), tol=1e-3, seed=0, max_iter=10_000).certificate
    assert warm.certificate.met
    assert warm.certificate.dual <= low.primal
    assert warm.alpha is not None
    assert (warm.alpha <= problem.C).all()


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


@given(case=cases(weighted=True), seed=seeds)
def test_weights_and_c_are_one_quantity(case: Case, seed: int) -> None:
    """Doubling all weights and halving C changes nothing."""
    assert case.weights is not None
    other = case._replace(weights=2 * case.weights, C=case.C / 2)
    a, b = (train(c.problem(), SGDs(), tol=0.0, seed=seed, max_iter=10) for c in (case, other))
    np.testing.assert_array_equal(a.w, b.w)


@given(case=cases(weighted=True), seed=seeds)
def test_rows_without_weight_are_absent(case: Case, seed: int) -> None:
    assert case.weights is not None
    kept = case.weights > 0
    without = case._replace(X=case.X[kept], labels=case.labels[kept], weights=case.weights[kept])
    a, b = (train(c.problem(), SGDm(), tol=0.0, seed=seed, max_iter=5) for c in (case, without))
    np.testing.assert_allclose(a.w, b.w, rtol=1e-12)
    np.testing.assert_allclose(a.certificate.dual, b.certificate.dual, rtol=1e-12)


@pytest.mark.parametrize(
    "arguments",
    [{"f": 0.0}, {"windows": -1}, {"precision": "half"}],
)
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"SGDs: {next(iter(arguments))} must be"):
        SGDs(**arguments)
