"""The alpha of the smoothed loss as a function of w, and the line search.

For the hinge, alpha_k(w) = clip(alpha_hat_k + sigma s_k (1 - w.y_k), 0, C s_k).

The minimum of the smooth function along a direction is the zero of its slope, which rises, and is
linear between kinks, where rows become free support vectors or cease to be. In memory the slope is
evaluated point by point (``minimum_along``), and so on tensors. If an evaluation costs a pass, it
gives the slope at all of ``STEPS`` (``best_step``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel, reordering_kernel
from certsvm.kernels.losses import Loss, box_end, response, response_slope
from certsvm.kernels.rows import Vector
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem

# If many rows are at the edge of the box, the best step may be tiny.
STEPS = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 21), [1.5, 2.5, 5.0, 10.0]])
# A step of 1 is taken if the slope there is at most this, relative to the slope at 0.
_FLAT = 0.3
# The same if slopes are cheap: for steps of 1, 2, 4 ..., and for those between two of them.
_FLAT_BEYOND, _FLAT_BETWEEN = 0.1, 0.02
_LONGEST, _TRIALS = 64.0, 30


@kernel
def smoothed_alpha(
    loss: Loss, products: Vector, weights: Vector, alpha_hat: Vector, sigma: float, C: float,
    unclipped: Vector, alpha: Vector, free: NDArray[np.int64],
) -> int:  # fmt: skip
    """Write alpha(w), given the products w.y_k, before and after clipping to the box.

    Writes the free support vectors, whose alpha is strictly inside the box, to the front of
    ``free``, too, and returns their number.
    """
    for k in range(alpha.size):
        value = response(loss, products[k], alpha_hat[k], sigma, C, weights[k])
        unclipped[k] = value
        alpha[k] = min(max(value, 0.0), box_end(loss, C, weights[k]))
    n_free = 0
    # A loop of its own, so that the first one uses vector lanes.
    for k in range(alpha.size):
        free[n_free] = k
        n_free += 1 if 0.0 < unclipped[k] < box_end(loss, C, weights[k]) else 0
    return n_free


@reordering_kernel
def clipped_sum(
    loss: Loss, unclipped: Vector, weights: Vector, sigma: float, C: float, products: Vector,
    t: float,
) -> float:  # fmt: skip
    """sum_k alpha_k products_k after a step t along a direction with these products."""
    total = 0.0
    step = t * response_slope(loss, sigma, C)
    for k in range(unclipped.size):
        value = unclipped[k] - step * weights[k] * products[k]
        total += min(max(value, 0.0), box_end(loss, C, weights[k])) * products[k]
    return total


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
    # The slope rises, so the step is a function of it.
    return float(np.interp(0.0, slopes, STEPS))


def minimum_along(
    problem: BaseProblem, w: Vector, direction: Vector, falls: Callable[[float], float]
) -> float:
    """About the t >= 0 with the least value of the smooth function at w + t direction.

    ``falls(t)`` is the ``clipped_sum`` there.
    """
    start, change = problem.regularised(w), problem.regularised(direction)
    linear, square = inner(start, change), inner(change, change)
    first = slope_low = linear - falls(0.0)
    if not first < 0.0:
        return 0.0
    low, high, slope_high, t = 0.0, 0.0, 0.0, 1.0
    for _ in range(_TRIALS):
        slope = linear + t * square - falls(t)
        flat = abs(slope) <= -first * (_FLAT_BETWEEN if high else _FLAT_BEYOND)
        if flat or (slope < 0.0 and not high and t >= _LONGEST):
            return t
        if slope < 0.0:
            low, slope_low = t, slope
        else:
            high, slope_high = t, slope
        t *= 2.0
        if high:
            # Regula falsi, away from the ends, since the slope has kinks.
            share = -slope_low / (slope_high - slope_low)
            t = low + min(max(share, 0.1), 0.9) * (high - low)
    return low or high
