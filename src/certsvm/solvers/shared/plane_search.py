"""The best combination of two weight vectors.

Dual methods have a good alpha long before w_alpha is good: a row slightly below the margin costs C
times the difference, a row slightly above it costs nothing. Often a combination a u + b v of the
best vector so far and the latest one is much better than both. Given the products of both with all
rows, it is found without reading the data, as the minimum of

    f(a, b) = 1/2 |a u + b v|^2 + C sum_k s_k loss(a u.y_k + b v.y_k).

The method is Newton's, on f with smoothed kinks. The width of the smoothing shrinks after each step
that decreases f; other steps are halved. The result is the best point met on the way, by f itself.
"""

from __future__ import annotations

import math

from certsvm.certificates.primal import Products
from certsvm.kernels.jit import reordering_kernel
from certsvm.kernels.losses import (
    Loss,
    box_end,
    loss_value,
    response,
    response_slope,
    smoothing_centre,
)
from certsvm.kernels.rows import Vector
from certsvm.kernels.vectors import inner
from certsvm.problem.memory import Problem

_STEPS = 16
_WIDTH, _SHRINK, _NARROWEST = 0.25, 0.6, 1e-6
# After so many steps, the search ends when a step gains less than this share of f.
_PATIENCE, _GAIN = 6, 1e-4
_RIDGE = 1e-9


def best_combination(problem: Problem, u: Products, v: Products) -> tuple[float, float]:
    """Coefficients (a, b) for which f is small, and not above f(1, 0) or f(0, 1)."""
    loss, C, weights = problem.loss, problem.C, problem.weights
    one, other = problem.regularised(u.w), problem.regularised(v.w)
    uu, uv, vv = inner(one, one), inner(one, other), inner(other, other)
    best, best_value = (1.0, 0.0), math.inf
    width = _WIDTH
    a, b = best
    for step in range(-1, _STEPS):
        losses, g0, g1, h00, h01, h11 = smoothed_losses(
            loss, u.values, v.values, weights, a, b, C / (2.0 * width), C
        )
        now = 0.5 * (a * a * uu + 2.0 * a * b * uv + b * b * vv) + C * losses
        gain = best_value - now
        if gain > 0.0:
            best, best_value = (a, b), now
        if step < 0:
            # This was u; the search starts at v.
            a, b = 0.0, 1.0
            continue
        if step >= _PATIENCE and gain <= _GAIN * abs(now):
            break
        if gain < 0.0 and step > 0:
            # The step was too long: halve it, with the same width.
            a, b = 0.5 * (a + best[0]), 0.5 * (b + best[1])
            continue
        g0, g1 = a * uu + b * uv - g0, a * uv + b * vv - g1
        h00, h01, h11 = uu + h00, uv + h01, vv + h11
        # Without the ridge, the Hessian is singular if u and v are parallel.
        ridge = _RIDGE * (h00 + h11)
        h00, h11 = h00 + ridge, h11 + ridge
        determinant = h00 * h11 - h01 * h01
        if not determinant > 0.0:
            break
        a -= (h11 * g0 - h01 * g1) / determinant
        b -= (h00 * g1 - h01 * g0) / determinant
        if not (math.isfinite(a) and math.isfinite(b)):
            break
        width = max(_SHRINK * width, _NARROWEST)
    return best


@reordering_kernel
def smoothed_losses(
    loss: Loss, u: Vector, v: Vector, weights: Vector, a: float, b: float, sigma: float, C: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """The loss at a u + b v; minus the gradient and the Hessian of C times the smoothed loss."""
    # For a weight of 1; both are proportional to the weight.
    centre, box = smoothing_centre(loss, C, 1.0), box_end(loss, C, 1.0)
    total, g0, g1, h00, h01, h11 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(u.size):
        margin = a * u[k] + b * v[k]
        alpha = response(loss, margin, centre, sigma, C, 1.0)
        if alpha > 0.0:
            s = weights[k]
            total += s * loss_value(loss, margin)
            g0 += s * min(alpha, box) * u[k]
            g1 += s * min(alpha, box) * v[k]
            if alpha < box:
                h00 += s * u[k] * u[k]
                h01 += s * u[k] * v[k]
                h11 += s * v[k] * v[k]
    slope = response_slope(loss, sigma, C)
    return total, g0, g1, slope * h00, slope * h01, slope * h11
