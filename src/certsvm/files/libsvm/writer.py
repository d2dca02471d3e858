"""Writing files in the format of libsvm and SVMlight.

Every number is written with the fewest digits that read back to the same float. Files are written
atomically.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.files.atomic import atomic_write
from certsvm.matrices import checked_csr

_VALUES_AT_ONCE = 1 << 16


def save_libsvm(path_or_file: Any, X: Any, y: Any, *, zero_based: bool = False) -> None:
    """Write rows and their labels.

    Parameters
    ----------
    path_or_file : path or binary file object
        A file at this path is replaced once the new one is complete; if anything fails, it
        stays as it is. Pipes and devices are written to directly.
    X : array or SciPy sparse matrix of shape (n_rows, n_features)
        Zeros stored in a sparse matrix are written as ``index:0``; zeros of an array are left out.
        Float32 values are written with the digits that float32 needs: read them back with
        ``dtype=np.float32``.
    y : array-like of shape (n_rows,)
        The labels.
    zero_based : bool, default=False
        Whether columns count from zero. If no row uses the first column, the file does not show
        it: read it back with ``zero_based=True``.

    Raises
    ------
    ValueError
        If the data contain something that the format cannot represent.
    WriteError
        An OSError: the file could not be written.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> save_libsvm(file, [[0.5, 0.0, 1e-7], [0.0, 3.0, 0.0]], [1, -1])
    >>> print(file.getvalue().decode(), end="")
    1 1:0.5 3:1e-07
    -1 2:3
    """
    rows, labels = _rows(X), np.asarray(y)
    if labels.shape != rows.shape[:1]:
        raise ValueError(
            f"y must have one label for each of {rows.shape[0]} rows, got shape {labels.shape}"
        )
    if labels.size == 0:
        raise ValueError("there are no rows to write")
    chunks = _chunks(rows, _floats(labels, "y").astype(np.float64), int(not zero_based))
    if hasattr(path_or_file, "write"):
        for chunk in chunks:
            view = memoryview(chunk)
            # Some files accept only a part at a time.
            while view and isinstance(written := path_or_file.write(view), int):
                view = view[written:]
        return
    path = os.fsdecode(path_or_file)
    # A pipe or a device must not be replaced by a file.
    special = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    with open(path, "wb") if special else atomic_write(path) as file:
        file.writelines(chunks)


def _rows(X: Any) -> Any:
    """X as CSR, sorted and without values stored twice, if all values can be written."""
    X = checked_csr(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}")
    if not sp.issparse(X):
        return sp.csr_matrix(_floats(X, "X"))
    # A new matrix, since flags of the given one may lie.
    rows = sp.csr_matrix((_floats(X.data, "X"), X.indices, X.indptr), shape=X.shape)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    if not rows.has_canonical_format:
        # Values stored twice are added up in float64, as in training.
        rows = rows.astype(np.float64)
        rows.sum_duplicates()
        _floats(rows.data, "X")
    return rows


def _floats(values: NDArray[Any], name: str) -> NDArray[Any]:
    """The values as float32 or float64, unchanged; raises if they are not finite."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype}")
    floats = values
    if values.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        floats = values.astype(np.float64)
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} contains NaN or infinity, which the format does not have")
    if floats is not values and values.dtype.kind != "b":
        back = floats.astype(values.dtype) if np.abs(floats).max(initial=0) < 2.0**63 else None
        if back is None or not np.array_equal(back, values):
            raise ValueError(f"{name} has numbers of type {values.dtype} that are not float64")
    return floats


def _texts(values: NDArray[Any]) -> list[str]:
    """The shortest decimals that read back to the same values."""
    if values.dtype == np.float64:
        texts = map(repr, values.tolist())
    else:
        texts = map(str, values.astype("U32").tolist())
    return [text[:-2] if text.endswith(".0") else text for text in texts]


def _chunks(rows: Any, labels: NDArray[np.float64], base: int) -> Iterator[bytes]:
    """The text, in chunks of many values."""
    indptr = rows.indptr
    first = 0
    while first < labels.size:
        until = np.searchsorted(indptr, indptr[first] + _VALUES_AT_ONCE, side="right") - 1
        last = min(max(first + 1, int(until)), first + _VALUES_AT_ONCE, labels.size)
        part = slice(indptr[first], indptr[last])
        columns = (rows.indices[part].astype(np.int64) + base).tolist()
        pairs = [f" {j}:{v}" for j, v in zip(columns, _texts(rows.data[part]), strict=True)]
        ends = (indptr[first : last + 1] - indptr[first]).tolist()
        lines = [
            f"{label}{''.join(pairs[ends[k] : ends[k + 1]])}\n"
            for k, label in enumerate(_texts(labels[first:last]))
        ]
        yield "".join(lines).encode("ascii")
        first = last
