"""What dual coordinate methods share: w belongs to alpha, within the rounding that is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.memory import Problem
from certsvm.solvers import DCD, Options, Solver, WorkingSet
from certsvm.solvers.dual_coordinates import DualCoordinateRun
from tests.problems import Case, cases, exact_dot, squared_distance

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
    expected = [exact_dot(column, run.alpha) for column in case.patterns().T]
    assert squared_distance(run._w, expected) <= run._rounding**2
