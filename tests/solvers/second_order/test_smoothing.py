"""Kernels of the smoothed hinge, against NumPy and against themselves in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.kernels.losses import HINGE
from certsvm.solvers.second_order.smoothing import (
    clipped_sum,
    clipped_sums,
    free_support_vectors,
    smoothed_alpha,
)

FORMS = pytest.mark.parametrize("form", ["compiled", "plain"])
seeds = st.integers(0, 2**32 - 1)
C, SIGMA = 0.7, 1.9


def in_form(kernel: Any, form: str) -> Any:
    return kernel if form == "compiled" else kernel.py_func


def rows(seed: int, n: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    products, along = 2 * rng.standard_normal((2, n))
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    return products, along, weights, C * weights * rng.random(n)


@FORMS
@given(seed=seeds, n=st.integers(0, 40))
def test_alpha(form: str, seed: int, n: int) -> None:
    products, _, weights, alpha_hat = rows(seed, n)
    unclipped, change, before = np.empty(n), np.empty(n), np.round(C * weights * alpha_hat)
    alpha = before.copy()
    kernel = in_form(smoothed_alpha, form)
    changes = kernel(HINGE, products, weights, alpha_hat, SIGMA, C, unclipped, alpha, change)
    np.testing.assert_allclose(unclipped, alpha_hat + SIGMA * weights * (1 - products))
    np.testing.assert_array_equal(alpha, np.clip(unclipped, 0, C * weights))
    np.testing.assert_array_equal(change, alpha - before)
    assert changes == np.count_nonzero(change)


@FORMS
@given(seed=seeds, n=st.integers(0, 40))
def test_free_support_vectors(form: str, seed: int, n: int) -> None:
    products, _, weights, _ = rows(seed, n)
    unclipped = np.round(products)
    unclipped[::3] = C * weights[::3]
    out = np.empty(n, dtype=np.int64)
    size = in_form(free_support_vectors, form)(HINGE, unclipped, weights, C, out)
    strictly = (unclipped > 0) & (unclipped < C * weights)
    assert out[:size].tolist() == np.flatnonzero(strictly).tolist()


@FORMS
@given(seed=seeds, n=st.integers(0, 40))
def test_sums_along_a_direction(form: str, seed: int, n: int) -> None:
    products, along, weights, alpha_hat = rows(seed, n)
    unclipped = alpha_hat + SIGMA * weights * (1 - products)
    steps = np.array([-0.3, 0.0, 2.0])
    expected = [
        float(np.clip(unclipped - t * SIGMA * weights * along, 0, C * weights) @ along)
        for t in steps
    ]
    one = in_form(clipped_sum, form)
    for t, value in zip(steps, expected, strict=True):
        assert one(HINGE, unclipped, weights, SIGMA, C, along, t) == pytest.approx(value, abs=1e-9)
    out = np.array([1.0, 2.0, 3.0])
    in_form(clipped_sums, form)(HINGE, unclipped, weights, SIGMA, C, along, steps, out)
    np.testing.assert_allclose(out, np.array([1.0, 2.0, 3.0]) + expected, atol=1e-9)
