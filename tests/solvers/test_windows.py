"""Windowed certificates: feasible, and better than those of all passes."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers.sgd_s import Windows
from certsvm.solvers.shared.growing_margin import GrowingMargin
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


def test_snapshots_are_few_and_geometrically_spaced() -> None:
    state = GrowingMargin(noisy())
    windows = Windows(state, 4)
    times: set[int] = set()
    for _ in range(100):
        state.present(state.problem.active)
        windows.observe()
        kept = [snapshot.T for snapshot in windows._snapshots]
        assert len(kept) <= 5
        assert kept == sorted(kept)
        times.update(kept)
    ordered = sorted(times)[3:]
    assert all(1.5 * a <= b <= 1.5 * a + 1 for a, b in itertools.pairwise(ordered))


@given(case=cases(), seed=seeds)
def test_the_best_window_has_the_largest_bound(case: Case, seed: int) -> None:
    problem, rng = case.problem(), np.random.default_rng(seed)
    state = GrowingMargin(problem)
    windows = Windows(state, 3)
    for _ in range(1, 15):
        state.present(rng.permutation(problem.active))
        best, value = windows.best()
        bounds = {since.T: dual_bound(windows.point(since))[0] for since in windows._snapshots}
        slack = 1e-9 * (1 + abs(value))
        assert abs(bounds[best.T].value - value) <= slack
        assert all(bound.value <= value + slack for bound in bounds.values())
        windows.observe()
