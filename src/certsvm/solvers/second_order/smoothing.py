"""The alpha of the smoothed loss as a function of w, and sums over it along a direction.

For the hinge, alpha_k(w) = clip(alpha_hat_k + sigma s_k (1 - w.y_k), 0, C s_k).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel, reordering_kernel
from certsvm.kernels.losses import Loss, box_end, response, response_slope
from certsvm.kernels.rows import Vector


@kernel
def free_support_vectors(
    loss: Loss, unclipped: Vector, weights: Vector, C: float, out: NDArray[np.int64]
) -> int:
    """Write the rows whose alpha is strictly inside the box to the front of ``out``; count them."""
    n = 0
    for k in range(unclipped.size):
        out[n] = k
        n += 1 if 0.0 < unclipped[k] < box_end(loss, C, weights[k]) else 0
    return n


@kernel
def smoothed_alpha(
    loss: Loss, products: Vector, weights: Vector, alpha_hat: Vector, sigma: float, C: float,
    unclipped: Vector, alpha: Vector, change: Vector,
) -> int:  # fmt: skip
    """Write alpha(w), given the products w.y_k, before and after clipping to the box.

    Writes by how much alpha has changed, too, and returns on how many rows.
    """
    n = 0
    for k in range(alpha.size):
        value = response(loss, products[k], alpha_hat[k], sigma, C, weights[k])
        unclipped[k] = value
        value = min(max(value, 0.0), box_end(loss, C, weights[k]))
        change[k] = value - alpha[k]
        alpha[k] = value
        n += 1 if change[k] != 0.0 else 0
    return n


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


@reordering_kernel
def clipped_sums(
    loss: Loss, unclipped: Vector, weights: Vector, sigma: float, C: float, products: Vector,
    steps: Vector, out: Vector,
) -> None:  # fmt: skip
    """Add ``clipped_sum`` of each of the ``steps`` to ``out``, in one pass."""
    slope = response_slope(loss, sigma, C)
    for k in range(unclipped.size):
        product, box = products[k], box_end(loss, C, weights[k])
        change = slope * weights[k] * product
        for i in range(steps.size):
            value = unclipped[k] - steps[i] * change
            out[i] += min(max(value, 0.0), box) * product
