"""DCD first, Newton when that has cost as much."""

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm.problem import Problem
from certsvm.rows import Rows
from certsvm.solvers import DCD, Auto, Options
from certsvm.solvers.auto import patience
from certsvm.training import train


def noisy(C: float) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 10))
    return Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(500) > 0, 1, -1), C=C)


def test_an_easy_problem_stays_with_dcd() -> None:
    result = train(noisy(1e-3), Auto(), tol=0.01, seed=0)
    assert result.solver == "dcd"
    same = train(noisy(1e-3), DCD(), tol=0.01, seed=0)
    np.testing.assert_array_equal(result.w, same.w)


def test_a_hard_problem_goes_over_to_newton() -> None:
    problem = noisy(1e3)
    result = train(problem, Auto(), tol=1e-6, seed=0)
    assert result.solver == "dcd, then newton"
    assert result.certificate.met
    assert result.passes < patience(problem) + 60


def test_the_switch_keeps_alpha() -> None:
    problem = noisy(10.0)
    run = Auto().start(problem, Options(np.random.default_rng(0)))
    duals = []
    for _ in range(patience(problem) + 3):
        run.epoch()
        point = run.dual()
        assert point is not None
        duals.append(point.alpha_sum - 0.5 * float(point.w @ point.w))
    assert duals[-1] >= 0.9 * duals[-4]


@pytest.mark.parametrize("columns", [6000, 100_000])
def test_many_columns_stay_with_dcd(columns: int) -> None:
    X = sp.random(50, columns, density=0.01, format="csr", random_state=0)
    problem = Problem(Rows(X), np.where(np.arange(50) % 2, 1, -1), C=100)
    assert patience(problem) == -1
    assert train(problem, Auto(), tol=1e-8, max_iter=50, seed=0).solver == "dcd"


def test_dearer_columns_mean_more_patience() -> None:
    rng = np.random.default_rng(0)
    few, many = (
        patience(Problem(Rows(rng.standard_normal((200, d))), np.ones(200))) for d in (5, 200)
    )
    assert 0 < few < many
