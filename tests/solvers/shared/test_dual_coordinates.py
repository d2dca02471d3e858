"""What dual coordinate methods share: w belongs to alpha, within the rounding that is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_point
from certsvm.problem.memory import Problem
from certsvm.solvers import DCD, Options, Solver, WorkingSet
from certsvm.solvers.shared.dual_coordinates import DualCoordinateRun, sweep
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


@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_the_compiled_sweep_does_what_the_python_text_says(case: Case, seed: int) -> None:
    problem = case.problem()
    rng = np.random.default_rng(seed)
    box = problem.C * problem.weights
    start = box * rng.choice([0.0, 0.3, 1.0], box.size)
    results = []
    for function in (sweep, sweep.py_func):
        alpha, order = start.copy(), problem.active.copy()
        w = dual_point(problem, alpha, "a test").w
        sums = function(
            problem.loss, problem.rows.arrays, problem.signed_weights, problem.rows.squared_norms,
            problem.C, 1.3, 2.0, -0.2, 0.1, order, alpha, w,
        )  # fmt: skip
        results.append((sums, order[: sums[0]], alpha, w))
    (sums, order, alpha, w), (sums2, order2, alpha2, w2) = results
    np.testing.assert_allclose(sums, sums2, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(order, order2)
    np.testing.assert_allclose(alpha, alpha2, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(w, w2, rtol=1e-9, atol=1e-9)
