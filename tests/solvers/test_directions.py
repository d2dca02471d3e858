"""Newton's direction in both spaces, by NumPy, and its convergence on data of any scale."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows, train
from certsvm.resources import ALONE, Team
from certsvm.solvers import Newton
from certsvm.solvers.directions import direction_from_rows, gram, intercept_ridge, newton_direction
from tests.problems import Array, Case, cases

seeds = st.integers(0, 2**32 - 1)


def both_directions(
    problem: Problem, free: Array, weights: Array, w: Array, gradient: Array
) -> tuple[Array, Array]:
    G = gram(problem, free, weights, ALONE)
    return (
        newton_direction(problem, G, w, gradient, ALONE),
        direction_from_rows(problem, free, weights, w, gradient, ALONE),
    )


@given(case=cases(), seed=seeds)
def test_both_spaces_solve_the_system(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = case.problem()
    free = np.flatnonzero((rng.random(problem.n_rows) < 0.7) & (problem.weights > 0.0))
    weights, gradient = rng.random(free.size), rng.standard_normal(problem.dimension)
    patterns = case.patterns()[free]
    H = np.eye(problem.dimension) + patterns.T @ (weights[:, None] * patterns)
    scale = np.abs(H).max()
    for direction in both_directions(problem, free, weights, gradient, gradient):
        np.testing.assert_allclose(H @ direction, -gradient, atol=1e-9 * scale**2)


@pytest.mark.parametrize("n_free", [0, 1, 9])
@pytest.mark.parametrize("shape", [(12, 5), (12, 30)])
def test_both_spaces_leave_a_free_intercept_out_of_the_regulariser(
    shape: tuple[int, int], n_free: int
) -> None:
    rng = np.random.default_rng(0)
    rows = Rows(rng.standard_normal(shape), intercept_scaling=2.0)
    labels = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)
    problem = Problem(rows, labels, penalize_intercept=False)
    free, weights = np.arange(n_free), rng.random(n_free)
    w, gradient = rng.standard_normal((2, problem.dimension))
    patterns = np.hstack([rows.matrix, np.full((shape[0], 1), 2.0)])[free]
    H = np.eye(problem.dimension) + patterns.T @ (weights[:, None] * patterns)
    H[-1, -1] += intercept_ridge(problem, w, gradient) - 1.0
    assert intercept_ridge(problem, w, gradient) < 0.2 < intercept_ridge(problem, w, 0.0 * w) == 1.0
    for direction in both_directions(problem, free, weights, w, gradient):
        np.testing.assert_allclose(H @ direction, -gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("scale", [0.0, 3.0])
@pytest.mark.parametrize("shape", [(60, 100), (80, 80), (100, 60)])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kind", ["plain", "duplicates"])
def test_any_scale_and_any_c(
    shape: tuple[int, int], scale: float, C: float, form: str, kind: str
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * np.exp(scale * rng.standard_normal(shape[1]))
    labels = np.where(rng.random(shape[0]) < 0.5, 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, shape[0])
    if kind == "duplicates":
        half = shape[0] // 2
        X[half:] = X[:half]
        X[3] = 0.0
        weights[7] = 0.0
    rows = Rows(X if form == "dense" else sp.csr_matrix(X))
    problem = Problem(rows, labels, C=C, weights=weights)
    result = train(
        problem, Newton(), tol=1e-8, max_iter=400, seed=0,
        callbacks=[lambda progress: progress.record.relative_gap <= 1e-8],
    )  # fmt: skip
    # Rounding may forbid the claim, as it does for long rows and a large C.
    assert result.certificate.relative_gap <= 1e-8


def test_threads_share_large_matrices() -> None:
    X = np.random.default_rng(0).standard_normal((60_000, 40))
    problem = Problem(Rows(X), np.where(X[:, 0] > 0, 1.0, -1.0))
    with Team(2) as team:
        G = gram(problem, np.arange(60_000), np.ones(60_000), team)
    np.testing.assert_allclose(np.tril(G), np.tril(X.T @ X), atol=1e-7)
