"""Matrices from outside, checked before anything compiled reads them.

SciPy's compiled functions and the kernels trust the indices of a sparse matrix: one that is out of
range reads or writes memory that is not the matrix's. Every matrix that a caller or a file gives
goes through ``checked_matrix``, ``checked_csr`` or ``refuse_broken`` first. The checks use NumPy
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.scalars import plain


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous view of the array that cannot be written to.

    Read-only arrays are another type to Numba, and kernels are compiled for one type only.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def checked_matrix(X: Any) -> Any:
    """X as an array of real numbers, or as a CSR matrix that is safe to read.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_columns)
        From anywhere.

    Returns
    -------
    X : ndarray or CSR matrix
        With the same values; not a copy if it was one of these.

    Examples
    --------
    >>> broken = sp.csr_array(np.eye(2))
    >>> broken.indices[0] = -1
    >>> checked_matrix(broken)
    Traceback (most recent call last):
    ValueError: X is a broken CSR matrix: it has an index of -1 in 2 columns
    """
    if sp.issparse(X):
        return checked_csr(X)
    refuse_broken(X)
    X = np.asarray(X)
    if X.dtype.kind == "O":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold real numbers: {error}") from None
    _refuse_unreal(X)
    return X


def checked_csr(X: Any) -> Any:
    """A sparse matrix as CSR, with the same values; raises ValueError if it is broken."""
    refuse_broken(X)
    if X.format == "csr":
        return X
    # Conversion may add up values that are stored twice, and not every type can hold the sum.
    rows = X.astype(np.float64).tocsr()
    return rows.astype(X.dtype) if rows.nnz == X.nnz and X.dtype == np.float32 else rows


def refuse_broken(X: Any) -> None:
    """Raise ValueError for masked entries, and unless all indices of a sparse matrix are in range.

    Anything else passes.
    """
    if not sp.issparse(X):
        refuse_masked(X=X)
        return
    _refuse_unreal(X)
    form = X.format
    if form in ("csr", "csc", "bsr"):
        height, width = X.blocksize if form == "bsr" else (1, 1)
        majors, minors = X.shape[0] // height, X.shape[1] // width
        if form == "csc":
            majors, minors = minors, majors
        if form == "bsr" and X.data.ndim != 3:
            raise ValueError("X is a broken BSR matrix: its values are not in blocks")
        _refuse_bad_offsets(X.indptr, majors, min(len(X.data), len(X.indices)), form)
        used = X.indices[int(X.indptr[0]) : int(X.indptr[-1])]
        _refuse_bad_indices(used, minors, form, "rows" if form == "csc" else "columns")
        return
    if form == "lil":
        lists = X.rows.shape == X.data.shape == X.shape[:1]
        if not (lists and all(len(a) == len(b) for a, b in zip(X.rows, X.data, strict=True))):
            raise ValueError("X is a broken LIL matrix: its lists have different lengths")
    elif form == "dia" and not (X.data.ndim == 2 and X.offsets.shape == X.data.shape[:1]):
        raise ValueError("X is a broken DIA matrix: its numbers of offsets and diagonals differ")
    # Other formats turn into lists of rows and columns.
    try:
        entries = X if form == "coo" else X.tocoo()
    except ValueError as error:
        raise ValueError(f"X is a broken {form.upper()} matrix: {error}") from None
    if not entries.data.size == entries.row.size == entries.col.size:
        raise ValueError("X is a broken sparse matrix: not every value has a row and a column")
    _refuse_bad_indices(entries.row, X.shape[0], form, "rows")
    _refuse_bad_indices(entries.col, X.shape[1], form, "columns")


def refuse_masked(**arrays: Any) -> None:
    """Raise a ValueError if an array has masked entries: NumPy would use what is behind the mask.

    Examples
    --------
    >>> refuse_masked(X=np.ma.array([1.0, 2.0], mask=[False, True]))
    Traceback (most recent call last):
    ...
    ValueError: X has masked entries (1 of 2), and there is no value for them. Fill them in, with \
X.filled(value) or sklearn.impute.SimpleImputer, or remove their rows.
    """
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
            raise ValueError(
                f"{name} has masked entries ({array.size - array.count()} of {array.size}), and "
                f"there is no value for them. Fill them in, with {name}.filled(value) or "
                "sklearn.impute.SimpleImputer, or remove their rows."
            )


def exact_labels(y: Any) -> NDArray[Any]:
    r"""Labels as an array; raises a ValueError if they are masked, or if NumPy would change them.

    NumPy drops NULs at the end of strings when it stores or compares them, and turns a list of
    numbers and strings into strings, so that different labels would become one.

    Examples
    --------
    >>> exact_labels(["ham", "spam"]).tolist()
    ['ham', 'spam']
    >>> exact_labels(["a", "a\0"])
    Traceback (most recent call last):
    ...
    ValueError: the label 'a\x00' ends in NUL, which NumPy's strings do not keep: rename it
    """
    refuse_masked(y=y)
    array = np.asarray(y)
    kind = array.dtype.kind
    if isinstance(y, np.ndarray) and kind not in "OT":
        return array
    if kind not in "OTUS" and not isinstance(y, list | tuple):
        return array
    # As they were: Python's own objects, which compare exactly.
    given = array if kind in "OT" else np.asarray(y, dtype=object)
    for label, kept in zip(given.ravel().tolist(), array.ravel().tolist(), strict=True):
        if isinstance(label, str | bytes) and label[-1:] in ("\0", b"\0"):
            ends = "ends in NUL, which NumPy's strings do not keep: rename it"
            raise ValueError(f"the label {plain(label)!r} {ends}")
        if label is None and array.ndim:
            raise ValueError("a label is missing (None): leave such rows out")
        # NaN is another check's matter.
        if kind in "iufUS" and label != kept and label == label:
            became = f"the label {plain(label)!r} would become {plain(kept)!r} among the others"
            raise ValueError(f"{became}: give all labels one type")
    return array


def refuse_changed_labels(labels: NDArray[Any], converted: NDArray[Any]) -> None:
    """Raise a ValueError if scikit-learn has changed labels: it makes pandas' Int64 float64."""
    if labels.dtype == converted.dtype:
        return
    for label, kept in zip(labels.ravel().tolist(), converted.ravel().tolist(), strict=True):
        if label != kept:
            became = f"the label {plain(label)!r} would become {plain(kept)!r} in float64"
            raise ValueError(f"{became}: pass the labels as an array of integers or strings")


def columns_in_order(X: Any, names: Iterable[str] | None) -> Any:
    """A data frame with its columns in the order of ``names``; anything else as it is.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        A frame of pandas or polars, a table of Arrow, or rows without names.
    names : iterable of str, or None
        Names of the columns; None takes the columns by position.

    Returns
    -------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        A ValueError tells which columns are missing, unknown or there twice.
    """
    columns = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None or columns is None:
        return X
    wanted, columns = list(names), list(columns)
    if columns == wanted:
        return X
    known, counts = set(wanted), Counter(columns)
    if len(known) < len(wanted):
        raise ValueError("X has names, and those of the model's columns are not all different")
    faults = {
        "has no columns": [name for name in wanted if name not in counts],
        "has unknown columns": [name for name in counts if name not in known],
        "has several columns": [name for name, count in counts.items() if count > 1],
    }
    wrong = [f"{fault} {listed(which)}" for fault, which in faults.items() if which]
    if wrong:
        raise ValueError(f"X {' and '.join(wrong)}: the columns must be those of the training data")
    return X.select(wanted) if hasattr(X, "select") else X[wanted]


def listed(names: Sequence[Any]) -> str:
    """Names in quotes, on one line; of many, the first."""
    return ", ".join(repr(plain(name)) for name in names[:5]) + (", ..." if len(names) > 5 else "")


def _refuse_unreal(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, columns), got shape {X.shape}")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {X.dtype}")


def _refuse_bad_offsets(indptr: NDArray[Any], n_majors: int, stored: int, form: str) -> None:
    what = f"X is a broken {form.upper()} matrix"
    if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or indptr.size != n_majors + 1:
        has = f"{indptr.size} entries of type {indptr.dtype}"
        raise ValueError(f"{what}: indptr has {has}, not {n_majors + 1} integers")
    if not (indptr[0] >= 0 and indptr[-1] <= stored and (indptr[1:] >= indptr[:-1]).all()):
        raise ValueError(f"{what}: its indptr descends, or leaves the {stored} stored values")


def _refuse_bad_indices(indices: NDArray[Any], size: int, form: str, what: str) -> None:
    problem = None
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        problem = f"its indices are of type {indices.dtype}"
    elif indices.size and not (indices.min() >= 0 and indices.max() < size):
        wrong = indices[(indices < 0) | (indices >= size)][0]
        problem = f"it has an index of {wrong} in {size} {what}"
    if problem is not None:
        raise ValueError(f"X is a broken {form.upper()} matrix: {problem}")


def dense(weights: Any) -> NDArray[Any]:
    """Weights as an array, such as ``coef_`` after ``sparsify``; an array is not copied.

    Examples
    --------
    >>> dense(sp.csr_matrix([[0.0, 2.0]]))
    array([[0., 2.]])
    """
    return weights.toarray() if sp.issparse(weights) else np.asarray(weights)
