"""The data as solvers see it: validated rows, used where they lie.

Float32 and float64 input, CSR or C-ordered dense, is never copied: ``Rows`` holds read-only
views of the caller's arrays. Anything else is converted once. Validation is one reading of
the index structure and one of the values (their squared norms, which every solver needs
anyway, are finite exactly when they are).
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
        What kernels take.
    n_rows, n_columns : int
        Shape of the data.
    dimension : int
        Length of weight vectors: ``n_columns``, plus one if there is an intercept.
    n_stored : int
        Number of stored values.
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
        if not (np.isfinite(intercept_scaling) and intercept_scaling >= 0):
            raise ValueError(
                f"intercept_scaling must be a finite number >= 0, got {intercept_scaling!r}"
            )
        if not np.isfinite(float(intercept_scaling) ** 2 if intercept_scaling < 1e154 else np.inf):
            raise ValueError(
                f"intercept_scaling = {intercept_scaling!r} is so large that its square overflows"
            )
        self.intercept_scaling = float(intercept_scaling)
        self.arrays: RowArrays
        if sp.issparse(X):
            self.arrays, self.ascending = _csr_rows(X, self.intercept_scaling)
            self.n_stored = int(self.arrays.indptr[-1] - self.arrays.indptr[0])
            self.n_rows, self.n_columns = (int(n) for n in X.shape)
        else:
            self.arrays, self.ascending = _dense_rows(X, self.intercept_scaling), True
            self.n_stored = self.arrays.values.size
            self.n_rows, self.n_columns = self.arrays.values.shape
        self.dimension = self.n_columns + (self.intercept_scaling > 0)
        self.squared_norms = np.empty(self.n_rows)
        squared_norms(self.arrays, self.squared_norms)
        self._refuse_non_finite()

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of stored values in each row, the intercept's included."""
        extra = int(self.intercept_scaling > 0)
        if isinstance(self.arrays, CsrRows):
            return np.diff(self.arrays.indptr) + extra
        return np.full(self.n_rows, self.n_columns + extra, dtype=np.int64)

    @cached_property
    def squared_lengths(self) -> float:
        """Sum of the squares of the rows' lengths: what Gram matrices cost."""
        lengths = self.lengths.astype(np.float64)
        return float(lengths @ lengths)

    @property
    def nbytes(self) -> int:
        """Size of the data in memory."""
        return sum(a.nbytes for a in self.arrays if isinstance(a, np.ndarray))

    @cached_property
    def norms(self) -> Vector:
        """Norms of the augmented rows."""
        norms: Vector = np.sqrt(self.squared_norms)
        return norms

    @cached_property
    def product_roundings(self) -> Vector:
        """(n_k + 2) |y_k|, what rounding in an inner product with row k is proportional to."""
        roundings: Vector = self.norms * (self.lengths + 2.0)
        return roundings

    @property
    def matrix(self) -> Any:
        """The data as NumPy or SciPy have it, without the intercept's column; a view."""
        if isinstance(self.arrays, CsrRows):
            values, indices, indptr, _ = self.arrays
            signed = np.int32 if indices.dtype == np.uint32 else np.int64
            return sp.csr_matrix(
                (values, indices.view(signed), indptr), shape=(self.n_rows, self.n_columns)
            )
        return self.arrays.values

    def take(self, which: NDArray[np.int64]) -> Rows:
        """Some of the rows, copied; what is known of them need not be found out again."""
        some = object.__new__(Rows)
        some.intercept_scaling, some.n_columns, some.dimension = (
            self.intercept_scaling,
            self.n_columns,
            self.dimension,
        )
        some.ascending, some.n_rows = self.ascending, which.size
        some.squared_norms = self.squared_norms[which]
        if isinstance(self.arrays, CsrRows):
            indptr = np.zeros(which.size + 1, dtype=np.int64)
            np.cumsum(self.arrays.indptr[which + 1] - self.arrays.indptr[which], out=indptr[1:])
            values = np.empty(indptr[-1], dtype=self.arrays.values.dtype)
            indices = np.empty(indptr[-1], dtype=self.arrays.indices.dtype)
            copy_rows(self.arrays, which, indptr, values, indices)
            some.arrays = CsrRows(
                _read_only(values), _read_only(indices), _read_only(indptr), self.intercept_scaling
            )
            some.n_stored = int(indptr[-1])
        else:
            some.arrays = DenseRows(_read_only(self.arrays.values[which]), self.intercept_scaling)
            some.n_stored = some.arrays.values.size
        return some

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As it was, also where unpickling has made arrays read-only, or has not."""
        self.__dict__.update({name: as_compiled_for(value) for name, value in state.items()})
        made: Any = type(self.arrays)
        self.arrays = made(
            *(_read_only(a) if isinstance(a, np.ndarray) else a for a in self.arrays)
        )

    def row(self, k: int) -> tuple[NDArray[Any], NDArray[np.floating[Any]]]:
        """Columns and values stored in row ``k``, without the intercept's column."""
        if isinstance(self.arrays, CsrRows):
            part = slice(self.arrays.indptr[k], self.arrays.indptr[k + 1])
            return self.arrays.indices[part], self.arrays.values[part]
        return np.arange(self.n_columns), self.arrays.values[k]

    def split(self, w: Vector) -> tuple[Vector, float]:
        """Split ``w`` into the coefficients of the columns and the intercept w_bias * rho."""
        return split(w, self.intercept_scaling)

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


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    # One type for all: writable and read-only arrays would each be compiled for otherwise.
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def as_compiled_for(thing: Any) -> Any:
    """A copy of an array that cannot be written; anything else as it is.

    Arrays that come from another process may be read-only, and kernels would be compiled anew for
    such.
    """
    if isinstance(thing, np.ndarray) and not thing.flags.writeable:
        return thing.copy()
    return thing


def _float_values(values: NDArray[Any]) -> NDArray[np.floating[Any]]:
    if values.dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return values
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {values.dtype}")
    return values.astype(np.float64)


def _dense_rows(X: Any, intercept_scaling: float) -> DenseRows:
    values = np.asarray(X)
    if values.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, columns), got shape {values.shape}")
    return DenseRows(_read_only(np.ascontiguousarray(_float_values(values))), intercept_scaling)


def _csr_rows(X: Any, intercept_scaling: float) -> tuple[CsrRows, bool]:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, columns), got shape {X.shape}")
    X = to_csr(X)
    indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(
        X.indices if X.indices.dtype in (np.int32, np.int64) else X.indices.astype(np.int64)
    )
    ascending, repeating = refuse_broken(X, indptr, indices)
    if repeating:
        # A column stored twice in a row means the sum of both; add them up, in a copy, and not in
        # a type that cannot hold the sum.
        X = X.astype(np.float64)
        X.sum_duplicates()
        return _csr_rows(X, intercept_scaling)
    unsigned = np.uint32 if indices.dtype == np.int32 else np.uint64
    rows = CsrRows(
        _read_only(_float_values(X.data)),
        _read_only(indices.view(unsigned)),
        _read_only(indptr),
        intercept_scaling,
    )
    return rows, ascending


def to_csr(X: Any) -> Any:
    """A sparse matrix as CSR, with the same values."""
    if X.format == "csr":
        return X
    if X.dtype.kind not in "biuf":
        return X.tocsr()
    # What is stored twice may be added up, which not every type can hold.
    rows = X.astype(np.float64).tocsr()
    return rows.astype(X.dtype) if rows.nnz == X.nnz and X.dtype == np.float32 else rows


def refuse_broken(X: Any, indptr: NDArray[np.int64], indices: NDArray[Any]) -> tuple[bool, bool]:
    """Raise if reading X could leave its arrays.

    Returns
    -------
    ascending, repeating : bool
        Whether the columns of every row ascend, and whether a row has a column twice.
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
    unsigned: NDArray[Any] = indices.view(np.uint32 if indices.dtype == np.int32 else np.uint64)
    largest, ascending = checks.survey_indices(indptr, unsigned[indptr[0] : indptr[-1]])
    if ascending and largest < n_columns:
        return True, False
    nothing_seen = np.empty(0, dtype=np.int64)
    code, k, j = checks.inspect_indices(indptr, indices, n_columns, nothing_seen)
    if code == checks.DUPLICATE_COLUMN:
        nothing_seen = np.full(n_columns, -1, dtype=np.int64)
        code, k, j = checks.inspect_indices(indptr, indices, n_columns, nothing_seen)
    if code == checks.COLUMN_OUT_OF_RANGE:
        raise ValueError(
            f"X is a broken CSR matrix: row {k} has column index {indices[j]}, "
            f"but X has {n_columns} columns."
        )
    return False, bool(code == checks.DUPLICATE_COLUMN)


__all__ = ["Rows", "Vector", "as_compiled_for", "join", "refuse_broken", "split", "to_csr"]
