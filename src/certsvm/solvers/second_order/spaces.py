"""Newton's direction, in the space of the columns or in the space of the rows.

A step solves (I + Y' D Y) p = -g, where the rows of Y are the free support vectors and D holds
their weights. The matrix is as large as the number of columns. If there are fewer rows,

    p = Y' D^1/2 z - g,     (I + D^1/2 Y Y' D^1/2) z = D^1/2 Y g

(Sherman, Morrison, Woodbury) is a system as large as the number of free support vectors. The
products of all rows with each other are computed once, and shared by all problems on the same rows.

In exact arithmetic the two are the same. In floating point, the second loses what columns of small
scale add to products in which columns of large scale dominate. A step is then less exact, but the
gradient of the next one is not, so the method still converges.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.gram import scaled_submatrix, sparse_row_products
from certsvm.kernels.objective import combination_of, products_of
from certsvm.kernels.rows import CsrRows, Vector
from certsvm.kernels.vectors import inner
from certsvm.parallel import Team, single_threaded_blas
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers.second_order.hessian import (
    DENSE_COST,
    gram,
    newton_direction,
)
from certsvm.solvers.second_order.intercept import intercept_ridge
from certsvm.solvers.second_order.systems import solve

# If rounding makes a matrix indefinite, its ridge is raised: at first to this times its size and
# its largest entry, then by the factor, so many times.
_FIRST_RIDGE, _RIDGE_FACTOR, _MOST_RIDGES = 1e-16, 100.0, 4
# Columns that are multiplied at once.
_COLUMNS_AT_ONCE = 2048
# Fewer multiplications are not worth sharing among threads.
_LEAST_SHARED = 2_000_000


class Space(ABC):
    """Where a step of Newton's method solves its system."""

    @abstractmethod
    def direction(
        self, free: NDArray[np.int64], weights: Vector, w: Vector, gradient: Vector
    ) -> Vector:
        """-(I + sum_k weights_k y_k y_k')^-1 gradient, over the ``free`` rows, which ascend.

        If the intercept is free, the last entry of I is the ``intercept_ridge`` at w.
        """


def space_of(problem: Problem, team: Team) -> Space:
    """The smaller space."""
    if problem.n_rows < problem.dimension:
        return RowSpace(problem, team)
    return ColumnSpace(problem, team)


class ColumnSpace(Space):
    """The space of the columns."""

    def __init__(self, problem: Problem, team: Team) -> None:
        self._problem = problem
        self._team = team

    def direction(
        self, free: NDArray[np.int64], weights: Vector, w: Vector, gradient: Vector
    ) -> Vector:
        """Solve a system as large as the number of columns."""
        G = gram(self._problem, free, weights, self._team)
        ridge = intercept_ridge(self._problem, w, gradient)
        return newton_direction(G, gradient, self._team, ridge)


class RowSpace(Space):
    """The space of the rows."""

    def __init__(self, problem: Problem, team: Team) -> None:
        self._problem = problem
        self._team = team
        self._room = np.empty(0)
        # The share of the intercept in the products of rows.
        self._offset = problem.intercept_scaling**2 if problem.free_intercept else 0.0

    def direction(
        self, free: NDArray[np.int64], weights: Vector, w: Vector, gradient: Vector
    ) -> Vector:
        """Solve a system as large as the number of free rows.

        If the intercept is free, K = Y Y' and g leave it out. With M = I + D^1/2 K D^1/2 and
        M t = D^1/2 1, its step is

            (rho t.D^1/2 Y g - g_b) / (ridge + rho^2 t.D^1/2 1),

        and z in the step of the coefficients becomes z - rho t times that. (Elimination of the
        intercept from the columns' system would subtract large numbers that are almost equal.)
        """
        problem, rows, rho = self._problem, self._problem.rows, self._problem.intercept_scaling
        scales = np.sqrt(weights) * np.sign(problem.signed_weights[free])
        products, g = np.empty(free.size), gradient
        if problem.free_intercept:
            g = np.append(gradient[:-1], 0.0)

        def multiply(first: int, last: int) -> None:
            products_of(rows.arrays, free, g, first, last, products)

        def combine(first: int, last: int) -> Vector:
            out = np.zeros(rows.dimension)
            combination_of(rows.arrays, free, steps, first, last, out)
            return out

        work = free.size * rows.n_stored // max(1, rows.n_rows)
        self._share(multiply, free.size, work)
        b = scales * products
        z = self._solve(free, scales, np.column_stack([b, scales]) if problem.free_intercept else b)
        if z is None:
            return -gradient
        intercept = 0.0
        if problem.free_intercept:
            z, t = np.ascontiguousarray(z.T)
            ridge = intercept_ridge(problem, w, gradient)
            intercept = rho * inner(t, b) - float(gradient[-1])
            intercept /= ridge + rho * rho * inner(t, scales)
            z -= rho * intercept * t
        steps = scales * z
        sums = self._share(combine, free.size, work)
        direction: Vector = sum(sums[1:], sums[0]) - g
        if problem.free_intercept:
            direction[-1] = intercept
        return direction

    def _solve(
        self, free: NDArray[np.int64], scales: Vector, b: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Solve (I + S K S) z = b; None if rounding makes the matrix far from definite."""
        K, n = row_products(self._problem.rows, self._team), free.size
        if self._room.size < n * n:
            self._room = np.empty(n * n)
        A, ridge = self._room[: n * n].reshape(n, n), 1.0

        def fill(first: int, last: int) -> None:
            scaled_submatrix(K, free, scales, self._offset, ridge, first, last, A)

        for trial in range(_MOST_RIDGES + 1):
            self._share(fill, n, n * n)
            z = solve(A, b, self._team)
            if z is not None:
                return z
            largest = float((scales**2 * K.diagonal()[free]).max(initial=0.0))
            ridge = 1.0 + _FIRST_RIDGE * n * largest * _RIDGE_FACTOR**trial
        return None

    def _share(self, task: Callable[[int, int], Any], pieces: int, work: int) -> list[Any]:
        if work < _LEAST_SHARED:
            return [task(0, pieces)]
        return self._team.share(task, pieces)


@dataclass
class _Entry:
    """The products of some rows with each other, once they are known."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    products: NDArray[np.float64] | None = None


_ENTRIES: weakref.WeakKeyDictionary[Rows, _Entry] = weakref.WeakKeyDictionary()
_ENTRIES_LOCK = threading.Lock()


def row_products(rows: Rows, team: Team) -> NDArray[np.float64]:
    """The lower triangle of x_i.x_k, computed once and kept as long as the rows."""
    with _ENTRIES_LOCK:
        entry = _ENTRIES.setdefault(rows, _Entry())
    with entry.lock:
        if entry.products is None:
            entry.products = _multiply_rows(rows, team)
        return entry.products


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
        if float((lengths**2).sum()) <= DENSE_COST * n**2 * rows.n_columns:
            arrays = rows.arrays

            def multiply_sparse(first: int, last: int) -> None:
                sparse_row_products(arrays, starts, columns.indices, columns.data, first, last, K)

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
