"""Inner products: the kernel against its Python text, and against exact sums."""

import math

import numpy as np
import pytest

from certsvm.kernels.vectors import inner


@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 1001])
def test_inner_products(n: int) -> None:
    u, v = np.random.default_rng(n).standard_normal((2, n))
    exact = math.fsum(u * v)
    size = math.fsum(np.abs(u * v))
    for function in (inner, inner.py_func):  # type: ignore[attr-defined]
        assert abs(function(u, v) - exact) <= 1e-15 * max(n, 1) * size
    assert np.isnan(inner(u, np.full(n, np.nan))) == (n > 0)
