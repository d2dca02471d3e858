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

BLAS is held to one thread, so several threads share the blocks of a large system. The blocks do not
depend on the number of threads.
"""

from __future__ import annotations

import operator
import threading
import weakref
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dposv, dpotrs

from certsvm.kernels import objective
from certsvm.kernels.rows import CsrRows, Vector
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Rows
from certsvm.resources import ALONE, Team, single_threaded_blas
from certsvm.solvers.base import Solver, require

# The size from which threads share the factorisation, and the size of their blocks.
_LEAST_SHARED_SIZE, _BLOCK = 1000, 192
# The rows are worth a matrix per thread from so many multiplications on.
_LEAST_SHARED = 2_000_000
# Rows of a dense block, columns of one, and the cost of an entry of a dense product relative to a
# sparse one.
_ROWS_AT_ONCE, _COLUMNS_AT_ONCE, _DENSE_COST = 2048, 2048, 0.07
# If rounding makes a matrix indefinite, its ridge is raised: at first to this times its size and
# its largest entry, then by the factor, so many times.
_FIRST_RIDGE, _RIDGE_FACTOR, _MOST_RIDGES = 1e-16, 100.0, 4
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


def newton_direction(
    problem: BaseProblem, G: NDArray[np.float64], w: Vector, gradient: Vector, team: Team
) -> Vector:
    """-(I + G)^-1 gradient, for the lower triangle of G, which is overwritten.

    If the intercept is free, the last entry of I is the ``intercept_ridge`` at w.
    """
    G.flat[:: len(G) + 1] += 1.0
    G[-1, -1] += intercept_ridge(problem, w, gradient) - 1.0
    solution = solve(G, gradient, team)
    # If rounding made the matrix indefinite: minus the gradient is always a direction of descent.
    return -gradient if solution is None else -solution


def gram_matrices(n_rows: int, n_stored: int, d: int, n_jobs: int) -> int:
    """How many matrices of size d x d ``gram`` may hold at once for so many rows."""
    per_row = n_stored / max(1, n_rows)
    # A product of dense rows is added to the sum.
    at_once = 1 if _is_sparse(per_row, d) else 2
    return at_once * (n_jobs if _is_shared(n_rows, per_row, d, n_jobs) else 1)


def _is_sparse(per_row: float, d: int) -> bool:
    return not per_row + _DENSE_COST * d**2 < 0.5 * per_row**2


def _is_shared(n_rows: int, per_row: float, d: int, n_jobs: int) -> bool:
    """Whether the rows justify a matrix per thread."""
    work = n_rows * (min(0.5 * per_row**2, _DENSE_COST * d**2) + per_row)
    return work >= max(4 * n_jobs * d**2, _LEAST_SHARED)


def gram(part: Part, which: NDArray[np.int64], weights: Vector, team: Team) -> NDArray[np.float64]:
    """sum_k weights_k y_k y_k' over the rows ``which``; at least the lower triangle is set."""
    rows = part.rows
    d = rows.dimension
    per_row = rows.n_stored / max(1, rows.n_rows)
    sparse = None
    if isinstance(rows.arrays, CsrRows) and _is_sparse(per_row, d):
        sparse = rows.arrays

    def gram_of(first: int, last: int) -> NDArray[np.float64]:
        G = np.zeros((d, d))
        if sparse is not None:
            objective.sparse_gram(sparse, which, weights, first, last, G)
            return G
        block = np.empty((min(_ROWS_AT_ONCE, last - first), d))
        for start in range(first, last, _ROWS_AT_ONCE):
            now = slice(start, min(start + _ROWS_AT_ONCE, last))
            filled = block[: now.stop - now.start]
            objective.scaled_rows(rows.arrays, which[now], np.sqrt(weights[now]), filled)
            with single_threaded_blas():
                G += filled.T @ filled
        return G

    if not _is_shared(which.size, per_row, d, team.n_jobs):
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
    rows, rho = problem.rows, problem.intercept_scaling
    scales = np.sqrt(weights) * np.sign(problem.signed_weights[free])
    products, g = np.empty(free.size), gradient
    if problem.free_intercept:
        g = np.append(gradient[:-1], 0.0)
    objective.products_of(rows.arrays, free, g, products)
    b = scales * products
    both = np.column_stack([b, scales]) if problem.free_intercept else b
    z = _solve_for_rows(problem, free, scales, both, team)
    if z is None:
        return -gradient
    intercept = 0.0
    if problem.free_intercept:
        z, t = np.ascontiguousarray(z.T)
        ridge = intercept_ridge(problem, w, gradient)
        intercept = rho * inner(t, b) - float(gradient[-1])
        intercept /= ridge + rho * rho * inner(t, scales)
        z -= rho * intercept * t
    direction = -g
    objective.combination_of(rows.arrays, free, scales * z, direction)
    if problem.free_intercept:
        direction[-1] = intercept
    return direction


def _solve_for_rows(
    problem: Problem, free: NDArray[np.int64], scales: Vector, b: NDArray[np.float64], team: Team
) -> NDArray[np.float64] | None:
    """Solve (I + S K S) z = b; None if rounding makes the matrix far from definite."""
    K, n = row_products(problem.rows, team), free.size
    # The share of the intercept in the products of rows.
    offset = problem.intercept_scaling**2 if problem.free_intercept else 0.0
    ridge = 1.0
    for trial in range(_MOST_RIDGES + 1):
        A = K[np.ix_(free, free)]
        A -= offset
        A *= scales
        A *= scales[:, None]
        A.flat[:: n + 1] += ridge
        z = solve(A, b, team)
        if z is not None:
            return z
        largest = float((scales**2 * K.diagonal()[free]).max(initial=0.0))
        ridge = 1.0 + _FIRST_RIDGE * n * largest * _RIDGE_FACTOR**trial
    return None


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
    n = rows.n_rows
    K = np.full((n, n), rows.intercept_scaling**2)
    # Runs of rows of about the same area in the lower triangle.
    n_runs = max(1, min(n // 32, 4 * team.n_jobs + 4))
    edges = (n * np.sqrt(np.arange(n_runs + 1) / n_runs)).astype(np.int64)
    runs = edges[:-1].tolist(), edges[1:].tolist()
    if isinstance(rows.arrays, CsrRows):
        columns = rows.matrix.tocsc()
        starts = columns.indptr.astype(np.int64)
        lengths = np.diff(starts).astype(np.float64)
        if float((lengths**2).sum()) <= _DENSE_COST * n**2 * rows.n_columns:
            arrays = rows.arrays

            def multiply_sparse(first: int, last: int) -> None:
                objective.sparse_row_products(
                    arrays, starts, columns.indices, columns.data, first, last, K
                )

            team.map(multiply_sparse, *runs)
            return K
    else:
        columns = rows.matrix
    for start in range(0, rows.n_columns, _COLUMNS_AT_ONCE):
        block = columns[:, start : start + _COLUMNS_AT_ONCE]
        dense = np.ascontiguousarray(
            block if isinstance(block, np.ndarray) else block.toarray(), dtype=np.float64
        )

        @single_threaded_blas()
        def multiply_dense(first: int, last: int, dense: NDArray[np.float64] = dense) -> None:
            K[first:last, :last] += dense[first:last] @ dense[:last].T

        team.map(multiply_dense, *runs)
    return K


def solve(
    A: NDArray[np.float64], b: NDArray[np.float64], team: Team = ALONE
) -> NDArray[np.float64] | None:
    """A^-1 b, given the lower triangle of A; None if A is not positive definite.

    ``A`` is C-ordered and is overwritten. ``b`` is a vector, or several as columns.

    Examples
    --------
    >>> solve(np.array([[4.0, 0.0], [2.0, 5.0]]), np.array([8.0, 12.0]))
    array([1., 2.])
    """
    if len(b) == 0:
        return b
    shared = team.n_jobs > 1 and len(b) >= _LEAST_SHARED_SIZE
    if shared and not _factorise(A, team):
        return None
    with single_threaded_blas():
        # The transpose is in LAPACK's order, so that no copy is made.
        if shared:
            solution, failed = dpotrs(A.T, b)
        else:
            _, solution, failed = dposv(A.T, b, overwrite_a=True)
    return None if failed or not np.isfinite(solution).all() else solution


def _factorise(A: NDArray[np.float64], team: Team) -> bool:
    """Replace the lower triangle of A by Cholesky's factor, block column by block column."""
    n = len(A)
    for first in range(0, n, _BLOCK):
        last = min(first + _BLOCK, n)

        @single_threaded_blas()
        def finish(i: int, corner: Any, first: int = first, last: int = last) -> None:
            """Subtract what the columns before contribute, and divide by the corner's transpose."""
            block = A[i : i + _BLOCK, first:last]
            block -= A[i : i + _BLOCK, :first] @ A[first:last, :first].T
            if corner is None:
                block[:] = np.linalg.cholesky(block)
            else:
                block[:] = solve_triangular(corner, block.T, lower=True, check_finite=False).T

        try:
            finish(first, None)
        except np.linalg.LinAlgError:
            return False
        rest = range(last, n, _BLOCK)
        team.map(finish, rest, [A[first:last, first:last]] * len(rest))
    return True


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
