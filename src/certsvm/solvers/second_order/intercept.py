"""What a free intercept changes in the second-order method.

The regulariser does not contain the last entry of w. So the last entry of the gradient is minus
rho sum_k label_k alpha_k, and the last entry of I in the Hessian is zero. At the minimum of a
smooth problem alpha is balanced; elsewhere its dual point is that of a balanced multiple
(``certificates.dual.ClassSums``).
"""

from __future__ import annotations

from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector

# A step moves a free intercept by no more than this times its size.
_LONGEST_STEP = 10.0


def gradient_at(problem: BaseProblem, w: Vector, v: Vector) -> Vector:
    """The gradient at w, where ``v`` is sum_k alpha_k(w) y_k."""
    gradient: Vector = w - v
    if problem.free_intercept:
        gradient[-1] = -v[-1]
    return gradient


def squared_gradient(problem: BaseProblem, w: Vector, gradient: Vector) -> float:
    """|grad|^2; if the intercept is free, twice what its part of the gradient costs."""
    regularised = problem.regularised(gradient)
    square = inner(regularised, regularised)
    if problem.free_intercept:
        square += 2.0 * cost_of_balance(problem, w, float(gradient[-1]))
    return square


def cost_of_balance(problem: BaseProblem, w: Vector, last: float) -> float:
    """About what L loses when alpha is balanced; ``last`` is the last entry of sum_k alpha_k y_k.

    Scaling one side of alpha by 1 - r / sum lowers L by about r (1 + |b|), where r is the
    difference between the sums of both sides.
    """
    rho = problem.intercept_scaling
    return abs(last) / rho * (1.0 + rho * abs(float(w[-1])))


def intercept_ridge(problem: BaseProblem, w: Vector, gradient: Vector) -> float:
    """The last entry of I in the Hessian: one, or less if the intercept is free.

    Without a free support vector the Hessian says nothing of a free intercept. The ridge limits its
    step, and vanishes with the gradient.
    """
    if not problem.free_intercept:
        return 1.0
    return float(abs(gradient[-1]) / (_LONGEST_STEP * (1.0 + abs(w[-1])))) or 1.0
