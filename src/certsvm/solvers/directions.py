"""Newton's direction, in the space of the columns or in the space of the rows.

A step solves (I + Y' D Y) p = -g, where the rows of Y are the free support vectors and D holds
their weights: the Hessian of a smooth problem. The matrix is as large as the number of columns. If
there are fewer rows,

    p = Y' D^1/2 z - g,     (I + D^1/2 Y Y' D^1/2) z = D^1/2 Y g

(Sherman, Morrison, Woodbury) is a system as large as the number of free support vectors. The
products of all rows with each other are computed once, and shared by all problems on the same rows.

In exact arithmetic the two are the same. In floating point, the second loses what columns of small
scale add to products in which columns of large scale dominate. A step is then less exact, but the
gradient of the next one is not, so the method still converges.

A free intercept is not in the regulariser. So the last entry of the gradient is minus
rho sum_k label_k alpha_k, and the last entry of I in the Hessian is zero. At the minimum of a
smooth problem alpha is balanced; elsewhere its dual point is that of a balanced multiple
(``certificates.dual.ClassSums``).

BLAS is held to one thread: threads share the rows.
"""

from __future__ import annotations

import operator
import threading
import weakref
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from certsvm.kernels import objective
from certsvm.kernels.rows import CsrRows, Vector
from certsvm.kernels.vectors import inner
from certsvm.matrices import dense
from certsvm.problem.base import BaseProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Rows
from certsvm.resources import Team, single_threaded_blas
from certsvm.solvers.base import Solver, require

# Rows of a dense block, columns of one, and the cost of an entry of a dense product relative to a
# sparse one.
_ROWS_AT_ONCE, _COLUMNS_AT_ONCE, _DENSE_COST = 2048, 2048, 0.07
# The rows are worth a matrix per thread from so many multiplications on.
_LEAST_SHARED = 2_000_000
# The ridge in the space of the rows, relative to the size of the matrix and its largest entry: a
# few times what rounding may do to the eigenvalues.
_RIDGE = 1e-15
# A step moves a free intercept by no more than this times its size.
_LONGEST_STEP = 10.0


def require_small_systems(problem: BaseProblem, size: int, most: int, solver: Solver) -> None:
    """Raise if the systems would be too large."""
    name = type(solver).__name__
    require(
        size <= most, solver,
        f"X has {problem.n_rows} rows and {problem.dimension} columns (the intercept included), so "
        f"the systems to solve are of size {size}, more than max_size = {most}. "
        f"{problem.for_many_columns}, or raise max_size: solver={name}(max_size={size}).",
    )  # fmt: skip


def direction(
    problem: Problem, free: NDArray[np.int64], weights: Vector, w: Vector, gradient: Vector,
    team: Team,
) -> Vector:  # fmt: skip
    """-(I + sum_k weights_k y_k y_k')^-1 gradient, over the ``free`` rows, in the smaller space."""
    if problem.n_rows < problem.dimension:
        return direction_from_rows(problem, free, weights, w, gradient, team)
    return newton_direction(problem, gram(problem, free, weights, team), w, gradient)


def newton_direction(
    problem: BaseProblem, G: NDArray[np.float64], w: Vector, gradient: Vector
) -> Vector:
    """-(I + G)^-1 gradient, for the lower triangle of G, which is overwritten.

    If the intercept is free, the last entry of I is the ``intercept_ridge`` at w.
    """
    G.flat[:: len(G) + 1] += 1.0
    G[-1, -1] += intercept_ridge(problem, w, gradient) - 1.0
    solution = solve(G, gradient)
    # If rounding made the matrix indefinite: minus the gradient is always a direction of descent.
    return -gradient if solution is None else -solution


def gram_threads(n_rows: int, per_row: float, d: int, n_jobs: int) -> int:
    """How many threads share the rows in ``gram``, each with a matrix of its own."""
    work = n_rows * (min(0.5 * per_row**2, _DENSE_COST * d**2) + per_row)
    return n_jobs if work >= max(4 * n_jobs * d**2, _LEAST_SHARED) else 1


def gram(part: Part, which: NDArray[np.int64], weights: Vector, team: Team) -> NDArray[np.float64]:
    """sum_k weights_k y_k y_k' over the rows ``which``; at least the lower triangle is set."""
    arrays, d = part.rows.arrays, part.rows.dimension
    per_row = part.rows.n_stored / max(1, part.rows.n_rows)

    def gram_of(first: int, last: int) -> NDArray[np.float64]:
        G = np.zeros((d, d))
        if isinstance(arrays, CsrRows) and 0.5 * per_row**2 <= per_row + _DENSE_COST * d**2:
            objective.sparse_gram(arrays, which, weights, first, last, G)
            return G
        for start in range(first, last, _ROWS_AT_ONCE):
            now = slice(start, min(start + _ROWS_AT_ONCE, last))
            block = np.empty((now.stop - start, d))
            objective.scaled_rows(arrays, which[now], np.sqrt(weights[now]), block)
            with single_threaded_blas():
                G += block.T @ block
        return G

    if gram_threads(which.size, per_row, d, team.n_jobs) == 1:
        return gram_of(0, which.size)
    total: NDArray[np.float64] = reduce(operator.iadd, team.share(gram_of, which.size))
    return total


def direction_from_rows(
    problem: Problem, free: NDArray[np.int64], weights: Vector, w: Vector, gradient: Vector,
    team: Team,
) -> Vector:  # fmt: skip
    """-(I + sum_k weights_k y_k y_k')^-1 gradient, over the ``free`` rows, which ascend.

    The system is one of the space of the rows. If the intercept is free, K = Y Y' and g leave it
    out. With M = I + D^1/2 K D^1/2 and M t = D^1/2 1, its step is

        (rho t.D^1/2 Y g - g_b) / (ridge + rho^2 t.D^1/2 1),

    and z in the step of the coefficients becomes z - rho t times that. (Elimination of the
    intercept from the columns' system would subtract large numbers that are almost equal.)
    """
    rows, rho, g = problem.rows, problem.intercept_scaling, gradient.copy()
    # The share of the intercept in the products of rows.
    offset = 0.0
    if problem.free_intercept:
        offset, g[-1] = rho**2, 0.0
    K, n = row_products(rows, team), free.size
    scales, products = np.sqrt(weights) * problem.labels[free], np.empty(n)
    objective.products_of(rows.arrays, free, g, products)
    b = scales * products
    M = (K[np.ix_(free, free)] - offset) * scales * scales[:, None]
    largest = float((scales**2 * K.diagonal()[free]).max(initial=0.0))
    M.flat[:: n + 1] += 1.0 + _RIDGE * n * largest
    solution = solve(M, np.column_stack([b, scales]))
    if solution is None:
        return -gradient
    z, t = np.ascontiguousarray(solution.T)
    step = 0.0
    if problem.free_intercept:
        ridge = intercept_ridge(problem, w, gradient)
        step = rho * inner(t, b) - float(gradient[-1])
        step /= ridge + rho**2 * inner(t, scales)
    direction = -g
    objective.combination_of(rows.arrays, free, scales * (z - rho * step * t), direction)
    if problem.free_intercept:
        direction[-1] = step
    return direction


_PRODUCTS: weakref.WeakKeyDictionary[Rows, NDArray[np.float64]] = weakref.WeakKeyDictionary()
_PRODUCTS_LOCK = threading.Lock()


def row_products(rows: Rows, team: Team) -> NDArray[np.float64]:
    """The lower triangle of x_i.x_k, computed once and kept as long as the rows."""
    # Runs of several classes need the same products at the same time.
    with _PRODUCTS_LOCK:
        if rows not in _PRODUCTS:
            _PRODUCTS[rows] = _multiply_rows(rows, team)
        return _PRODUCTS[rows]


def _multiply_rows(rows: Rows, team: Team) -> NDArray[np.float64]:
    n, arrays, pairs = rows.n_rows, rows.arrays, rows.squared_column_lengths
    K = np.full((n, n), rows.intercept_scaling**2)
    if isinstance(arrays, CsrRows) and pairs <= _DENSE_COST * n**2 * rows.n_columns:
        columns = rows.matrix.tocsc()
        starts = columns.indptr.astype(np.int64)

        def multiply(first: int, last: int) -> None:
            objective.sparse_row_products(
                arrays, starts, columns.indices, columns.data, first, last, K
            )

        team.share(multiply, n, pairs)
        return K
    for start in range(0, rows.n_columns, _COLUMNS_AT_ONCE):
        block = dense(rows.matrix[:, start : start + _COLUMNS_AT_ONCE]).astype(
            np.float64, copy=False
        )
        with single_threaded_blas():
            K += block @ block.T
    return K


def solve(A: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """A^-1 b, given the lower triangle of A; None if A is not positive definite.

    ``A`` is C-ordered and is overwritten. ``b`` is a vector, or several as columns.

    Examples
    --------
    >>> solve(np.array([[4.0, 0.0], [2.0, 5.0]]), np.array([8.0, 12.0]))
    array([1., 2.])
    """
    if len(b) == 0:
        return b
    with single_threaded_blas():
        # The transpose is in LAPACK's order, so that no copy is made.
        _, solution, failed = dposv(A.T, b, overwrite_a=True)
    return None if failed or not np.isfinite(solution).all() else solution


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
