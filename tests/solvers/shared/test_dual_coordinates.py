"""What dual coordinate methods share: w belongs to alpha, within the rounding that is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_point
from certsvm.problem.memory import Problem
from certsvm.solvers import DCD, Options, Solver, WorkingSet
from certsvm.solvers.shared.dual_coordinates import DualCoordinateRun
from tests.problems import Case, cases, exact_dot, noisy, squared_distance

both = pytest.mark.parametrize("solver", [DCD(), WorkingSet()], ids=lambda s: s.label)


def start(solver: Solver, problem: Problem, seed: int = 0) -> DualCoordinateRun:
    run = solver.start(problem, Options(np.random.default_rng(seed), keep_alpha=True))
    assert isinstance(run, DualCoordinateRun)
    return run


@both
@given(case=cases(), seed=st.integers(0, 2**32 - 1), passes=st.integers(1, 20))
def test_w_is_the_sum_over_alpha(solver: Solver, case: Case, seed: int, passes: int) -> None:
    run = start(solver, case.problem(), seed)
    for _ in range(passes):
        run.epoch()
    expected = [exact_dot(column, run._alpha) for column in case.patterns().T]
    assert squared_distance(run._w, expected) <= run._rounding**2


@both
def test_pieces_of_an_order_are_one_order(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that stay active, w and alpha do not depend on where the order is cut."""
    whole, cut = start(solver, noisy()), start(solver, noisy())
    monkeypatch.setattr(
        cut._problem, "slices", lambda order: (order[i : i + 7] for i in range(0, order.size, 7))
    )
    for _ in range(15):
        whole.epoch()
        cut.epoch()
    np.testing.assert_array_equal(whole._w, cut._w)
    np.testing.assert_array_equal(whole._alpha, cut._alpha)
    for name in ("_order", "_active"):
        rows = getattr(whole, name, None)
        if isinstance(rows, np.ndarray):
            np.testing.assert_array_equal(rows, getattr(cut, name))


@both
def test_every_update_adds_to_the_rounding(solver: Solver) -> None:
    run = start(solver, noisy(C=1.0))
    assert run._rounding == 0.0
    updates = run.epoch().updates or 0
    assert updates > 0
    assert run._rounding >= 3.0 * 2.0**-53 * updates * float(np.linalg.norm(run._w))


@both
def test_w_can_be_computed_anew(solver: Solver) -> None:
    run = start(solver, noisy())
    for _ in range(50):
        run.epoch()
    before, rounding = run._w.copy(), run._rounding
    run._compute_w()
    fresh = dual_point(noisy(), run._alpha, "a test")
    np.testing.assert_array_equal(run._w, fresh.w)
    assert run._rounding == fresh.w_rounding < rounding
    assert np.linalg.norm(before - run._w) <= rounding + run._rounding
