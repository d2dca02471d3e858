"""Folds of cross-validation: views of one copy of the data.

A fold has all rows. Those that it is not trained on have weight zero, and solvers skip them; a row
that is drawn several times has a multiple of its weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.balls import RowSizes, row_sizes
from certsvm.certificates.held_out_error import HeldOutRows
from certsvm.fitting.sources import MemorySource, Source
from certsvm.kernels.held_out_error import products_with
from certsvm.problem.rows import Rows, Vector


class FoldSource(MemorySource):
    """The training rows of a fold.

    Its classes are those of the training rows, as if there were no others.

    Parameters
    ----------
    whole : MemorySource
        All rows.
    train : ndarray of shape (n_train,)
        Which rows to train on; a row may occur several times.

    Examples
    --------
    >>> whole = MemorySource(np.eye(4), np.array(["a", "b", "b", "c"]))
    >>> fold = FoldSource(whole, np.array([0, 1, 1]))
    >>> from certsvm.problem.objective import Objective
    >>> fold.classes.tolist(), fold.problem(0, Objective()).weights.tolist()
    (['a', 'b'], [1.0, 2.0, 0.0, 0.0])
    """

    def __init__(self, whole: MemorySource, train: NDArray[np.int64]) -> None:
        self._X, self._y, self.rows = whole._X, whole._y, whole.rows
        self.n_rows, self.n_columns = whole.n_rows, whole.n_columns
        self.intercept_scaling = whole.intercept_scaling
        self.feature_names = whole.feature_names
        weights = np.bincount(train, minlength=whole.n_rows).astype(np.float64)
        self.row_weights = weights if whole.row_weights is None else weights * whole.row_weights
        present = np.unique(whole.y_index[train])
        # Rows of other classes have weight zero, so that their position does not matter.
        self.position = np.full(whole.classes.size, -1, dtype=np.int64)
        self.position[present] = np.arange(present.size)
        self.y_index = np.maximum(self.position[whole.y_index], 0)
        totals = np.bincount(self.y_index, weights=self.row_weights, minlength=present.size)
        Source.__init__(self, whole.classes[present], totals.astype(np.float64), whole.class_weight)

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """The columns, with the intercept's, in which a row of positive weight has a value.

        The optimum is zero in all others.
        """
        assert self.row_weights is not None
        matrix, trained = self.rows.matrix, self.row_weights > 0.0
        columns = np.zeros(self.dimension, dtype=np.bool_)
        if sp.issparse(matrix):
            begin, end = matrix.indptr[0], matrix.indptr[-1]
            stored = np.repeat(trained, np.diff(matrix.indptr))
            columns[matrix.indices[begin:end][stored]] = True
        else:
            columns[: self.n_columns] = [
                bool((matrix[:, j] != 0.0)[trained].any()) for j in range(self.n_columns)
            ]
        columns[self.n_columns :] = True
        return columns


class Fold:
    """The rows that a fold is trained on, and those that it is not.

    Parameters
    ----------
    whole : MemorySource
        All rows.
    train, test : array-like of int
        Which rows to train on, and which to hold out.
    weights : ndarray of shape (n_rows,), default=None
        The weights of all rows in the error; None means that all are 1.

    Attributes
    ----------
    source : FoldSource
        The training rows.
    test : ndarray of shape (n_test,)
        The rows held out.
    held_out : HeldOutRows
        What bounds on the error need of them.
    """

    def __init__(
        self,
        whole: MemorySource,
        train: ArrayLike,
        test: ArrayLike,
        weights: Vector | None = None,
    ) -> None:
        self.train = _positions(train, whole.n_rows)
        self.test = _positions(test, whole.n_rows)
        self.source = FoldSource(whole, self.train)
        self._rows = whole.rows
        occupied = self.source.occupied
        self._unoccupied = None if bool(occupied.all()) else np.flatnonzero(~occupied)
        held_out = np.ones(self.test.size) if weights is None else weights[self.test]
        if not held_out.sum() > 0.0:
            raise ValueError("cv has a fold whose held-out rows have no weight: nothing to measure")
        self.held_out = HeldOutRows(
            sizes=_sizes(whole.rows, self.test, occupied),
            truth=self.source.position[whole.y_index[self.test]],
            weights=held_out,
        )

    def products(self, w: Vector) -> Vector:
        """Products with the rows held out, without columns that no training row has."""
        if self._unoccupied is not None and w[self._unoccupied].any():
            w = w.copy()
            w[self._unoccupied] = 0.0
        out = np.empty(self.test.size)
        products_with(self._rows.arrays, self.test, w, out)
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
    number = np.empty(source.n_rows, dtype=np.int64)
    number[order] = np.arange(source.n_rows) % n_folds
    return [
        Fold(source, np.flatnonzero(number != i), np.flatnonzero(number == i), source.row_weights)
        for i in range(n_folds)
    ]


def _positions(which: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    """Positions of rows, which splitters may give as a mask."""
    array: NDArray[Any] = np.asarray(which)
    if array.dtype == np.bool_ and array.shape == (n_rows,):
        return np.flatnonzero(array).astype(np.int64)
    positions = array.astype(np.int64, casting="same_kind")
    if positions.ndim != 1 or not positions.size:
        raise ValueError("cv must give the positions of the rows of each fold, at least one")
    positions = np.where(positions < 0, positions + n_rows, positions)
    if positions.min() < 0 or positions.max() >= n_rows:
        raise ValueError(f"cv gives rows that do not exist: there are {n_rows}")
    return positions


def _sizes(rows: Rows, which: NDArray[np.int64], occupied: NDArray[np.bool_]) -> RowSizes:
    matrix = rows.matrix[which].astype(np.float64)
    kept = occupied[: rows.n_columns]
    if not kept.all():
        if sp.issparse(matrix):
            matrix.data[~kept[matrix.indices]] = 0.0
            matrix.eliminate_zeros()
        else:
            matrix[:, ~kept] = 0.0
    squares, counts = row_sizes(matrix)
    rho = rows.intercept_scaling
    return RowSizes(squares + rho * rho, counts + int(rho > 0.0))
