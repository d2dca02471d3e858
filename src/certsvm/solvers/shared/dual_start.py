"""A feasible alpha to begin with: a given one, or one read off the margins of a given w.

For a w near the optimum, what a slightly smoothed loss answers its margins with is feasible and
nearly optimal. For the hinge, whose optimal alpha_k is C s_k where w.y_k < 1, zero where w.y_k > 1,
and anything between on the margin, that is

    alpha_k = C s_k clip((1 + delta - w.y_k) / (2 delta), 0, 1)

with a small delta: its kink is rounded off over a width of delta. Which delta is best is found by
trying.
"""

from __future__ import annotations

import numpy as np

from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.kernels.losses import box_end, response, smoothing_centre
from certsvm.kernels.objective import margins
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Start

_WIDTHS = tuple(4.0**-i for i in range(6))


def starting_alpha(problem: Problem, start: Start | None) -> Vector:
    """Alpha to begin with: zero, what ``start`` brings, or what its w suggests."""
    if start is None:
        return np.zeros(problem.rows.n_rows)
    if start.alpha is not None:
        box = box_end(problem.loss, problem.C, problem.weights)
        feasible: Vector = np.clip(start.alpha, 0.0, box)
        return feasible
    return alpha_from_margins(problem, start.w)


def alpha_from_margins(problem: Problem, w: Vector) -> Vector:
    """The best feasible alpha of the family above, already scaled."""
    loss, C, weights = problem.loss, problem.C, problem.weights
    box, centre = box_end(loss, C, weights), smoothing_centre(loss, C, weights)
    products = np.empty(problem.rows.n_rows)
    margins(problem.rows.arrays, problem.signed_weights, w, 0, problem.rows.n_rows, products)
    best, best_alpha = -np.inf, np.zeros(problem.rows.n_rows)
    for delta in _WIDTHS:
        unclipped = response(loss, products, centre, C / (2.0 * delta), C, weights)
        alpha = np.clip(unclipped, 0.0, box)
        bound, scale = dual_bound(dual_point(problem, alpha, "margins"))
        if bound.low > best:
            best, best_alpha = bound.low, scale * alpha
    return np.minimum(best_alpha, box)
