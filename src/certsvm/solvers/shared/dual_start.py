"""A feasible alpha for a warm start: a given one, or one computed from the margins of w.

If w is near the optimum, the derivative of a slightly smoothed loss at its margins gives an alpha
that is feasible and nearly optimal. For the hinge, the optimal alpha_k is C s_k if w.y_k < 1, zero
if w.y_k > 1, and between these on the margin. Smoothed over a width delta on both sides, this is

    alpha_k = C s_k clip((1 + delta - w.y_k) / (2 delta), 0, 1).

The best of several delta is taken. A smooth loss needs no smoothing, and has one such alpha.

Of a given alpha, the best multiple is taken. One from another C was scaled as its box: the alpha of
a row inside the margin grows with C, but that of rows on the margin hardly does.
"""

from __future__ import annotations

import numpy as np

from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.certificates.primal import multiply
from certsvm.kernels.losses import Loss, box_end, response, smoothing_centre
from certsvm.problem.base import BaseProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Vector
from certsvm.solvers.base import Start

_WIDTHS = tuple(4.0**-i for i in range(6))


def starting_alpha(problem: Problem, start: Start | None) -> Vector:
    """The best multiple of the alpha of ``start``, or one from the margins of its w; or zero."""
    if start is None:
        return np.zeros(problem.rows.n_rows)
    if start.alpha is None:
        return alpha_from_margins(problem, start.w)
    feasible = in_box(problem, start.alpha, problem.loss, problem.C)
    _, scale = dual_bound(dual_point(problem, feasible, "start"))
    return np.minimum(scale * feasible, box_end(problem.loss, problem.C, problem.weights))


def in_box(rows: Part | BaseProblem, alpha: Vector, loss: Loss, C: float) -> Vector:
    """The nearest feasible alpha of these rows."""
    # A row that has lost its weight has lost its alpha, even if its box has no end.
    clipped = np.clip(alpha, 0.0, box_end(loss, C, rows.weights))
    inside: Vector = np.where(rows.weights > 0.0, clipped, 0.0)
    return inside


def alpha_from_margins(problem: Problem, w: Vector) -> Vector:
    """The alpha with the largest dual bound, over all widths delta and multiples of alpha."""
    loss, C, weights = problem.loss, problem.C, problem.weights
    box, centre = box_end(loss, C, weights), smoothing_centre(loss, C, weights)
    products = np.empty(problem.rows.n_rows)
    multiply(problem, w, products)
    best, best_alpha = -np.inf, np.zeros(problem.rows.n_rows)
    for delta in _WIDTHS[:1] if loss.is_smooth else _WIDTHS:
        unclipped = response(loss, products, centre, C / (2.0 * delta), C, weights)
        alpha = np.clip(unclipped, 0.0, box)
        bound, scale = dual_bound(dual_point(problem, alpha, "margins"))
        if bound.low > best:
            best, best_alpha = bound.low, scale * alpha
    return np.minimum(best_alpha, box)
