"""The Hessian of a smooth problem, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.parallel import ALONE, Team
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers.second_order.hessian import (
    gram,
    newton_direction,
    sum_of_rows,
    symmetric_product,
)
from tests.problems import Case, cases

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds)
def test_the_gram_matrix(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = case.problem()
    which = np.flatnonzero(rng.random(problem.rows.n_rows) < 0.7)
    weights = rng.random(which.size)
    patterns = case.patterns()[which]
    with Team(3) as team:
        G = gram(problem, which, weights, team)
    expected = patterns.T @ (weights[:, None] * patterns)
    np.testing.assert_allclose(np.tril(G), np.tril(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_sparse_rows_dense_enough_are_multiplied_as_dense(density: float) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(300, 40, density=density, format="csr", random_state=rng)
    problem = Problem(Rows(X, intercept_scaling=0.5), np.ones(300))
    which, weights = np.arange(0, 300, 2), rng.random(150)
    rows = np.column_stack([X.toarray(), np.full(300, 0.5)])[which]
    with Team(2) as team:
        G = gram(problem, which, weights, team)
    np.testing.assert_allclose(np.tril(G), np.tril(rows.T @ (weights[:, None] * rows)), atol=1e-12)


@given(case=cases(), seed=seeds)
def test_the_sum_of_rows(case: Case, seed: int) -> None:
    problem = case.problem()
    chosen = np.random.default_rng(seed).random(problem.rows.n_rows) < 0.6
    total = sum_of_rows(problem, np.flatnonzero(chosen), ALONE)
    expected = (case.row_weights() * chosen) @ case.patterns()
    np.testing.assert_allclose(total, expected, atol=1e-12)


def test_threads_share_large_sums() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 40))
    problem = Problem(Rows(X), np.where(X[:, 0] > 0, 1.0, -1.0))
    which = np.arange(60_000)
    signed = X * np.where(X[:, 0] > 0, 1.0, -1.0)[:, None]
    with Team(2) as team:
        np.testing.assert_allclose(sum_of_rows(problem, which, team), signed.sum(0), atol=1e-8)
        G = gram(problem, which, np.ones(60_000), team)
    np.testing.assert_allclose(np.tril(G), np.tril(X.T @ X), atol=1e-7)


def test_a_step_solves_the_system() -> None:
    rng = np.random.default_rng(0)
    A, gradient = rng.standard_normal((9, 5)), rng.standard_normal(5)
    G = A.T @ A
    lower = np.tril(G)
    np.testing.assert_allclose(symmetric_product(lower, gradient), G @ gradient, atol=1e-12)
    direction = newton_direction(lower.copy(), gradient)
    np.testing.assert_allclose((np.eye(5) + G) @ direction, -gradient, atol=1e-10)


def test_an_indefinite_matrix_gives_way_to_the_gradient() -> None:
    gradient = np.array([1.0, -2.0])
    np.testing.assert_array_equal(newton_direction(-3.0 * np.eye(2), gradient), -gradient)
