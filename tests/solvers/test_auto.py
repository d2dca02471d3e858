"""Which solver it takes, and when it changes."""

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Auto, Newton, WorkingSet, auto
from certsvm.solvers.auto import is_small, newton_cost
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
