"""Dual coordinates: w belongs to alpha, ascent, and the tolerance of liblinear."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers import DCD, Options, Solver, WorkingSet
from certsvm.solvers.dual_coordinates import DualCoordinateRun
from certsvm.training.loop import train
from certsvm.training.settings import SOLVER_FINISHED
from tests.problems import Case, cases, exact_dot, noisy, squared_distance


@pytest.mark.parametrize("solver", [DCD(), WorkingSet()], ids=lambda s: s.label)
@given(case=cases(), seed=st.integers(0, 2**32 - 1), passes=st.integers(1, 20))
def test_w_is_the_sum_over_alpha(solver: Solver, case: Case, seed: int, passes: int) -> None:
    run = solver.start(case.problem(), Options(np.random.default_rng(seed), keep_alpha=True))
    assert isinstance(run, DualCoordinateRun)
    for _ in range(passes):
        run.epoch()
    expected = [exact_dot(column, run.alpha) for column in case.patterns().T]
    assert squared_distance(run._w, expected) <= run._rounding**2


@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_every_step_raises_the_dual(case: Case, seed: int) -> None:
    run = DCD().start(case.problem(), Options(np.random.default_rng(seed)))
    last = 0.0
    for _ in range(10):
        run.epoch()
        point = run.dual()
        assert point is not None
        value = dual_bound(point, scaled=False)[0].value
        assert value >= last - 1e-12 * (1 + abs(last))
        last = value


def test_the_tolerance_of_liblinear_ends_it() -> None:
    for seed in range(20):
        p = noisy(60, 6, C=10.0)
        result = train(p, DCD(eps=0.05), tol=0.0, max_iter=50_000, seed=seed, keep_alpha=True)
        assert result.reason == SOLVER_FINISHED
        assert result.alpha is not None
        # Over all rows, not only those that stayed active; the last pass moved w meanwhile.
        patterns = p.rows.arrays.values * p.signed_weights[:, None]
        G = patterns @ (result.alpha @ patterns) - 1
        projected = np.where(result.alpha <= 0, np.minimum(G, 0), G)
        projected = np.where(result.alpha >= p.C, np.maximum(G, 0), projected)
        assert projected.max() - projected.min() <= 4 * 0.05
