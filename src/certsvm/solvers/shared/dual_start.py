"""A feasible alpha to begin with: a given one, or one read off the margins of a given w.

At the optimum alpha_k is C s_k where w.y_k < 1, zero where w.y_k > 1, and anything between on the
margin. For a w near the optimum, then,

    alpha_k = C s_k clip((1 + delta - w.y_k) / (2 delta), 0, 1)

with a small delta is feasible and nearly optimal: it is the dual point of the hinge loss with its
kink rounded off over a width of delta. Which delta is best is found by trying.
"""

from __future__ import annotations

import numpy as np

from certsvm.certificates.dual import dual_bound, dual_point
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
        feasible: Vector = np.clip(start.alpha, 0.0, problem.C * problem.weights)
        return feasible
    return alpha_from_margins(problem, start.w)


def alpha_from_margins(problem: Problem, w: Vector) -> Vector:
    """The best feasible alpha of the family above, already scaled."""
    box = problem.C * problem.weights
    products = np.empty(problem.rows.n_rows)
    margins(problem.rows.arrays, problem.signed_weights, w, 0, problem.rows.n_rows, products)
    best, best_alpha = -np.inf, np.zeros(problem.rows.n_rows)
    for delta in _WIDTHS:
        alpha = box * np.clip((1.0 + delta - products) / (2.0 * delta), 0.0, 1.0)
        bound, scale = dual_bound(dual_point(problem, alpha, "margins"))
        if bound.low > best:
            best, best_alpha = bound.low, scale * alpha
    return np.minimum(best_alpha, box)
