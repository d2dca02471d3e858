"""The solution of small systems, compiled and in Python, against NumPy."""

import numpy as np
import pytest

from certsvm.kernels.cholesky import solve_small_system


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_small_systems(n: int) -> None:
    rng = np.random.default_rng(n)
    B, b = rng.standard_normal((n, n + 2)), rng.standard_normal(n)
    A = B @ B.T + np.eye(n)
    for function in (solve_small_system, solve_small_system.py_func):  # type: ignore[attr-defined]
        # What is above the diagonal does not count.
        lower, x = np.tril(A) + np.triu(np.full((n, n), np.nan), 1), b.copy()
        assert function(lower, x)
        np.testing.assert_allclose(A @ x, b, atol=1e-10)
        np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(A), atol=1e-12)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_a_matrix_that_is_not_positive_definite(bad: float) -> None:
    for function in (solve_small_system, solve_small_system.py_func):  # type: ignore[attr-defined]
        assert not function(np.diag([1.0, bad, 2.0]), np.ones(3))
