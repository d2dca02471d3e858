"""The Hessian of a smooth problem, I + sum_k weights_k y_k y_k', and Newton's direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.gram import scaled_rows, sparse_gram
from certsvm.kernels.objective import weighted_sum_of
from certsvm.kernels.rows import CsrRows, Vector
from certsvm.parallel import ALONE, Team, single_threaded_blas
from certsvm.problem.part import Part
from certsvm.solvers.second_order.systems import solve

# Fewer products are not worth sharing among threads.
_LEAST_SHARED_PRODUCTS = 2_000_000
# Rows of a dense block, and the cost of an entry of a dense product relative to a sparse one.
_ROWS_AT_ONCE, DENSE_COST = 2048, 0.07


def newton_direction(
    G: NDArray[np.float64], gradient: Vector, team: Team = ALONE, ridge: float = 1.0
) -> Vector:
    """-(I + G)^-1 gradient; ``G`` is overwritten.

    The last entry of I is ``ridge``: less than one if the intercept is free.
    """
    G[np.diag_indices_from(G)] += 1.0
    G[-1, -1] += ridge - 1.0
    solution = solve(G, gradient, team)
    # If rounding made the matrix indefinite: minus the gradient is always a direction of descent.
    return -gradient if solution is None else -solution


@single_threaded_blas()
def symmetric_product(G: NDArray[np.float64], v: Vector) -> Vector:
    """G v for a symmetric matrix, given its lower triangle."""
    product: Vector = np.tril(G) @ v + np.tril(G, -1).T @ v
    return product


def sum_of_rows(part: Part, which: NDArray[np.int64], team: Team) -> Vector:
    """sum_k s_k y_k over the rows ``which``."""
    rows = part.rows

    def add_up(first: int, last: int) -> Vector:
        out = np.zeros(rows.dimension)
        weighted_sum_of(rows.arrays, part.signed_weights, which, first, last, out)
        return out

    work = which.size * rows.n_stored / max(1, rows.n_rows)
    if work < _LEAST_SHARED_PRODUCTS:
        return add_up(0, which.size)
    total: Vector = np.sum(team.share(add_up, which.size), axis=0)
    return total


def gram_matrices(n_rows: int, n_stored: int, d: int, n_jobs: int) -> int:
    """How many matrices of size d x d ``gram`` may hold at once for so many rows."""
    per_row = n_stored / max(1, n_rows)
    # A product of dense rows is added to the sum.
    at_once = 1 if _is_sparse(per_row, d) else 2
    return at_once * (n_jobs if _is_shared(n_rows, per_row, d, n_jobs) else 1)


def _is_sparse(per_row: float, d: int) -> bool:
    return not per_row + DENSE_COST * d**2 < 0.5 * per_row**2


def _is_shared(n_rows: int, per_row: float, d: int, n_jobs: int) -> bool:
    """Whether the rows justify a matrix per thread."""
    work = n_rows * (min(0.5 * per_row**2, DENSE_COST * d**2) + per_row)
    return work >= max(4 * n_jobs * d**2, _LEAST_SHARED_PRODUCTS)


def gram(part: Part, which: NDArray[np.int64], weights: Vector, team: Team) -> NDArray[np.float64]:
    """sum_k weights_k y_k y_k' over the rows ``which``; at least the lower triangle is set."""
    rows = part.rows
    d = rows.dimension
    per_row = rows.n_stored / max(1, rows.n_rows)
    sparse = None
    if isinstance(rows.arrays, CsrRows) and _is_sparse(per_row, d):
        sparse = rows.arrays
    ascending = sparse is not None and rows.ascending

    def gram_of(first: int, last: int) -> NDArray[np.float64]:
        G = np.zeros((d, d))
        if sparse is not None:
            sparse_gram(sparse, which, weights, ascending, first, last, G)
            return G
        block = np.empty((min(_ROWS_AT_ONCE, last - first), d))
        for start in range(first, last, _ROWS_AT_ONCE):
            now = slice(start, min(start + _ROWS_AT_ONCE, last))
            filled = block[: now.stop - now.start]
            scaled_rows(rows.arrays, which[now], np.sqrt(weights[now]), filled)
            with single_threaded_blas():
                G += filled.T @ filled
        return G

    if not _is_shared(which.size, per_row, d, team.n_jobs):
        return gram_of(0, which.size)
    parts = team.share(gram_of, which.size)
    total: NDArray[np.float64] = parts[0]
    for other in parts[1:]:
        total += other
    return total
