"""Fingerprints of labelled rows: they tell whether a model was trained on the data at hand.

A fingerprint depends on the values of rows and labels, not on their storage: CSR or dense, float32
or float64 (if both hold the same values), with explicit zeros or without, in any order within a
row, in one piece or in blocks. It finds mistakes, not forgery, since XXH3 is no cryptographic hash.
No proof rests on it.

Four streams are hashed with XXH3-128, all little-endian:

* lengths: for each row the number of its values that are not zero, as int64;
* columns: their columns, ascending within a row, as int64;
* values: the values in the same order, as float64;
* labels: numbers as float64, so 1, 1.0 and True are one label and -0.0 is 0.0; strings as
  the XXH3-128 digest of their UTF-8 bytes. "1" is not 1.

The digest is the XXH3-128 of the numbers of rows and values (as int64), of a byte for the kind of
labels (``n`` for numbers, ``s`` for strings), and of the four digests in that order. It does not
include the number of columns: appending empty columns does not change it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import xxhash
from numpy.typing import ArrayLike, NDArray

from certsvm.matrices import checked_csr

# Conversions stay in the processor's cache.
_AT_ONCE = 1 << 16

_Block = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Fingerprint:
    """The fingerprint of labelled rows.

    Attributes
    ----------
    n_rows, n_columns : int
        Shape of the data.
    n_values : int
        Number of values that are not zero.
    digest : str
        32 hexadecimal digits.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [2.0, 0.0]])
    >>> sparse = sp.csr_array(X.astype(np.float32))
    >>> Fingerprint.of(X, [1, -1]) == Fingerprint.of(sparse, [1.0, -1.0])
    True
    """

    n_rows: int
    n_columns: int
    n_values: int
    digest: str

    def __post_init__(self) -> None:
        for name in ("n_rows", "n_columns", "n_values"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} of a fingerprint must be an integer >= 0, got {value!r}")
        digits = self.digest
        if not (isinstance(digits, str) and len(digits) == 32 and set(digits) <= _DIGITS):
            raise ValueError(f"a fingerprint has 32 hexadecimal digits, got {digits!r}")

    @classmethod
    def of(cls, X: Any, labels: ArrayLike) -> Fingerprint:
        """The fingerprint of an array or sparse matrix, and of its labels."""
        X = X if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        builder = FingerprintBuilder(int(X.shape[1]))
        builder.update(X, labels)
        return builder.finish()

    def __str__(self) -> str:
        return (
            f"{self.n_rows} rows, {self.n_columns} columns, {self.n_values} values, "
            f"digest {self.digest}"
        )


_DIGITS = set("0123456789abcdef")


class FingerprintBuilder:
    """A fingerprint computed block by block.

    Parameters
    ----------
    n_columns : int
        Number of columns. A block with fewer is padded with empty columns.

    Examples
    --------
    >>> X, y = np.eye(3), ["a", "b", "a"]
    >>> builder = FingerprintBuilder(3)
    >>> builder.update(X[:1], y[:1])
    >>> builder.update(X[1:], y[1:])
    >>> builder.finish() == Fingerprint.of(X, y)
    True
    """

    def __init__(self, n_columns: int) -> None:
        self._n_columns = int(n_columns)
        self._n_rows = 0
        self._n_values = 0
        self._lengths, self._columns, self._values, self._labels = (
            xxhash.xxh3_128() for _ in range(4)
        )
        # The kind of labels, and the digests of strings.
        self._kind = b""
        self._digests: dict[str, bytes] = {}

    def update(self, X: Any, labels: ArrayLike) -> None:
        """Add rows and their labels: numbers or strings, of one kind in all blocks."""
        X = X if sp.issparse(X) else np.asarray(X)
        labels = np.asarray(labels)
        if X.ndim != 2 or labels.shape != (X.shape[0],):
            raise ValueError(f"X of shape {X.shape} does not go with labels of {labels.shape}")
        if X.shape[1] > self._n_columns:
            raise ValueError(f"X has {X.shape[1]} columns, more than the {self._n_columns} stated")
        kind, encoded = self._encoded(labels)
        for lengths, columns, values in _sparse(X) if sp.issparse(X) else _dense(X):
            self._lengths.update(_bytes(lengths, "<i8"))
            self._columns.update(_bytes(columns, "<i8"))
            self._values.update(_bytes(values, "<f8"))
            self._n_values += values.size
        self._kind = kind
        self._labels.update(encoded)
        self._n_rows += labels.size

    def _encoded(self, labels: NDArray[Any]) -> tuple[bytes, memoryview | bytes]:
        """The kind of labels, and the bytes to be hashed."""
        if labels.size == 0:
            return self._kind, b""
        text = labels.dtype.kind == "U" or (
            labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels)
        )
        kind = b"s" if text else b"n"
        if self._kind not in (b"", kind):
            raise ValueError("some labels are numbers and others strings; make them all the same")
        if not text:
            return kind, _numbers(labels)
        known, parts = self._digests, []
        for label in labels.tolist():
            if label not in known:
                known[label] = xxhash.xxh3_128(label.encode()).digest()
            parts.append(known[label])
        return kind, b"".join(parts)

    def finish(self) -> Fingerprint:
        """The fingerprint of all rows so far."""
        whole = xxhash.xxh3_128(struct.pack("<qq", self._n_rows, self._n_values))
        whole.update(self._kind)
        for stream in (self._lengths, self._columns, self._values, self._labels):
            whole.update(stream.digest())
        return Fingerprint(self._n_rows, self._n_columns, self._n_values, whole.hexdigest())


def _bytes(array: NDArray[Any], dtype: str) -> memoryview:
    return np.ascontiguousarray(array, dtype=dtype).data


def _numbers(labels: NDArray[Any]) -> memoryview:
    if labels.dtype.kind not in "biufO":
        raise ValueError(f"labels must be numbers or strings, got {labels.dtype}")
    if labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels):
        raise ValueError("some labels are numbers and others strings; make them all the same")
    try:
        # Adding zero turns -0.0 into 0.0.
        numbers = labels.astype(np.float64) + 0.0
    except (TypeError, ValueError) as error:
        raise ValueError(f"labels must be numbers or strings: {error}") from None
    if np.isnan(numbers).any():
        raise ValueError("a label is NaN; remove rows whose label is missing")
    # Two integers this large may be the same float64.
    if labels.dtype.kind in "iuO" and (np.abs(numbers) > 2.0**53).any():
        raise ValueError("integer labels beyond 2**53 have no exact float64; use strings")
    return _bytes(numbers, "<f8")


def _sparse(X: Any) -> Iterator[_Block]:
    """Lengths, columns and values of blocks of rows, sorted and without zeros."""
    X = checked_csr(X)
    indptr, indices, data = np.asarray(X.indptr, dtype=np.int64), X.indices, X.data
    n_rows, n_columns = X.shape
    first = 0
    while first < n_rows:
        last = int(np.searchsorted(indptr, indptr[first] + _AT_ONCE, side="right")) - 1
        last = max(first + 1, min(last, first + _AT_ONCE, n_rows))
        starts = indptr[first : last + 1]
        part = slice(int(starts[0]), int(starts[-1]))
        yield _sorted_rows(starts - starts[0], indices[part], data[part], n_columns)
        first = last


def _sorted_rows(
    starts: NDArray[np.int64], columns: NDArray[Any], values: NDArray[Any], n_columns: int
) -> _Block:
    if columns.size == 0:
        return np.diff(starts), columns, values
    descents = columns[1:] <= columns[:-1]
    # Columns may descend from one row to the next.
    inner = starts[(starts > 0) & (starts < columns.size)]
    descents[inner - 1] = False
    if descents.any() or np.count_nonzero(values) < values.size:
        shape = (starts.size - 1, n_columns)
        # Duplicates are added up in float64, as in training.
        block = sp.csr_array((values.astype(np.float64), columns, starts), shape=shape, copy=True)
        block.sum_duplicates()
        block.eliminate_zeros()
        starts, columns, values = block.indptr, block.indices, block.data
    return np.diff(starts), columns, values


def _dense(X: NDArray[Any]) -> Iterator[_Block]:
    n_rows, n_columns = X.shape
    step = max(1, _AT_ONCE // max(1, n_columns))
    all_columns = np.tile(np.arange(n_columns), min(step, n_rows))
    for first in range(0, n_rows, step):
        block = X[first : first + step].astype(np.float64)
        columns, values = all_columns[: block.size], block.ravel()
        lengths = np.count_nonzero(block, axis=1)
        if lengths.sum() < block.size:
            filled = values != 0
            columns, values = columns[filled], values[filled]
        yield lengths, columns, values
