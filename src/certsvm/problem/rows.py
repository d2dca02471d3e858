"""Validated rows, used in place.

Float32 and float64 input, CSR with ascending columns or C-ordered dense, is never copied: ``Rows``
holds read-only views of the caller's arrays. Anything else is converted once. Validation takes two
passes over the indices and one over the values: the squared norms, which every solver needs, are
finite exactly if the values are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.kernels.objective import squared_norms
from certsvm.kernels.rows import CsrRows, DenseRows, RowArrays, Vector, columns_ascend
from certsvm.kernels.vectors import inner
from certsvm.matrices import checked_matrix, read_only
from certsvm.resources import require_time
from certsvm.scalars import as_float

_VALUES_PER_CHUNK = 1 << 16
_MOST_CHUNKS = 1024


class Rows:
    """Validated, immutable rows ``[x_k, rho]``, shared by all problems on the same data.

    Parameters
    ----------
    X : array or SciPy sparse matrix or sparse array of shape (n_rows, n_columns)
        Used in place when it is CSR with ascending columns or C-ordered dense, of type float32 or
        float64.
    intercept_scaling : float, default=0.0
        The augmentation rho >= 0. Zero means that there is no extra dimension.

    Attributes
    ----------
    arrays : CsrRows or DenseRows
        The arrays that kernels take.
    n_rows, n_columns : int
        Shape of the data.
    squared_norms : ndarray of shape (n_rows,)
        Squared norms of the augmented rows.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Rows(np.array([[3.0, 4.0], [0.0, 1.0]]), intercept_scaling=2.0)
    >>> rows.dimension, rows.squared_norms.tolist()
    (3, [29.0, 5.0])
    """

    def __init__(self, X: Any, *, intercept_scaling: float = 0.0) -> None:
        self.intercept_scaling = as_float(intercept_scaling, "intercept_scaling")
        if not 0.0 <= self.intercept_scaling < 1e154:
            must = "a number >= 0 whose square is finite"
            raise ValueError(f"intercept_scaling must be {must}, got {intercept_scaling!r}")
        X = checked_matrix(X)
        self.n_rows, self.n_columns = (int(n) for n in X.shape)
        arrays = _arrays_of(X, self.intercept_scaling)
        if isinstance(arrays, CsrRows) and (X.indptr[0] != 0 or not columns_ascend(arrays)):
            arrays = _arrays_of(_with_ascending_columns(X), self.intercept_scaling)
        self.arrays = arrays
        self.squared_norms = self.squares_with(self.intercept_scaling)
        self._refuse_non_finite()

    def squares_with(self, intercept: float) -> Vector:
        """Squared norms of the rows with this entry for the intercept."""
        values, starts = self.arrays.values, np.arange(self.n_rows + 1) * self.n_columns
        if isinstance(self.arrays, CsrRows):
            starts = self.arrays.indptr
        squares = np.empty(self.n_rows)
        squared_norms(values.reshape(-1), read_only(starts), intercept, squares)
        return squares

    @property
    def dimension(self) -> int:
        """Length of weight vectors: ``n_columns``, plus one if there is an intercept."""
        return dimension_of(self.n_columns, self.intercept_scaling)

    @property
    def n_stored(self) -> int:
        """Number of stored values."""
        if isinstance(self.arrays, CsrRows):
            return int(self.arrays.indptr[-1])
        return self.arrays.values.size

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of stored values in each row, including the intercept's."""
        extra = int(self.intercept_scaling > 0)
        if isinstance(self.arrays, CsrRows):
            return np.diff(self.arrays.indptr) + extra
        return np.full(self.n_rows, self.n_columns + extra, dtype=np.int64)

    @cached_property
    def squared_lengths(self) -> float:
        """Sum of the squares of the rows' lengths: the cost of Gram matrices."""
        lengths = self.lengths.astype(np.float64)
        return inner(lengths, lengths)

    @cached_property
    def squared_column_lengths(self) -> float:
        """Sum of the squares of the columns' numbers of stored values, the intercept left out."""
        if isinstance(self.arrays, CsrRows):
            used = self.arrays.indices[: self.n_stored]
            lengths = np.bincount(used.astype(np.int64)).astype(np.float64)
            return inner(lengths, lengths)
        return float(self.n_columns) * self.n_rows**2

    @property
    def nbytes(self) -> int:
        """Size of the data in memory."""
        return sum(a.nbytes for a in self.arrays if isinstance(a, np.ndarray))

    @cached_property
    def chunk_starts(self) -> NDArray[np.int64]:
        """Where the chunks begin in which losses are summed, and the end.

        They depend on the data alone, so sums have the same bits for any number of threads.
        """
        n_chunks = min(_MOST_CHUNKS, self.n_rows, 1 + self.n_stored // _VALUES_PER_CHUNK)
        return np.arange(n_chunks + 1, dtype=np.int64) * self.n_rows // n_chunks

    @cached_property
    def longest_chunk(self) -> int:
        """The largest number of rows in a chunk."""
        return int(np.diff(self.chunk_starts).max())

    @cached_property
    def norms(self) -> Vector:
        """Norms of the augmented rows."""
        norms: Vector = np.sqrt(self.squared_norms)
        return norms

    @cached_property
    def product_roundings(self) -> Vector:
        """(n_k + 2) |y_k|, to which rounding in an inner product with row k is proportional."""
        roundings: Vector = self.norms * (self.lengths + 2.0)
        return roundings

    @property
    def matrix(self) -> Any:
        """The data as a NumPy array or SciPy matrix, without the intercept's column; a view."""
        if isinstance(self.arrays, CsrRows):
            # SciPy would check all indices again, which takes as long as a pass.
            values, indices, indptr, _ = self.arrays
            signed = indices.view(np.int32 if indices.dtype == np.uint32 else np.int64)
            # Both kinds of positions must have the same type.
            kind = signed.dtype if indptr[-1] <= np.iinfo(np.int32).max else np.dtype(np.int64)
            matrix = sp.csr_matrix((self.n_rows, self.n_columns), dtype=values.dtype)
            matrix.data, matrix.indices = values, signed.astype(kind, copy=False)
            matrix.indptr = indptr.astype(kind, copy=False)
            return matrix
        return self.arrays.values

    def take(self, which: NDArray[np.int64]) -> Rows:
        """A copy of the rows ``which``."""
        return Rows(self.matrix[which], intercept_scaling=self.intercept_scaling)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle, with read-only row arrays and all others writeable, as before."""
        self.__dict__.update({name: as_compiled_for(value) for name, value in state.items()})
        form: Any = type(self.arrays)
        self.arrays = form(*(read_only(a) if isinstance(a, np.ndarray) else a for a in self.arrays))

    def _refuse_non_finite(self) -> None:
        bad = ~np.isfinite(self.squared_norms)
        if not bad.any():
            return
        k = int(np.argmax(bad))
        row = self.matrix[k : k + 1]
        columns, values = np.arange(row.shape[1]), row
        if sp.issparse(row):
            columns, values = row.indices, row.data
        for column, value in zip(columns, values.ravel(), strict=True):
            if not np.isfinite(value):
                where = f"{'NaN' if np.isnan(value) else 'infinity'}: row {k}, column {column}"
                remedy = "Remove such rows, or fill in values (sklearn.impute.SimpleImputer)."
                raise ValueError(f"Input X contains {where}. {remedy}")
        raise ValueError(
            f"Row {k} of X has values so large that its squared norm overflows "
            f"(largest {np.abs(values).max(initial=0.0):g}). Rescale the columns."
        )


def dimension_of(n_columns: int, intercept_scaling: float) -> int:
    """Length of weight vectors: ``n_columns``, plus one if there is an intercept."""
    return n_columns + (intercept_scaling > 0)


def split(w: Vector, intercept_scaling: float) -> tuple[Vector, float]:
    """Split ``w`` into the coefficients of the columns and the intercept w_bias * rho."""
    if intercept_scaling > 0:
        return w[:-1].copy(), float(w[-1] * intercept_scaling)
    return w.copy(), 0.0


def join(coefficients: Vector, intercept: float, intercept_scaling: float) -> Vector:
    """Join what ``split`` splits."""
    if intercept_scaling > 0:
        return np.append(coefficients, intercept / intercept_scaling)
    return np.array(coefficients, dtype=np.float64)


def as_compiled_for(value: Any) -> Any:
    """Return a writeable copy of a read-only array, and any other value unchanged.

    Arrays from another process may be read-only, and kernels would be compiled again for them.
    """
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return value


def _arrays_of(X: Any, intercept_scaling: float) -> RowArrays:
    """What kernels take; X is an array or a CSR matrix that is safe to read."""
    values = X.data if sp.issparse(X) else X
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    if not sp.issparse(X):
        return DenseRows(read_only(values), intercept_scaling)
    wide = X.indices.dtype != np.int32
    indices = read_only(X.indices.astype(np.int64 if wide else np.int32, copy=False))
    unsigned: Any = indices.view(np.uint64 if wide else np.uint32)
    starts = read_only(X.indptr.astype(np.int64, copy=False))
    return CsrRows(read_only(values), unsigned, starts, intercept_scaling)


def _with_ascending_columns(X: Any) -> Any:
    """A copy; values stored twice are added up, in a type that can hold the sum."""
    used = slice(int(X.indptr[0]), int(X.indptr[-1]))
    ascending = sp.csr_matrix(
        (X.data[used].astype(np.float64), X.indices[used], X.indptr - used.start),
        shape=X.shape,
        copy=True,
    )
    ascending.sum_duplicates()
    exact = X.dtype == np.float32 and ascending.nnz == used.stop - used.start
    return ascending.astype(np.float32) if exact else ascending


__all__ = ["Rows", "Vector", "as_compiled_for", "join", "split"]


# A kernel call cannot be interrupted; this many stored values take a tenth of a second or so.
_VALUES_PER_CALL = 1 << 25


class Part:
    """Rows in memory, with their labels and weights.

    Parameters
    ----------
    rows : Rows
        The data.
    signed_weights : ndarray of shape (n_rows,)
        label_k * s_k.
    first : int, default=0
        Number of rows in the parts before this one.
    """

    def __init__(self, rows: Rows, signed_weights: Vector, first: int = 0) -> None:
        self.rows = rows
        self.signed_weights = signed_weights
        self.first = first

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle, with arrays that are writeable again."""
        self.__dict__.update({name: as_compiled_for(value) for name, value in state.items()})

    @property
    def span(self) -> slice:
        """The range of its rows among all rows."""
        return slice(self.first, self.first + self.rows.n_rows)

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """The rows of positive weight."""
        active: NDArray[np.int64] = np.flatnonzero(self.signed_weights)
        return active

    def of_active(self, values: Vector) -> Vector:
        """The entries of active rows; ``values`` itself if all rows are active."""
        return values if self.active.size == values.size else values[self.active]

    @cached_property
    def labels(self) -> Vector:
        """+1 or -1; 0 for rows of weight zero."""
        labels: Vector = np.sign(self.signed_weights)
        return labels

    @cached_property
    def weights(self) -> Vector:
        """The row weights s_k."""
        weights: Vector = np.abs(self.signed_weights)
        return weights

    @cached_property
    def largest_rounding(self) -> float:
        """The largest (n_k + 2) |y_k| of an active row."""
        return float(self.of_active(self.rows.product_roundings).max(initial=0.0))

    @cached_property
    def loss_roundings(self) -> Vector:
        """s_k (n_k + 2) |y_k|, to which rounding in the loss of row k is proportional."""
        return self.weights * self.rows.product_roundings

    def slices(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Cut an order of presentation into pieces, between which a pass can be ended."""
        stored_per_row = max(1, self.rows.n_stored // self.rows.n_rows)
        step = max(1, _VALUES_PER_CALL // stored_per_row)
        for start in range(0, max(1, order.size), step):
            require_time()
            yield order[start : start + step]
