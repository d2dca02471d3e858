"""Decimal numbers so close to halfway between two floats that the kernel defers them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np


def nearest(number: bytes, dtype: np.dtype[Any]) -> float:
    """The float of this type nearest to a decimal number."""
    double = float(number)
    if dtype == np.float64:
        return double
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(double)
        # As doubles: NumPy would compare in float32.
        upwards = np.float32(np.inf if float(narrow) < double else -np.inf)
        other = np.nextafter(narrow, upwards)
    near, far = _finite(narrow), _finite(other)
    if 0.5 * (near + far) != double:
        return float(narrow)
    # The double is halfway: the digits that were lost in rounding to it decide.
    exact, halfway = Decimal(number.decode()), Decimal(double)
    towards_other = exact > halfway if far > near else exact < halfway
    return float(other if towards_other else narrow)


def _finite(single: np.float32) -> float:
    """A float32 as double; infinity is where the float32 after the largest would be."""
    return math.copysign(2.0**128, single) if np.isinf(single) else float(single)
