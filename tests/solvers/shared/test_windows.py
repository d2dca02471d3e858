"""Windowed certificates: feasible, and better than those of all passes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers import Options, SGDm, SGDs
from certsvm.solvers.shared.growing_margin import GrowingMargin
from certsvm.solvers.shared.windows import Windows
from certsvm.training.loop import train
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("solver", [SGDs(), SGDm()], ids=repr)
@given(case=cases(), seed=seeds)
def test_every_window_is_feasible(solver: SGDs, case: Case, seed: int) -> None:
    problem = case.problem()
    run = solver.start(problem, Options(np.random.default_rng(seed), keep_alpha=True))
    box = case.C * case.row_weights()
    for _ in range(25):
        run.epoch()
        point = run.dual()
        assert point is not None
        assert point.alpha is not None
        alpha = point.alpha()
        assert (alpha >= 0).all()
        assert (alpha <= box * (1 + 1e-15)).all()
        np.testing.assert_allclose(alpha.sum(), point.alpha_sum, rtol=1e-12)
        np.testing.assert_allclose(case.patterns().T @ alpha, point.w, rtol=1e-9, atol=1e-12)


@given(case=cases(), seed=seeds)
def test_windows_never_do_worse_than_all_passes(case: Case, seed: int) -> None:
    runs = [
        solver.start(case.problem(), Options(np.random.default_rng(seed)))
        for solver in (SGDs(windows=50), SGDs(windows=0))
    ]
    for _ in range(20):
        values = []
        for run in runs:
            run.epoch()
            point = run.dual()
            assert point is not None
            values.append(dual_bound(point)[0].value)
        assert values[0] >= values[1] - 1e-9 * abs(values[1]) - 1e-12


def test_windows_certify_sooner() -> None:
    problem = noisy(2000, 20)
    passes = [
        train(problem, solver, tol=0.01, seed=0, max_iter=5000).passes
        for solver in (SGDs(), SGDs(windows=0))
    ]
    assert passes[0] < passes[1] / 2


def test_snapshots_are_few_and_geometrically_spaced() -> None:
    state = GrowingMargin(noisy())
    windows = Windows(state, 4)
    times: set[int] = set()
    for T in range(1, 101):
        state.present(state.problem.active)
        windows.observe(T)
        kept = [snapshot.T for snapshot in windows._snapshots]
        assert len(kept) <= 5
        assert kept == sorted(kept)
        times.update(kept)
    ordered = sorted(times)[3:]
    assert all(1.5 * a <= b <= 1.5 * a + 1 for a, b in itertools.pairwise(ordered))


def test_without_windows_only_the_start_counts() -> None:
    state = GrowingMargin(noisy())
    windows = Windows(state, 0)
    for T in range(1, 10):
        state.present(state.problem.active)
        windows.observe(T)
        assert windows.best(T)[0].T == 0
    assert windows.point(windows.best(9)[0], 9).source == "epochs 1 to 9"


@given(case=cases(), seed=seeds)
def test_the_best_window_has_the_largest_bound(case: Case, seed: int) -> None:
    problem, rng = case.problem(), np.random.default_rng(seed)
    state = GrowingMargin(problem)
    windows = Windows(state, 3)
    for T in range(1, 15):
        state.present(rng.permutation(problem.active))
        best, value = windows.best(T)
        bounds = {since.T: dual_bound(windows.point(since, T))[0] for since in windows._snapshots}
        slack = 1e-9 * (1 + abs(value))
        assert abs(bounds[best.T].value - value) <= slack
        assert all(bound.value <= value + slack for bound in bounds.values())
        windows.observe(T)
