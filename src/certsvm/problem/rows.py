"""Validated rows, used in place.

Float32 and float64 input, CSR or C-ordered dense, is never copied: ``Rows`` holds read-only
views of the caller's arrays. Anything else is converted once. Validation takes one pass over the
indices and one over the values: the squared norms, which every solver needs, are finite exactly
if the values are.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.kernels import checks
from certsvm.kernels.objective import squared_norms
from certsvm.kernels.rows import CsrRows, DenseRows, RowArrays, Vector, copy_rows
from certsvm.kernels.vectors import inner
from certsvm.matrices import checked_csr, read_only, refuse_masked
from certsvm.problem.room import require_room
from certsvm.scalars import as_float

_VALUES_PER_CHUNK = 1 << 16
_MOST_CHUNKS = 1024


class Rows:
    """Validated, immutable rows ``[x_k, rho]``, shared by all problems on the same data.

    Parameters
    ----------
    X : array or SciPy sparse matrix or sparse array of shape (n_rows, n_columns)
        Used in place when it is CSR or C-ordered dense, of type float32 or float64.
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
    ascending : bool
        Whether the columns of every sparse row ascend.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Rows(np.array([[3.0, 4.0], [0.0, 1.0]]), intercept_scaling=2.0)
    >>> rows.dimension, rows.squared_norms.tolist()
    (3, [29.0, 5.0])
    """

    def __init__(self, X: Any, *, intercept_scaling: float = 0.0) -> None:
        self.intercept_scaling = as_float(intercept_scaling, "intercept_scaling")
        if not (np.isfinite(self.intercept_scaling) and self.intercept_scaling >= 0):
            raise ValueError(
                f"intercept_scaling must be a finite number >= 0, got {intercept_scaling!r}"
            )
        if self.intercept_scaling >= 1e154:
            raise ValueError(
                f"intercept_scaling = {intercept_scaling!r} is so large that its square overflows"
            )
        self.arrays: RowArrays
        refuse_masked(X=X)
        X = X if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions (rows, columns), got shape {X.shape}")
        self.n_rows, self.n_columns = (int(n) for n in X.shape)
        if sp.issparse(X):
            self.arrays, self.ascending = _csr_rows(X, self.intercept_scaling)
        else:
            self.arrays = DenseRows(read_only(_float_values(X)), self.intercept_scaling)
            self.ascending = True
        self.squared_norms = np.empty(self.n_rows)
        squared_norms(self.arrays, self.squared_norms)
        self._refuse_non_finite()

    @property
    def dimension(self) -> int:
        """Length of weight vectors: ``n_columns``, plus one if there is an intercept."""
        return dimension_of(self.n_columns, self.intercept_scaling)

    @property
    def n_stored(self) -> int:
        """Number of stored values."""
        if isinstance(self.arrays, CsrRows):
            return int(self.arrays.indptr[-1] - self.arrays.indptr[0])
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
            begin, end = self.arrays.indptr[[0, -1]]
            lengths = np.bincount(self.arrays.indices[begin:end].astype(np.int64)).astype(float)
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
            values, indices, indptr, _ = self.arrays
            signed = np.int32 if indices.dtype == np.uint32 else np.int64
            return sp.csr_matrix(
                (values, indices.view(signed), indptr), shape=(self.n_rows, self.n_columns)
            )
        return self.arrays.values

    def take(self, which: NDArray[np.int64]) -> Rows:
        """A copy of the rows ``which``, without another validation."""
        taken = object.__new__(Rows)
        taken.intercept_scaling, taken.ascending = self.intercept_scaling, self.ascending
        taken.n_rows, taken.n_columns = which.size, self.n_columns
        taken.squared_norms = self.squared_norms[which]
        if isinstance(self.arrays, CsrRows):
            indptr = np.zeros(which.size + 1, dtype=np.int64)
            np.cumsum(self.arrays.indptr[which + 1] - self.arrays.indptr[which], out=indptr[1:])
            values = np.empty(indptr[-1], dtype=self.arrays.values.dtype)
            indices = np.empty(indptr[-1], dtype=self.arrays.indices.dtype)
            copy_rows(self.arrays, which, indptr, values, indices)
            taken.arrays = CsrRows(
                read_only(values), read_only(indices), read_only(indptr), self.intercept_scaling
            )
        else:
            taken.arrays = DenseRows(read_only(self.arrays.values[which]), self.intercept_scaling)
        return taken

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle, with read-only row arrays and all others writeable, as before."""
        self.__dict__.update({name: as_compiled_for(value) for name, value in state.items()})
        form: Any = type(self.arrays)
        self.arrays = form(*(read_only(a) if isinstance(a, np.ndarray) else a for a in self.arrays))

    def row(self, k: int) -> tuple[NDArray[Any], NDArray[np.floating[Any]]]:
        """Columns and values stored in row ``k``, without the intercept's column."""
        if isinstance(self.arrays, CsrRows):
            part = slice(self.arrays.indptr[k], self.arrays.indptr[k + 1])
            return self.arrays.indices[part], self.arrays.values[part]
        return np.arange(self.n_columns), self.arrays.values[k]

    def largest_column(self) -> tuple[int, int] | None:
        """A row of the largest column that occurs, and this column; None if rows are dense."""
        if not isinstance(self.arrays, CsrRows) or not self.n_stored:
            return None
        begin, end = self.arrays.indptr[[0, -1]]
        j = begin + int(np.argmax(self.arrays.indices[begin:end]))
        row = int(np.searchsorted(self.arrays.indptr, j, side="right")) - 1
        return row, int(self.arrays.indices[j])

    def _refuse_non_finite(self) -> None:
        bad = ~np.isfinite(self.squared_norms)
        if not bad.any():
            return
        k = int(np.argmax(bad))
        columns, values = self.row(k)
        for column, value in zip(columns, values, strict=True):
            if not np.isfinite(value):
                what = "NaN" if np.isnan(value) else "infinity"
                raise ValueError(
                    f"Input X contains {what}: row {k}, column {column}. Remove such rows, or "
                    "fill in the missing values (for example with sklearn.impute.SimpleImputer)."
                )
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


def _float_values(values: NDArray[Any]) -> NDArray[np.floating[Any]]:
    if values.dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return values
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {values.dtype}")
    return values.astype(np.float64)


def _csr_rows(X: Any, intercept_scaling: float) -> tuple[CsrRows, bool]:
    """The arrays of a sparse matrix, and whether the columns of every row ascend."""
    # Other formats are checked before SciPy converts them, and CSR below.
    X = X if X.format == "csr" and X.indices.dtype.kind in "iu" else checked_csr(X)
    indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(
        X.indices if X.indices.dtype in (np.int32, np.int64) else X.indices.astype(np.int64)
    )
    ascending, repeating = survey_csr(X, indptr, indices)
    if repeating:
        # Values stored twice are added up, in a copy, and in a type that can hold the sum.
        X = X.astype(np.float64)
        X.sum_duplicates()
        return _csr_rows(X, intercept_scaling)
    unsigned = np.uint32 if indices.dtype == np.int32 else np.uint64
    rows = CsrRows(
        read_only(_float_values(X.data)),
        read_only(indices.view(unsigned)),
        read_only(indptr),
        intercept_scaling,
    )
    return rows, ascending


def survey_csr(X: Any, indptr: NDArray[np.int64], indices: NDArray[Any]) -> tuple[bool, bool]:
    """Raise a ValueError if an index of X is out of bounds.

    Returns
    -------
    ascending, repeating : bool
        Whether the columns of every row ascend, and whether a row repeats a column.
    """
    n_rows, n_columns = X.shape
    if indptr.size != n_rows + 1:
        raise ValueError(
            f"X is a broken CSR matrix: indptr has {indptr.size} entries for {n_rows} rows "
            f"(expected {n_rows + 1})."
        )
    stored = min(X.data.size, indices.size)
    k = checks.inspect_indptr(indptr, stored)
    if k >= 0:
        raise ValueError(
            f"X is a broken CSR matrix: row {k} extends from {indptr[k]} to {indptr[k + 1]}, "
            f"but {stored} values are stored."
        )
    begin, end = indptr[0], indptr[-1]
    unsigned: NDArray[Any] = indices.view(np.uint32 if indices.dtype == np.int32 else np.uint64)
    largest, ascending = checks.survey_indices(indptr, unsigned[begin:end])
    if end > begin and largest >= n_columns:
        j = begin + int(np.argmax(unsigned[begin:end] >= n_columns))
        k = int(np.searchsorted(indptr, j, side="right")) - 1
        raise ValueError(
            f"X is a broken CSR matrix: row {k} has column index {indices[j]}, "
            f"but X has {n_columns} columns."
        )
    if ascending:
        return True, False
    require_room(n_columns, 1)
    last_row_with = np.full(n_columns, -1, dtype=np.int64)
    return False, checks.repeats_column(indptr, unsigned, last_row_with)


__all__ = ["Rows", "Vector", "as_compiled_for", "join", "split", "survey_csr"]
