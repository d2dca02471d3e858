"""Which solver it takes, and when it changes."""

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Auto, Newton, Options, WorkingSet, auto
from certsvm.solvers.auto import is_small, newton_cost
from certsvm.solvers.base import Start
from certsvm.solvers.second_order import small
from certsvm.training.loop import train


def noisy(C: float, rows: int = 20_000, columns: int = 10) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(rows) > 0, 1, -1), C=C)


def test_a_small_problem_is_solved_to_the_end() -> None:
    problem = noisy(1.0, rows=200)
    assert is_small(problem)
    result = train(problem, Auto(), tol=0.01, seed=0)
    assert (result.solver, result.reason) == ("newton", "target met")
    assert result.certificate.relative_gap < 1e-12
    once = train(problem, Newton(), tol=0.01, seed=0)
    assert once.certificate.relative_gap > 1e-9


def test_more_columns_are_refined_step_by_step() -> None:
    problem = noisy(1.0, rows=200, columns=small.MOST_COLUMNS + 1)
    assert is_small(problem)
    result = train(problem, Auto(), tol=0.01, seed=0)
    assert result.certificate.relative_gap < 1e-12
    assert train(problem, Newton(), tol=0.01, seed=0).passes < result.passes


def test_a_limit_on_passes_cuts_refinement_short() -> None:
    problem = noisy(1.0, rows=200, columns=small.MOST_COLUMNS + 1)
    needed = train(problem, Newton(), tol=0.01, seed=0).passes
    result = train(problem, Auto(), tol=0.01, max_iter=needed + 1, seed=0)
    assert (result.passes, result.reason) == (needed + 1, "target met")


def test_an_easy_problem_stays_with_working_sets() -> None:
    problem = noisy(1e-3)
    assert not is_small(problem)
    result = train(problem, Auto(), tol=0.01, seed=0)
    assert result.solver == "working-set"
    same = train(problem, WorkingSet(), tol=0.01, seed=0)
    np.testing.assert_array_equal(result.w, same.w)


def test_a_hard_problem_goes_over_to_newton() -> None:
    result = train(noisy(1e3), Auto(), tol=1e-6, seed=0)
    assert result.solver == "working-set, then newton"
    assert result.certificate.met
    assert result.passes < 80


@pytest.mark.parametrize(("target", "chosen"), [(1e-3, "working-set"), (1e-6, "newton")])
def test_a_given_alpha_and_a_high_accuracy_begin_with_newton(target: float, chosen: str) -> None:
    problem = noisy(0.1)
    alpha = np.full(problem.m, 0.05)
    for start, expected in ((None, "working-set"), (Start(np.zeros(10), alpha=alpha), chosen)):
        options = Options(np.random.default_rng(0), target=target, start=start)
        assert Auto().start(problem, options).solver_name == expected


def test_rows_that_would_have_to_be_waited_for_are_left_to_newton() -> None:
    """Sorted by class and alike: working sets would visit them in random order."""
    rng = np.random.default_rng(0)
    labels = np.repeat([1.0, -1.0], 200_000)
    X = 0.1 * rng.standard_normal((400_000, 8))
    X[labels > 0, 0] += 1.0
    X[labels < 0, 1] += 1.0
    problem = Problem(Rows(sp.csr_matrix(X)), labels, C=1.0)
    assert train(problem, Auto(), tol=0.01, max_iter=1, seed=0).solver == "newton"
    assert train(problem, Auto(shuffled=True), tol=0.01, max_iter=1, seed=0).solver == "working-set"


def test_many_rows_and_columns_stay_with_working_sets() -> None:
    X = sp.random(5001, 5002, density=0.001, format="csr", random_state=0)
    problem = Problem(Rows(X), np.where(np.arange(5001) % 2, 1, -1), C=100)
    assert newton_cost(problem, 0.01) == np.inf
    assert train(problem, Auto(), tol=1e-8, max_iter=10, seed=0).solver == "working-set"


@pytest.mark.parametrize("columns", [6000, 10_000])
def test_few_rows_are_solved_to_the_end(columns: int) -> None:
    X = sp.random(50, columns, density=0.01, format="csr", random_state=0)
    problem = Problem(Rows(X), np.where(np.arange(50) % 2, 1, -1), C=100)
    result = train(problem, Auto(), tol=0.01, seed=0)
    assert result.solver == "newton"
    assert result.certificate.relative_gap < 1e-8


def test_wide_data_of_different_scales_go_over_to_newton() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 600)) * np.exp(3.0 * rng.standard_normal(600))
    problem = Problem(Rows(X), np.where(rng.random(400) < 0.5, 1, -1))
    assert not is_small(problem)
    result = train(problem, Auto(), tol=1e-5, seed=0)
    assert result.solver == "working-set, then newton"
    assert result.certificate.met


def test_without_room_for_matrices_there_is_no_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sp.random(2000, 2500, density=0.01, format="csr", random_state=0)
    problem = Problem(Rows(X), np.where(np.arange(2000) % 2, 1, -1), C=100)
    assert newton_cost(problem, 1e-8) < np.inf
    monkeypatch.setattr(auto, "available_memory", lambda: 10**7)
    assert newton_cost(problem, 1e-8) == np.inf
