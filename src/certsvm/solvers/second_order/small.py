"""Steps of the second-order method on few rows and columns, in one compiled loop.

On a hundred rows the arithmetic of a step takes a few microseconds, and the Python around it a
hundred times as long. So the steps are made here, on a dense copy of the rows: at first on the
smoothed hinge, then by the method of multipliers (``schedule``). The result proves nothing: it is
the start of an ordinary run, which evaluates it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import reordering_kernel
from certsvm.kernels.losses import (
    Loss,
    box_end,
    dual_penalty,
    loss_value,
    response,
    response_slope,
    smoothing_centre,
)
from certsvm.kernels.rows import Vector
from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.solvers.base import Start
from certsvm.solvers.second_order.schedule import (
    FIRST_SIGMA,
    LARGEST_SIGMA,
    MEMORY,
    MOST_STEPS,
    MULTIPLIER_GROWTH,
)
from certsvm.solvers.second_order.smoothing import SEARCH, clipped_sum, next_trial

# With more columns, LAPACK is so much faster than a plain loop that it makes up for the overhead.
MOST_COLUMNS = 64
_MOST_STEPS, _PATIENCE = 200, 5
# The relative gap of a solution to machine precision, and the one at which to lose patience if it
# no longer halves.
_SOLVED, _NEARLY_SOLVED = 4e-16, 1e-9

_ACCURACY = MEMORY.accuracy


def solved_start(problem: Problem) -> Start | None:
    """A start at the optimum up to rounding; None if the steps made here do not lead near it.

    They are made with few columns, if the intercept is penalised.

    Examples
    --------
    >>> from certsvm.problem.rows import Rows
    >>> problem = Problem(Rows(np.array([[1.0, 1.0], [1.0, -1.0]])), labels=[1, -1], C=10.0)
    >>> solved_start(problem).w
    array([0., 1.])
    """
    active, rows, d = problem.active, problem.rows, problem.dimension
    if d > MOST_COLUMNS or problem.free_intercept:
        return None
    weights, matrix = problem.weights[active], rows.matrix[active]
    # The vectors y_k.
    Y = np.full((active.size, d), problem.intercept_scaling)
    Y[:, : rows.n_columns] = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    Y *= problem.labels[active, None]
    alpha_hat: Vector = smoothing_centre(problem.loss, problem.C, weights)
    w, per_row = np.zeros(d), np.empty((4, active.size))
    steps, sigma, gap = solve(
        problem.loss, Y, weights, problem.C, w, alpha_hat, per_row, np.empty((2, d)),
        np.empty((d, d)), np.empty(SEARCH),
    )  # fmt: skip
    if not gap <= _NEARLY_SOLVED:
        return None
    alpha = np.zeros(problem.n_rows)
    alpha[active] = per_row[0]
    return Start(w, steps, alpha, sigma)


@reordering_kernel
def solve(
    loss: Loss, Y: NDArray[np.float64], weights: Vector, C: float, w: Vector, alpha_hat: Vector,
    per_row: NDArray[np.float64], per_column: NDArray[np.float64], G: NDArray[np.float64],
    search: Vector,
) -> tuple[int, float, float]:  # fmt: skip
    """Make steps until w is optimal up to rounding.

    Writes w, alpha_hat and, into the first row of ``per_row``, alpha(w). The arguments behind are
    scratch memory. Returns the number of steps, sigma divided by C, and the relative gap.
    """
    alpha, unclipped, products, along = per_row[0], per_row[1], per_row[2], per_row[3]
    gradient, direction = per_column[0], per_column[1]
    best_primal, best_dual, gap, least, since = np.inf, 0.0, np.inf, np.inf, 0
    sigma, steps, steps_here = FIRST_SIGMA, 0, 0
    multiply(Y, w, products)
    while steps < _MOST_STEPS:
        primal, dual = evaluate(
            loss, Y, weights, C, sigma * C, w, alpha_hat, products, unclipped, alpha, gradient
        )
        best_primal, best_dual = min(best_primal, primal), max(best_dual, dual)
        gap = best_primal - best_dual
        if gap < 0.5 * least:
            least, since = gap, 0
        since += 1
        stuck = since > _PATIENCE and gap <= _NEARLY_SOLVED * best_dual
        if gap <= _SOLVED * best_dual or stuck:
            break
        # If the loss is smooth, neither alpha_hat nor sigma matters.
        solved = 0.5 * inner(gradient, gradient) <= _ACCURACY * gap
        if solved or steps_here >= MOST_STEPS:
            for k in range(alpha.size):
                alpha_hat[k] = alpha[k]
            sigma, steps_here = min(MULTIPLIER_GROWTH * sigma, LARGEST_SIGMA), 0
            evaluate(
                loss, Y, weights, C, sigma * C, w, alpha_hat, products, unclipped, alpha, gradient
            )
        hessian(loss, Y, weights, C, sigma * C, unclipped, G)
        for j in range(w.size):
            direction[j] = -gradient[j]
        if not solve_small_system(G, direction):
            break
        multiply(Y, direction, along)
        linear, square, searching = inner(w, direction), inner(direction, direction), True
        search[:] = 0.0
        while searching:
            falls = clipped_sum(loss, unclipped, weights, sigma * C, C, along, search[0])
            searching = next_trial(search, linear + search[0] * square - falls)
        for j in range(w.size):
            w[j] += search[0] * direction[j]
        # Not updated by t times those of the direction, which would add up rounding.
        multiply(Y, w, products)
        steps, steps_here = steps + 1, steps_here + 1
    return steps, sigma, gap / best_dual if best_dual > 0.0 else np.inf


@reordering_kernel
def multiply(Y: NDArray[np.float64], w: Vector, out: Vector) -> None:
    """Write w.y_k."""
    for k in range(out.size):
        out[k] = inner(Y[k], w)


@reordering_kernel
def evaluate(
    loss: Loss, Y: NDArray[np.float64], weights: Vector, C: float, sigma: float, w: Vector,
    alpha_hat: Vector, products: Vector, unclipped: Vector, alpha: Vector, gradient: Vector,
) -> tuple[float, float]:  # fmt: skip
    """Write alpha(w), unclipped and clipped, and the gradient; return J and L."""
    losses, alpha_sum, penalty = 0.0, 0.0, 0.0
    gradient[:] = 0.0
    for k in range(products.size):
        unclipped[k] = response(loss, products[k], alpha_hat[k], sigma, C, weights[k])
        alpha[k] = min(max(unclipped[k], 0.0), box_end(loss, C, weights[k]))
        losses += weights[k] * loss_value(loss, products[k])
        alpha_sum += alpha[k]
        penalty += dual_penalty(loss, alpha[k], C, weights[k])
        if alpha[k] > 0.0:
            for j in range(w.size):
                gradient[j] += alpha[k] * Y[k, j]
    # Up to here it is sum_k alpha_k y_k.
    square = inner(gradient, gradient) + 2.0 * penalty
    scale = min(1.0, alpha_sum / square) if square > 0.0 else 1.0
    for j in range(w.size):
        gradient[j] = w[j] - gradient[j]
    primal = 0.5 * inner(w, w) + C * losses
    return primal, scale * (alpha_sum - 0.5 * scale * square)


@reordering_kernel
def hessian(
    loss: Loss, Y: NDArray[np.float64], weights: Vector, C: float, sigma: float, unclipped: Vector,
    G: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the lower triangle of the Hessian, I + slope sum_k s_k y_k y_k' over the free rows."""
    slope = response_slope(loss, sigma, C)
    G[:] = 0.0
    for i in range(G.shape[0]):
        G[i, i] = 1.0
    for k in range(unclipped.size):
        if 0.0 < unclipped[k] < box_end(loss, C, weights[k]):
            for i in range(G.shape[0]):
                factor = slope * weights[k] * Y[k, i]
                for j in range(i + 1):
                    G[i, j] += factor * Y[k, j]


@reordering_kernel
def solve_small_system(A: NDArray[np.float64], b: Vector) -> bool:
    """Replace b by A^-1 b, given the lower triangle of A; False if A is not positive definite.

    Cholesky's factor replaces the lower triangle of A.
    """
    n = b.size
    for i in range(n):
        for j in range(i):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / A[j, j]
        total = A[i, i]
        for k in range(i):
            total -= A[i, k] * A[i, k]
        if not total > 0.0:
            return False
        A[i, i] = math.sqrt(total)
    for i in range(n):
        total = b[i]
        for k in range(i):
            total -= A[i, k] * b[k]
        b[i] = total / A[i, i]
    for i in range(n - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, n):
            total -= A[k, i] * b[k]
        b[i] = total / A[i, i]
    return True
