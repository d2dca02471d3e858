"""Which solver auto takes, when it changes, and the optimum of small problems."""

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm import Problem, Rows, train
from certsvm.kernels.losses import LOSSES, Loss
from certsvm.solvers import Auto, Newton, WorkingSet, auto


def noisy(C: float, rows: int = 20_000, columns: int = 10) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(rows) > 0, 1, -1), C=C)


def test_a_small_problem_is_solved_to_the_end() -> None:
    problem = noisy(1.0, rows=200)
    result = train(problem, Auto(), tol=0.01, seed=0)
    assert (result.solver, result.reason, result.passes) == ("newton", "target met", 1)
    assert result.certificate.relative_gap < 1e-12
    once = train(problem, Newton(), tol=0.01, seed=0)
    assert once.certificate.relative_gap > 1e-9


def test_an_easy_problem_stays_with_working_sets() -> None:
    problem = noisy(1e-3)
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
    result = train(problem, Auto(), tol=1e-5, seed=0)
    assert result.solver == "working-set, then newton"
    assert result.certificate.met


def test_without_room_for_matrices_there_is_no_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "_ALWAYS_ROOM", 0)
    monkeypatch.setattr(auto, "available_memory", lambda: 1000)
    assert train(noisy(1e3), Auto(), tol=1e-6, max_iter=20, seed=0).solver == "working-set"


def data(rows: int = 120, columns: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, columns)) * rng.uniform(0.1, 5.0, columns)
    return X, np.where(X[:, 0] + rng.standard_normal(rows) > 0.3, 1.0, -1.0)


def gap(problem: Problem) -> float:
    """The relative gap after one pass."""
    return train(problem, Auto(), tol=1e-9, max_iter=1, seed=0).certificate.relative_gap


both_losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@both_losses
@pytest.mark.parametrize("C", [1e-4, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("intercept_scaling", [0.0, 2.0])
def test_the_optimum(C: float, intercept_scaling: float, loss: Loss) -> None:
    X, labels = data()
    rows = Rows(X, intercept_scaling=intercept_scaling)
    assert gap(Problem(rows, labels, C=C, loss=loss)) < 1e-9


@both_losses
def test_separable_classes(loss: Loss) -> None:
    X, labels = data()
    X[:, 0] = 3.0 * labels
    assert gap(Problem(Rows(X), labels, C=1e3, loss=loss)) < 1e-9


def test_sparse_rows_and_single_precision() -> None:
    X, labels = data()
    X = X.astype(np.float32)
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = Rows(X, intercept_scaling=1.5), Rows(sp.csr_matrix(X), intercept_scaling=1.5)
    one, other = (train(Problem(rows, labels), Auto(), seed=0) for rows in (dense, sparse))
    np.testing.assert_allclose(one.w, other.w, rtol=1e-9)
    assert gap(Problem(sparse, labels)) < 1e-9
