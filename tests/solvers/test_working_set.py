"""Working sets: shrinking, evaluations, the search in the plane."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given

from certsvm import Problem, Rows, train
from certsvm.certificates.primal import primal_bound
from certsvm.solvers import Newton, Options, Solver, WorkingSet
from certsvm.solvers.working_set import WorkingSetRun
from tests.problems import Case, cases, nearly_parallel, noisy, optimum


def text(C: float, rows: int = 2000) -> Problem:
    rng = np.random.default_rng(0)
    X = sp.random(rows, 3000, density=0.01, format="csr", random_state=rng)
    w = rng.standard_normal(3000)
    labels = np.where(X @ w + 0.3 * rng.standard_normal(rows) > 0, 1, -1)
    return Problem(Rows(X), labels, C=C)


def run_on(problem: Problem, target: float = 0.01) -> WorkingSetRun:
    return WorkingSet().start(problem, Options(np.random.default_rng(0), target=target))


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
