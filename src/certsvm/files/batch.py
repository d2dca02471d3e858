"""Rows with labels and weights, as readers pass them on, and labels that are no classes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.problem.rows import Vector

FEW_ROWS = 20
"""So few rows may well be all different."""

# More labels than this are no classes if there are decimal numbers among them.
_MOST_DECIMALS = 20


class Batch(NamedTuple):
    """Rows (a CSR matrix or an array), their labels, and their weights if they have any."""

    X: Any
    y: NDArray[Any]
    weights: Vector | None = None

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)

    @property
    def nbytes(self) -> int:
        """Approximate size in memory."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        return int(size + 16 * len(self.y))

    def from_zero(self, base: int, n_columns: int) -> Batch:
        """Sparse rows whose columns count from ``base``, with so many that count from zero."""
        X, dtype = self.X, np.int32 if n_columns < 2**31 else np.int64
        indices = (X.indices - base).astype(dtype, copy=False)
        return self._replace(X=csr(X.data, indices, X.indptr, (len(self.y), n_columns)))

    def take(self, rows: slice | NDArray[np.int64]) -> Batch:
        """The rows of a slice, or copies of those at given positions."""
        weights = None if self.weights is None else self.weights[rows]
        return Batch(self.X[rows], self.y[rows], weights)

    def cut(self, edges: NDArray[np.int64]) -> Iterator[Batch]:
        """The rows from each edge to the next."""
        for first, last in itertools.pairwise(edges):
            yield self.take(slice(first, last))


def csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """A CSR matrix on these arrays, which are neither checked nor copied."""
    X = sp.csr_matrix(shape, dtype=data.dtype)
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def joined(batches: list[Batch]) -> Batch:
    """All rows in one batch; sparse rows become as wide as the widest."""
    if len(batches) == 1:
        return batches[0]
    y = np.concatenate([batch.y for batch in batches])
    weights = [batch.weights for batch in batches if batch.weights is not None]
    if sp.issparse(batches[0].X):
        width = max(batch.X.shape[1] for batch in batches)
        parts = [csr(X.data, X.indices, X.indptr, (X.shape[0], width)) for X, _, _ in batches]
        X = sp.vstack(parts, format="csr")
    else:
        X = np.concatenate([batch.X for batch in batches])
    return Batch(X, y, np.concatenate(weights) if weights else None)


def refuse_label_of_each_row(n_rows: int, n_classes: int) -> None:
    """Raise ValueError if each of many rows has a label of its own.

    Then the labels are row numbers, names or measurements, and no classes.

    Examples
    --------
    >>> refuse_label_of_each_row(1000, 10)
    >>> refuse_label_of_each_row(1000, 1000)
    Traceback (most recent call last):
    ...
    ValueError: each of the 1000 rows has a label of its own, ...
    """
    if n_rows > FEW_ROWS and n_classes >= n_rows:
        raise ValueError(
            f"each of the {n_rows} rows has a label of its own, so these are row numbers, names or "
            "measurements, not classes. Of a table, name the column of classes (--label, or "
            "label=...); in libsvm text, put a class at the beginning of each line."
        )


@lru_cache(maxsize=1024)
def label_number(text: str) -> float:
    """The number that a label is; raises a ValueError if float64 does not tell it from others.

    The float64, written with as many digits or as few as tell it from others, must be the label.

    Examples
    --------
    >>> label_number("0.1"), label_number("9007199254740992")
    (0.1, 9007199254740992.0)
    >>> label_number("9007199254740993")
    Traceback (most recent call last):
    ...
    ValueError: the label 9007199254740993 has more digits than float64 keeps: shorten it
    """
    number = float(text)
    try:
        n_digits = len(Decimal(text).as_tuple().digits)
        written = [f"{number:.{n_digits - 1}e}", *([repr(number)] if n_digits <= 17 else [])]
        kept = any(Decimal(text) == Decimal(other) for other in written)
    except InvalidOperation:
        # An exponent of twenty digits.
        kept = False
    if math.isfinite(number) and not kept:
        raise ValueError(f"the label {text[:40]} has more digits than float64 keeps: shorten it")
    return number


def refuse_measurements(classes: NDArray[Any]) -> None:
    """Raise ValueError if many labels are decimal numbers, and so hardly classes.

    Examples
    --------
    >>> import numpy as np
    >>> refuse_measurements(np.array([0.5, 1.5]))
    >>> refuse_measurements(np.linspace(0.0, 1.0, 50))
    Traceback (most recent call last):
    ...
    ValueError: there are 50 different labels, and decimal numbers among them (...
    """
    decimals = classes[classes != np.floor(classes)] if classes.dtype.kind == "f" else classes[:0]
    if decimals.size and classes.size > _MOST_DECIMALS:
        raise ValueError(
            f"there are {classes.size} different labels, and decimal numbers among them "
            f"({decimals[0]:g}), so these are measurements, not classes. Of a table, name the "
            "column of classes (--label, or label=...)."
        )
