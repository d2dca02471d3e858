"""Dual coordinates: w belongs to alpha, ascent, liblinear's tolerance, orders, working sets."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm import Problem, Rows, train
from certsvm.certificates.dual import dual_bound
from certsvm.certificates.primal import primal_bound
from certsvm.solvers import DCD, Newton, Options, Solver, WorkingSet
from certsvm.solvers.dual_coordinates import DualCoordinateRun
from certsvm.solvers.order import Order, neighbours_are_alike
from certsvm.solvers.working_set import WorkingSetRun
from certsvm.training.settings import SOLVER_FINISHED
from tests.problems import Case, cases, exact_dot, nearly_parallel, noisy, optimum, squared_distance


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


def text(C: float, rows: int = 2000) -> Problem:
    rng = np.random.default_rng(0)
    X = sp.random(rows, 3000, density=0.01, format="csr", random_state=rng)
    w = rng.standard_normal(3000)
    labels = np.where(X @ w + 0.3 * rng.standard_normal(rows) > 0, 1, -1)
    return Problem(Rows(X), labels, C=C)


def run_on(problem: Problem, target: float = 0.01) -> WorkingSetRun:
    return WorkingSetRun(WorkingSet(), problem, Options(np.random.default_rng(0), target=target))


@pytest.mark.parametrize(("solver", "tol"), [(WorkingSet(), 1e-6), (Newton(), 1e-8)])
@given(case=cases())
def test_they_reach_the_optimum_of_small_problems(solver: Solver, tol: float, case: Case) -> None:
    assume(tol < 1e-6 or not nearly_parallel(case))
    low, high = optimum(case)
    result = train(case.problem(), solver, tol=tol, max_iter=20_000, seed=0)
    assert result.certificate.met
    assert low * (1 - 1e-9) - 1e-12 <= result.certificate.primal <= high * (1 + 2 * tol) + 1e-12


def test_j_comes_from_the_solver_and_is_true() -> None:
    problem = text(C=10.0)
    run = run_on(problem, target=1e-3)
    seen = 0
    for _ in range(40):
        run.epoch()
        point = run.primal()
        if point is None:
            continue
        seen += 1
        w, bound = point
        fresh = primal_bound(problem, w)
        assert bound.low <= fresh.high
        assert fresh.low <= bound.high
        assert bound.rounding < 1e-9 * bound.value
    assert seen >= 3


def test_a_free_intercept_has_a_dual_point_at_the_end() -> None:
    """It takes a pass, so it is made when J is computed, or when training ends."""
    problem = noisy()
    rows = Rows(problem.rows.matrix, intercept_scaling=1.0)
    free = Problem(rows, problem.labels, C=0.1, penalize_intercept=False)
    run = WorkingSet().start(free, Options(np.random.default_rng(0)))
    epoch = run.epoch()
    assert (epoch.dual_estimate is None) == (run.primal() is not None)
    result = train(free, WorkingSet(), tol=0.0, max_iter=1, seed=0, keep_alpha=True)
    assert result.certificate.dual > 0.0
    assert result.alpha is not None
    assert problem.labels @ result.alpha == pytest.approx(0.0, abs=1e-12)


@given(cases(), st.integers(0, 400), st.booleans(), st.integers(0, 2**32 - 1))
def test_an_order_is_a_permutation(case: Case, size: int, shuffled: bool, seed: int) -> None:
    rows = 3 * np.arange(size)
    order = Order(case.problem(), np.random.default_rng(seed), shuffled=shuffled).permuted(rows)
    np.testing.assert_array_equal(np.sort(order), rows)


def large(sorted_by_class: bool) -> Problem:
    rng = np.random.default_rng(0)
    labels = np.repeat([1.0, -1.0], 200_000)
    X = 0.1 * rng.standard_normal((400_000, 8))
    X[labels > 0, 0] += 1.0
    X[labels < 0, 1] += 1.0
    order = np.arange(400_000) if sorted_by_class else rng.permutation(400_000)
    return Problem(Rows(sp.csr_matrix(X[order])), labels[order])


@pytest.mark.parametrize("sorted_by_class", [True, False])
def test_a_sample_tells_whether_neighbours_are_alike(sorted_by_class: bool) -> None:
    problem = large(sorted_by_class)
    for seed in range(5):
        assert neighbours_are_alike(problem, np.random.default_rng(seed)) == sorted_by_class
    order = Order(problem, np.random.default_rng(0))
    assert order.in_order != sorted_by_class
    together = np.mean(np.diff(order.permuted(problem.active)) == 1)
    assert together < 0.01 if sorted_by_class else together > 0.9
