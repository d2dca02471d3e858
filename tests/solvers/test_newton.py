"""Newton's method: its direction in both spaces, and high accuracy on data of any scale."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from certsvm import Rows, train
from certsvm.certificates.primal import primal_bound
from certsvm.files.streams import BlockStream
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem, StreamedProblem
from certsvm.resources import ALONE, Team
from certsvm.solvers import Newton, SmoothedNewton
from certsvm.solvers.directions import direction_from_rows, gram, intercept_ridge, newton_direction
from certsvm.training.settings import SOLVER_FINISHED
from tests.problems import Array, Case, cases

seeds = st.integers(0, 2**32 - 1)


def both_directions(
    problem: Problem, free: Array, weights: Array, w: Array, gradient: Array
) -> tuple[Array, Array]:
    G = gram(problem, free, weights, ALONE)
    return (
        newton_direction(problem, G, w, gradient),
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
def test_both_spaces_leave_a_free_intercept_out(shape: tuple[int, int], n_free: int) -> None:
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
def test_any_scale(shape: tuple[int, int], scale: float, C: float, form: str, kind: str) -> None:
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


def degenerate() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0, 1.0, -1.0)
    one_hot = np.eye(8)[rng.integers(8, size=300)]
    return {
        "noisy": (X, y),
        "separable": (X, np.where(X[:, 0] > 0, 1.0, -1.0)),
        "duplicate rows": (np.repeat(X[:10], 30, axis=0), np.repeat(y[:10], 30)),
        "contradicting rows": (np.repeat(X[:10], 30, axis=0), y),
        "duplicate columns": (np.column_stack([X, X, X[:, :1]]), y),
        "constant column": (np.column_stack([X, np.ones(300)]), y),
        "empty column": (np.column_stack([X, np.zeros(300)]), y),
        "empty rows": (X * (rng.random(300) < 0.5)[:, None], y),
        "one-hot": (one_hot, y),
        "one column": (X[:, :1], y),
        "one class": (X, np.ones(300)),
        "scales from 1e-4 to 1e4": (X * 10.0 ** np.linspace(-4, 4, 6), y),
        "more columns than rows": (rng.standard_normal((20, 60)), y[:20]),
    }


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("name", degenerate())
def test_degenerate_data(name: str, C: float) -> None:
    X, y = degenerate()[name]
    result = train(Problem(Rows(X), y, C=C), Newton(), tol=1e-8, max_iter=300, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"


def test_an_alpha_found_between_two_steps_is_not_lost() -> None:
    # At the corner of the box, which a steeper smoothing finds without moving w.
    X = np.array([[2.0, -3.0], [2.0, -2.0], [0.0, 2.0]])
    rows = Rows(sp.csr_matrix(X), intercept_scaling=0.3)
    problem = Problem(rows, [1.0, 1.0, -1.0], C=0.01, weights=[1.0, 3.7, 3.7])
    result = train(problem, Newton(), tol=1e-8, max_iter=20, seed=0)
    assert result.certificate.met


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_too_large_systems(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).standard_normal(shape)
    problem = Problem(Rows(X), np.where(np.arange(shape[0]) % 2, 1, -1))
    assert train(problem, Newton(max_size=3)).certificate.met
    with pytest.raises(ValueError, match=r"systems to solve are of size 3, more than max_size = 2"):
        train(problem, Newton(max_size=2))
    with pytest.raises(ValueError, match="Newton: max_size must be > 0"):
        Newton(max_size=0)


def many_rows(rows: int = 8000) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 6))
    labels = np.where(X[:, 0] + rng.standard_normal(rows) > 0, 1, -1)
    return Problem(Rows(X), labels, C=1.0, weights=rng.choice([0.0, 1.0, 2.5], rows))


def test_a_sample_saves_steps_and_changes_no_optimum() -> None:
    problem = many_rows()
    with_sample = train(problem, Newton(), tol=1e-8, seed=0)
    without = train(problem, Newton(samples=False), tol=1e-8, seed=0)
    assert with_sample.certificate.met
    assert without.certificate.met
    np.testing.assert_allclose(with_sample.w, without.w, atol=1e-4)
    solvers = Newton(), Newton(samples=False)
    few, many = (train(problem, solver, tol=0.01, seed=0).passes for solver in solvers)
    assert few < many


def test_threads_give_the_same_bits_each_time_and_a_true_certificate() -> None:
    problem = many_rows(400_000)
    alone, first, second = (train(problem, Newton(), tol=1e-7, seed=0, n_jobs=n) for n in (1, 2, 2))
    np.testing.assert_array_equal(first.w, second.w)
    assert first.certificate == second.certificate
    assert first.certificate.met
    np.testing.assert_allclose(alone.w, first.w, atol=1e-4)
    fresh = primal_bound(problem, first.w)
    assert fresh.low <= first.certificate.primal + first.certificate.primal_rounding


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e2, 1e4])
def test_a_bad_sample_is_got_over(C: float) -> None:
    """Few positive rows, rare columns: what a sample says of them is far off at large C."""
    rng = np.random.default_rng(0)
    popularity = 0.3 / np.arange(1, 81)
    X = sp.csr_matrix((rng.random((12_000, 80)) < popularity).astype(float))
    scores = X @ rng.standard_normal(80) + rng.standard_normal(12_000)
    problem = Problem(Rows(X), np.where(scores > np.quantile(scores, 0.97), 1, -1), C=C)
    result = train(problem, Newton(), tol=1e-6, max_iter=400, seed=0)
    assert result.certificate.met


def test_at_the_limit_of_precision_the_run_ends() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 100)) * np.exp(3.0 * rng.standard_normal(100))
    problem = Problem(Rows(X), np.where(rng.random(60) < 0.5, 1, -1), C=1e4)
    result = train(problem, Newton(), tol=1e-12, seed=0)
    assert result.reason == SOLVER_FINISHED
    assert result.passes < 300
    assert result.certificate.relative_gap <= result.certificate.proved_gap / 1.9
    assert not result.certificate.met
    assert train(problem, Newton(), tol=1e-6, seed=0).certificate.met


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_rare_class_on_large_columns_of_a_stream(C: float) -> None:
    """The answer is nearly trivial, and most rows are at the edge of the box."""
    rng = np.random.default_rng(0)
    X = np.column_stack([2500 + 300 * rng.standard_normal(20_000), rng.random((20_000, 6)) * 200])
    y = np.where(rng.random(20_000) < 0.01 * (X[:, 1] > 100), 1.0, -1.0)
    cuts = np.linspace(0, 20_000, 6).astype(int)
    blocks = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)]
    problem = StreamedProblem(BlockStream(lambda: blocks), 1, Objective(C=C))
    assert train(problem, SmoothedNewton(), tol=0.01, max_iter=100, seed=0).certificate.met


def test_it_says_that_it_can_go_no_further() -> None:
    """Classes that are separable; ``auto`` goes on with block DCD."""
    X, y = load_digits(return_X_y=True)
    problem = StreamedProblem(BlockStream(lambda: [(X, y == 0)]), 1, Objective(C=100.0))
    result = train(problem, SmoothedNewton(), tol=0.01, seed=0)
    assert (result.reason, result.certificate.met) == ("no further progress is possible", False)
