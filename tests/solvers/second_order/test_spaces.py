"""The two spaces: the same direction, against NumPy, and the products of rows."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.parallel import ALONE, Team
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Newton
from certsvm.solvers.second_order import spaces
from certsvm.solvers.second_order.intercept import intercept_ridge
from certsvm.solvers.second_order.spaces import ColumnSpace, RowSpace, row_products, space_of
from certsvm.training.loop import train
from tests.problems import Array, Case, cases

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds)
def test_both_spaces_solve_the_system(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = case.problem()
    free = np.flatnonzero((rng.random(problem.n_rows) < 0.7) & (problem.weights > 0.0))
    weights, gradient = rng.random(free.size), rng.standard_normal(problem.dimension)
    patterns = case.patterns()[free]
    H = np.eye(problem.dimension) + patterns.T @ (weights[:, None] * patterns)
    scale = np.abs(H).max()
    for space in (ColumnSpace(problem, ALONE), RowSpace(problem, ALONE)):
        direction = space.direction(free, weights, gradient, gradient)
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
    for space in (ColumnSpace(problem, ALONE), RowSpace(problem, ALONE)):
        direction = space.direction(free, weights, w, gradient)
        np.testing.assert_allclose(H @ direction, -gradient, rtol=1e-9, atol=1e-9)


def test_the_smaller_space_is_taken() -> None:
    for shape, kind in (((3, 5), RowSpace), ((5, 5), ColumnSpace), ((6, 5), ColumnSpace)):
        problem = Problem(Rows(np.ones(shape)), np.where(np.arange(shape[0]) % 2, 1, -1))
        assert isinstance(space_of(problem, ALONE), kind)


@pytest.mark.parametrize("intercept_scaling", [0.0, 0.5])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "sparse and full"])
def test_products_of_rows(
    form: str, intercept_scaling: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spaces, "_COLUMNS_AT_ONCE", 30)
    rng = np.random.default_rng(0)
    X: Array | sp.csr_matrix = rng.standard_normal((150, 70))
    if form == "float32":
        X = X.astype(np.float32)
    elif form != "dense":
        density = 0.05 if form == "sparse" else 0.95
        X = sp.random(150, 70, density=density, format="csr", random_state=0)
    dense = np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)
    expected = np.tril(dense @ dense.T + intercept_scaling**2)
    for n_jobs in (1, 3):
        rows = Rows(X, intercept_scaling=intercept_scaling)
        with Team(n_jobs) as team:
            np.testing.assert_allclose(np.tril(row_products(rows, team)), expected, atol=1e-12)


def test_products_are_computed_once_for_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    multiply = spaces._multiply_rows

    def counted(rows: Rows, team: Team) -> Array:
        computed.append(rows.n_rows)
        return multiply(rows, team)

    monkeypatch.setattr(spaces, "_multiply_rows", counted)
    rows = Rows(np.random.default_rng(0).standard_normal((20, 40)))
    with ThreadPoolExecutor(4) as executor:
        results = list(executor.map(row_products, [rows] * 8, [ALONE] * 8))
    assert computed == [20]
    assert all(result is results[0] for result in results)
    kept = len(spaces._ENTRIES)
    del rows
    gc.collect()
    assert len(spaces._ENTRIES) < kept


def test_a_matrix_that_rounding_makes_indefinite() -> None:
    """Duplicated long rows: the products are singular, and the ridge of one is lost beside them."""
    X = np.repeat(1e9 * np.random.default_rng(0).standard_normal((40, 100)), 2, axis=0)
    problem = Problem(Rows(X), np.ones(80))
    space = RowSpace(problem, ALONE)
    gradient = X[0] / 1e9
    direction = space.direction(np.arange(80), np.ones(80), gradient, gradient)
    assert np.isfinite(direction).all()
    assert direction @ gradient <= 1e-6


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
