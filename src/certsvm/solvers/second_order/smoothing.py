"""The smoothed hinge's alpha, as a function of w, and sums of it along a direction.

alpha_k(w) = clip(alpha_hat_k + sigma s_k (1 - w.y_k), 0, C s_k)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel, reordering_kernel
from certsvm.kernels.rows import Vector


@kernel
def free_support_vectors(
    unclipped: Vector, weights: Vector, C: float, out: NDArray[np.int64]
) -> int:
    """Which rows have 0 < unclipped_k < C s_k, into the front of ``out``; how many."""
    n = 0
    for k in range(unclipped.size):
        out[n] = k
        n += 1 if 0.0 < unclipped[k] < C * weights[k] else 0
    return n


@kernel
def smoothed_alpha(
    products: Vector,
    weights: Vector,
    alpha_hat: Vector,
    sigma: float,
    C: float,
    unclipped: Vector,
    alpha: Vector,
) -> None:
    """alpha_hat_k + sigma s_k (1 - w.y_k), as it is and clipped to the box."""
    for k in range(alpha.size):
        value = alpha_hat[k] + sigma * weights[k] * (1.0 - products[k])
        unclipped[k] = value
        alpha[k] = min(max(value, 0.0), C * weights[k])


@reordering_kernel
def clipped_sum(
    unclipped: Vector,
    weights: Vector,
    sigma: float,
    C: float,
    products: Vector,
    t: float,
) -> float:
    """sum_k clip(unclipped_k - t sigma s_k products_k, 0, C s_k) products_k."""
    total = 0.0
    for k in range(unclipped.size):
        value = unclipped[k] - t * sigma * weights[k] * products[k]
        total += min(max(value, 0.0), C * weights[k]) * products[k]
    return total


@reordering_kernel
def clipped_sums(
    unclipped: Vector,
    weights: Vector,
    sigma: float,
    C: float,
    products: Vector,
    steps: Vector,
    out: Vector,
) -> None:
    """Add to ``out``, for each of the steps t, what ``clipped_sum`` gives; in one pass."""
    for k in range(unclipped.size):
        product, box = products[k], C * weights[k]
        change = sigma * weights[k] * product
        for i in range(steps.size):
            value = unclipped[k] - steps[i] * change
            out[i] += min(max(value, 0.0), box) * product
