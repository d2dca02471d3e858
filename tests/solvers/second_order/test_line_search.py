"""Steps along a direction: where a slope that rises becomes zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers.second_order.line_search import STEPS, best_step, zero_of_slope


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


@pytest.mark.parametrize("zero", [1e-7, 0.03, 0.5, 1.0, 3.0, 60.0])
def test_a_straight_slope(zero: float) -> None:
    step = zero_of_slope(lambda t: t - zero)
    assert abs(step - zero) <= 0.1 * zero
