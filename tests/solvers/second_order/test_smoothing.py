"""Kernels of the smoothed hinge, compiled and plain, against NumPy; and the line search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.kernels.losses import HINGE
from certsvm.solvers.second_order.smoothing import (
    STEPS,
    best_step,
    clipped_sum,
    clipped_sums,
    smoothed_alpha,
    zero_of_slope,
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
    alpha, free = before.copy(), np.empty(n, dtype=np.int64)
    # On both edges of the box.
    products[::3], alpha_hat[::3] = 1.0, C * weights[::3]
    products[1::3], alpha_hat[1::3] = 1.0, 0.0
    kernel = in_form(smoothed_alpha, form)
    changes, n_free = kernel(
        HINGE, products, weights, alpha_hat, SIGMA, C, unclipped, alpha, change, free
    )
    np.testing.assert_allclose(unclipped, alpha_hat + SIGMA * weights * (1 - products))
    np.testing.assert_array_equal(alpha, np.clip(unclipped, 0, C * weights))
    np.testing.assert_array_equal(change, alpha - before)
    assert changes == np.count_nonzero(change)
    strictly = (unclipped > 0) & (unclipped < C * weights)
    assert free[:n_free].tolist() == np.flatnonzero(strictly).tolist()


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


@given(st.lists(st.floats(-1e6, 1e6), min_size=STEPS.size, max_size=STEPS.size))
def test_the_best_step_is_where_the_slope_vanishes(increments: list[float]) -> None:
    slopes = np.cumsum(np.abs(increments)) + min(increments)
    step = best_step(slopes)
    if step is None:
        assert abs(slopes[STEPS == 1.0][0]) <= 0.3 * abs(slopes[0])
        return
    assert 0.0 <= step <= STEPS[-1]
    if slopes[0] >= 0:
        assert step == 0.0
    elif slopes[-1] > 0:
        scale = np.abs(slopes).max()
        assert np.interp(step, STEPS, slopes) == pytest.approx(0.0, abs=1e-9 * scale)
    else:
        assert step == STEPS[-1]


kinks = st.lists(st.tuples(st.floats(0.0, 80.0), st.floats(0.0, 10.0)), max_size=8)


@given(linear=st.floats(-10.0, 10.0), square=st.floats(1e-3, 10.0), kinks=kinks)
def test_the_slope_is_nearly_zero_there(
    linear: float, square: float, kinks: list[tuple[float, float]]
) -> None:
    calls: list[float] = []

    def slope(t: float) -> float:
        calls.append(t)
        return linear + square * t + sum(more * max(0.0, t - at) for at, more in kinks)

    step = zero_of_slope(slope)
    assert len(calls) <= 40
    first, at_step = slope(0.0), slope(step)
    if first >= 0.0:
        assert step == 0.0
    elif step < 64.0 or at_step > 0.0:
        assert abs(at_step) <= 0.1 * abs(first) + 1e-12
    else:
        assert step == 64.0
