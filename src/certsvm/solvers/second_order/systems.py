"""Solution of positive definite systems, by one thread or by several.

BLAS is held to one thread, so several threads share the blocks of the matrix. The blocks do not
depend on the number of threads.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from certsvm.kernels.cholesky import solve_small_system
from certsvm.parallel import ALONE, Team, single_threaded_blas
from certsvm.problem.base import BaseProblem
from certsvm.solvers.base import Solver, require

# Up to this size, calling LAPACK takes longer than the solution.
_SMALL = 32
# The size from which threads share the factorisation, and the size of their blocks.
_LEAST_SHARED, _BLOCK = 1000, 192


def require_small_systems(problem: BaseProblem, size: int, most: int, solver: Solver) -> None:
    """Raise if the systems would be too large."""
    require(
        size <= most,
        solver,
        f"X has {problem.n_rows} rows and {problem.dimension} columns (the intercept included), so "
        f"the systems to solve are of size {size}, more than max_size = {most}: they would be too "
        f"expensive. {problem.for_many_columns}, or raise max_size: "
        f"solver={type(solver).__name__}(max_size={size}).",
    )


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
    if b.ndim > 1 and len(b) <= _SMALL:
        columns = [solve(A.copy(), column.copy()) for column in b.T]
        found = [x for x in columns if x is not None]
        return np.column_stack(found) if len(found) == len(columns) else None
    if len(b) <= _SMALL:
        x = b.copy()
        return x if solve_small_system(A, x) else None
    with single_threaded_blas():
        try:
            if team.n_jobs == 1 or len(b) < _LEAST_SHARED:
                # The transpose is in LAPACK's order, so that no copy is made.
                scipy.linalg.cho_factor(A.T, overwrite_a=True, check_finite=False)
            else:
                _factorise(A, team)
        except np.linalg.LinAlgError:
            return None
        solution: NDArray[np.float64] = scipy.linalg.cho_solve((A.T, False), b, check_finite=False)
    return solution


def _factorise(A: NDArray[np.float64], team: Team) -> None:
    """Replace the lower triangle of A by Cholesky's factor, block column by block column."""
    n = len(A)
    for first in range(0, n, _BLOCK):
        last = min(first + _BLOCK, n)
        corner: Any = np.linalg.cholesky(A[first:last, first:last])
        A[first:last, first:last] = corner
        # Large blocks first: the last ones fill up the threads.
        starts = range(last, n, _BLOCK)[::-1]
        team.map(partial(_solve_block, A, corner, first), starts)
        team.map(partial(_update_block, A, first, last), starts)


@single_threaded_blas()
def _solve_block(A: NDArray[np.float64], corner: NDArray[np.float64], first: int, i: int) -> None:
    """Divide a block below the corner by the corner's transpose."""
    block = A[i : i + _BLOCK, first : first + len(corner)]
    block[:] = scipy.linalg.solve_triangular(corner, block.T, lower=True, check_finite=False).T


@single_threaded_blas()
def _update_block(A: NDArray[np.float64], first: int, last: int, i: int) -> None:
    """Subtract the products of the block column from the rows from i on, right of it."""
    end = min(i + _BLOCK, len(A))
    A[i:end, last:end] -= A[i:end, first:last] @ A[last:end, first:last].T
