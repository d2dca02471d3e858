"""The minimum of a convex function along a direction: the zero of its increasing slope.

The slope is linear between kinks, where rows become free support vectors or cease to be. In memory
it is evaluated point by point (``zero_of_slope``). If an evaluation costs a pass, or a wait for the
device, one evaluation gives it at all of ``STEPS`` (``best_step``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certsvm.kernels.rows import Vector

# If many rows are at the edge of the box, the best step may be tiny.
STEPS = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 21), [1.5, 2.5, 5.0, 10.0]])
# A step of 1 is taken if the slope there is at most this, relative to the slope at 0.
_FLAT = 0.3
# The same if slopes are cheap, at a step of 1 and elsewhere.
FLAT_AT_ONE, FLAT_ELSEWHERE = 0.1, 0.02
LONGEST, TRIALS = 64.0, 30


def best_step(slopes: Vector) -> float | None:
    """The zero of a slope given at ``STEPS``; None if a step of 1 is as good.

    The step is 0 if the slope at 0 is not negative.

    Examples
    --------
    >>> best_step(STEPS - 1.0) is None, best_step(2.0 * STEPS - 1.0), best_step(STEPS)
    (True, 0.5, 0.0)
    """
    if not slopes[0] < 0.0:
        return 0.0
    if abs(slopes[STEPS == 1.0][0]) <= _FLAT * abs(slopes[0]):
        return None
    if slopes[-1] <= 0.0:
        return float(STEPS[-1])
    after = int(np.argmax(slopes > 0.0))
    share = -slopes[after - 1] / (slopes[after] - slopes[after - 1])
    return float(STEPS[after - 1] + share * (STEPS[after] - STEPS[after - 1]))


def zero_of_slope(slope: Callable[[float], float]) -> float:
    """The approximate zero of the slope; 0 if the slope at 0 is not negative.

    Examples
    --------
    >>> zero_of_slope(lambda t: t - 1.0), zero_of_slope(lambda t: t + 1.0)
    (1.0, 0.0)
    """
    first = slope(0.0)
    if not first < 0.0:
        return 0.0
    low, at_low, high = 0.0, first, 1.0
    at_high = slope(high)
    while at_high < 0.0 and abs(at_high) > FLAT_AT_ONE * abs(first) and high < LONGEST:
        low, at_low, high = high, at_high, 2.0 * high
        at_high = slope(high)
    if at_high <= 0.0 or abs(at_high) <= FLAT_AT_ONE * abs(first):
        return high
    for _ in range(TRIALS):
        # Regula falsi, away from the ends, since the slope has kinks.
        share = min(max(-at_low / (at_high - at_low), 0.1), 0.9)
        t = low + share * (high - low)
        at_t = slope(t)
        if abs(at_t) <= FLAT_ELSEWHERE * abs(first):
            return t
        if at_t < 0.0:
            low, at_low = t, at_t
        else:
            high, at_high = t, at_t
    return low if low > 0.0 else high
