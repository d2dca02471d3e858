"""Gram matrices: kernels against their Python text, and against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.kernels.gram import (
    scaled_rows,
    scaled_submatrix,
    sparse_gram,
    sparse_row_products,
)
from certsvm.problem.rows import Rows
from tests.problems import Array, Case, cases

seeds = st.integers(0, 2**32 - 1)


def unsigned(case: Case) -> Array:
    """The augmented rows, without their labels."""
    return case.patterns() * case.labels[:, None]


@given(cases().filter(lambda case: case.form.startswith("csr")), seeds)
def test_sparse_gram(case: Case, seed: int) -> None:
    rows = case.problem().rows
    rng = np.random.default_rng(seed)
    which = rng.integers(0, rows.n_rows, 6)
    weights = rng.choice([0.0, 0.5, 2.0], 6)
    x = unsigned(case)[which[1:5]]
    expected = 1.0 + np.tril((weights[1:5, None] * x).T @ x)
    for function in (sparse_gram, sparse_gram.py_func):
        G = np.ones((rows.dimension, rows.dimension))
        function(rows.arrays, which, weights, 1, 5, G)
        np.testing.assert_allclose(np.tril(G), np.tril(expected), rtol=1e-12, atol=1e-11)


@given(cases(), seeds)
def test_scaled_rows(case: Case, seed: int) -> None:
    rows = case.problem().rows
    rng = np.random.default_rng(seed)
    which = rng.integers(0, rows.n_rows, 5)
    scales = rng.standard_normal(5)
    expected = scales[:, None] * unsigned(case)[which]
    for function in (scaled_rows, scaled_rows.py_func):
        out = np.full((5, rows.dimension), np.nan)
        function(rows.arrays, which, scales, out)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@given(seeds)
def test_submatrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = np.tril(rng.standard_normal((8, 8)))
    which = np.sort(rng.choice(8, 5, replace=False))
    scales = rng.standard_normal(5)
    full = K + np.tril(K, -1).T
    expected = scales[:, None] * (full[np.ix_(which, which)] - 0.3) * scales + 2.0 * np.eye(5)
    for function in (scaled_submatrix, scaled_submatrix.py_func):
        out = np.full((5, 5), 9.0)
        function(K, which, scales, 0.3, 2.0, 0, 2, out)
        assert (out[2:] == 9.0).all()
        function(K, which, scales, 0.3, 2.0, 2, 5, out)
        np.testing.assert_allclose(np.tril(out), np.tril(expected), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_sparse_rows(dtype: type) -> None:
    X = sp.random(9, 7, density=0.4, format="csr", random_state=0, dtype=dtype)
    rows, columns = Rows(X), X.tocsc()
    dense = X.toarray().astype(np.float64)
    for function in (sparse_row_products, sparse_row_products.py_func):
        K = np.ones((9, 9))
        starts = columns.indptr.astype(np.int64)
        for first, last in ((0, 4), (4, 9)):
            function(rows.arrays, starts, columns.indices, columns.data, first, last, K)
        np.testing.assert_allclose(np.tril(K), np.tril(1.0 + dense @ dense.T), atol=1e-6)
