"""Kernels of the smoothed hinge, compiled and plain, against NumPy; and the line search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers.second_order.smoothing import (
    STEPS,
    best_step,
)

C, SIGMA = 0.7, 1.9


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
