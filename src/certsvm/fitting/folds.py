"""Folds of cross-validation: views of one copy of the data.

A fold has all rows. Those that it is not trained on have weight zero, and solvers skip them; a row
that is drawn several times has a multiple of its weight.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.held_out_error import HeldOutRows
from certsvm.fitting.sources import MemorySource, Source
from certsvm.kernels.objective import products_of
from certsvm.problem.rows import Vector
from certsvm.verification.optimum_intervals import RowSizes, row_sizes


class Fold(MemorySource):
    """The rows that a fold is trained on, as a source, and those that it is not.

    Its classes are those of the training rows, as if there were no others.

    Parameters
    ----------
    whole : MemorySource
        All rows.
    train, test : array-like of int
        Which rows to train on, and which to hold out. A row may occur several times.
    weights : ndarray of shape (n_rows,), default=None
        The weights of all rows in the error; None means that all are 1.

    Attributes
    ----------
    test : ndarray of shape (n_test,)
        The rows held out.
    held_out : HeldOutRows
        What bounds on the error need of them.

    Examples
    --------
    >>> whole = MemorySource(np.eye(4), np.array(["a", "b", "b", "c"]))
    >>> fold = Fold(whole, [0, 1, 1], [2, 3])
    >>> from certsvm.problem.objective import Objective
    >>> fold.classes.tolist(), fold.problem(0, Objective()).weights.tolist()
    (['a', 'b'], [1.0, 2.0, 0.0, 0.0])
    """

    def __init__(
        self, whole: MemorySource, train: ArrayLike, test: ArrayLike, weights: Vector | None = None
    ) -> None:
        vars(self).update(vars(whole))
        rows = _positions(train, whole.n_rows, "to train on")
        self.test = _positions(test, whole.n_rows, "held out")
        counts = np.bincount(rows, minlength=whole.n_rows).astype(np.float64)
        self.row_weights = counts if whole.row_weights is None else counts * whole.row_weights
        present = np.unique(whole.y_index[rows])
        # Rows of other classes have weight zero, so that their position does not matter.
        position = np.full(whole.classes.size, -1, dtype=np.int64)
        position[present] = np.arange(present.size)
        self.y_index = np.maximum(position[whole.y_index], 0)
        totals = np.bincount(self.y_index, self.row_weights, present.size).astype(np.float64)
        Source.__init__(self, whole.classes[present], totals, whole.class_weight)
        weights = np.ones(whole.n_rows) if weights is None else np.asarray(weights, np.float64)
        held_out = weights[self.test]
        if not held_out.sum() > 0.0:
            raise ValueError("cv has a fold whose held-out rows have no weight: nothing to measure")
        columns = _occupied(self.rows.matrix, self.row_weights > 0.0)
        # The optimum is zero in columns in which no training row has a value.
        self._unoccupied = np.flatnonzero(~columns)
        squares, n_stored = row_sizes(self.rows.matrix[self.test][:, columns])
        rho = self.intercept_scaling
        sizes = RowSizes(squares + rho * rho, n_stored + int(rho > 0.0))
        truth = position[whole.y_index[self.test]]
        self.held_out = HeldOutRows(sizes.norms, sizes.counts, truth, weights=held_out)

    def products(self, w: Vector) -> Vector:
        """Products with the rows held out, without columns that no training row has."""
        if w[self._unoccupied].any():
            w = w.copy()
            w[self._unoccupied] = 0.0
        out = np.empty(self.test.size)
        products_of(self.rows.arrays, self.test, w, 0, out.size, out)
        return out


def stratified_folds(source: MemorySource, n_folds: int, seed: int) -> list[Fold]:
    """Folds of nearly the same size, each with nearly the same share of every class.

    The weights of the rows count in the error; those of classes count in training only.

    Parameters
    ----------
    source : MemorySource
        All rows.
    n_folds : int
        Their number.
    seed : int
        Of the random choice.

    Returns
    -------
    folds : list of Fold
        Every row is held out in one of them.

    Examples
    --------
    >>> source = MemorySource(np.eye(6), np.array([0, 0, 0, 1, 1, 1]))
    >>> [fold.test.size for fold in stratified_folds(source, 3, seed=0)]
    [2, 2, 2]
    """
    if source.n_rows < n_folds:
        raise ValueError(f"{n_folds} folds need at least as many rows, not {source.n_rows}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(source.n_rows)
    # Sorted by class, the rows are dealt to the folds in turn.
    order = order[np.argsort(source.y_index[order], kind="stable")]
    tests = [np.sort(order[i::n_folds]) for i in range(n_folds)]
    return [Fold(source, np.setdiff1d(order, test), test, source.row_weights) for test in tests]


def _positions(which: ArrayLike, n_rows: int, purpose: str) -> NDArray[np.int64]:
    """Positions of rows, which splitters may give as a mask."""
    array: NDArray[Any] = np.asarray(which)
    positions = np.zeros(0, dtype=np.int64)
    if array.size:
        kind = np.bool_ if array.dtype == np.bool_ else np.int64
        with suppress(IndexError):
            positions = np.arange(n_rows)[array.astype(kind, casting="same_kind")]
    if positions.ndim != 1 or not positions.size:
        raise ValueError(
            f"cv must give the rows {purpose} of each fold as a mask or as a list of positions, at "
            f"least one and each below {n_rows}, got an array of shape {array.shape}"
        )
    return positions


def _occupied(matrix: Any, trained: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The columns in which a row that is trained on has a value."""
    if not sp.issparse(matrix):
        return np.array([bool(matrix[trained, j].any()) for j in range(matrix.shape[1])])
    stored = np.repeat(trained, np.diff(matrix.indptr))
    used = matrix.indices[matrix.indptr[0] : matrix.indptr[-1]][stored]
    return np.bincount(used, minlength=matrix.shape[1]) > 0
