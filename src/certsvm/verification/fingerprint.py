"""Fingerprints of labelled rows: they tell whether a model was trained on the data at hand.

A fingerprint depends on the values of rows and labels, not on their storage: CSR or dense, float32
or float64 (if both hold the same values), with explicit zeros or without, in any order within a
row, in one piece or in blocks. No proof rests on it: a certificate is checked against the data at
hand, whatever they are.

Every row has canonical bytes, little-endian words of 8 bytes: the number of its values that are
not zero (int64); its label; and for each of these values, ascending by column, the column
(int64) and the value (float64). A label that is a number is one word, a float64, so 1, 1.0 and
True are one label and -0.0 is 0.0. A string is the 32 bytes of the SHA-256 of its UTF-8. "1" is
not 1.

Groups of 4096 consecutive rows, of which the last may be shorter, are hashed with SHA-256. The
digest is the SHA-256 of the numbers of rows and values (as int64), of a byte for the kind of labels
(``n`` for numbers, ``s`` for strings), and of the digests of all groups. It does not include the
number of columns: appending empty columns does not change it.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.matrices import checked_csr

_GROUP = 4096
# Conversions stay in the processor's cache.
_AT_ONCE = 1 << 16


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
        64 hexadecimal digits.

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
        numbers = self.n_rows, self.n_columns, self.n_values
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"a fingerprint has three integers >= 0, got {numbers!r:.100}")
        if not (isinstance(self.digest, str) and re.fullmatch("[0-9a-f]{64}", self.digest)):
            raise ValueError(f"a fingerprint has 64 hexadecimal digits, got {self.digest!r:.100}")

    @classmethod
    def of(cls, X: Any, labels: ArrayLike) -> Fingerprint:
        """The fingerprint of an array or sparse matrix, and of its labels."""
        X = X if sp.issparse(X) else np.asarray(X)
        builder = FingerprintBuilder(X.shape[-1])
        builder.update(X, labels)
        return builder.finish()

    def __str__(self) -> str:
        return (
            f"{self.n_rows} rows, {self.n_columns} columns, {self.n_values} values, "
            f"digest {self.digest}"
        )


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
    >>> builder.join(FingerprintPart.of(X[1:], y[1:], first_row=1))
    >>> builder.finish() == Fingerprint.of(X, y)
    True
    """

    def __init__(self, n_columns: int) -> None:
        self.n_columns = int(n_columns)
        self.n_rows = self.n_values = 0
        self.kind = self.digests = b""
        self._group = hashlib.sha256()

    def update(self, X: Any, labels: ArrayLike) -> None:
        """Add rows and their labels: numbers or strings, of one kind in all blocks."""
        X, kind, words = _checked(X, labels)
        if X.shape[1] > self.n_columns:
            raise ValueError(f"X has {X.shape[1]} columns, more than the {self.n_columns} stated")
        self._set_kind(kind)
        for block, its_labels in _blocks(X, words, self.n_rows):
            self._group.update(_canonical_words(block, its_labels).data)
            self.n_rows += block.shape[0]
            self.n_values += block.nnz
            if self.n_rows % _GROUP == 0:
                self.digests += self._group.digest()
                self._group = hashlib.sha256()

    def join(self, part: FingerprintPart) -> None:
        """Add the rows of a part, which must be the next ones."""
        if part.first_row != self.n_rows:
            raise ValueError(f"row {self.n_rows} is next, not row {part.first_row}")
        self.update(*part.head)
        self._set_kind(part.kind)
        self.n_rows += len(part.digests) // 32 * _GROUP
        self.n_values += part.n_values
        self.digests += part.digests
        self.update(*part.tail)

    def finish(self) -> Fingerprint:
        """The fingerprint of all rows so far."""
        last = self._group.digest() if self.n_rows % _GROUP else b""
        counts = struct.pack("<qq", self.n_rows, self.n_values)
        digest = hashlib.sha256(counts + self.kind + self.digests + last).hexdigest()
        return Fingerprint(self.n_rows, self.n_columns, self.n_values, digest)

    def _set_kind(self, kind: bytes) -> None:
        if kind and self.kind not in (b"", kind):
            raise ValueError("some labels are numbers and others strings; make them all the same")
        self.kind = kind or self.kind


@dataclass(frozen=True)
class FingerprintPart:
    """What a fingerprint needs of consecutive rows, so that they can be read in several places.

    Attributes
    ----------
    first_row : int
        Number of rows before these.
    head, tail : (X, labels)
        The rows before the first group that is whole among these, and those after the last.
    kind : bytes
        The kind of labels in whole groups.
    n_values : int
        How many of their values are not zero.
    digests : bytes
        Their digests.
    """

    first_row: int
    head: tuple[Any, NDArray[Any]]
    kind: bytes
    n_values: int
    digests: bytes
    tail: tuple[Any, NDArray[Any]]

    @classmethod
    def of(cls, X: Any, labels: ArrayLike, first_row: int) -> FingerprintPart:
        """The part of these rows, which ``first_row`` others precede."""
        X, labels = checked_csr(X) if sp.issparse(X) else np.asarray(X), np.asarray(labels)
        first = min(len(labels), -first_row % _GROUP)
        last = len(labels) - (len(labels) - first) % _GROUP
        whole = FingerprintBuilder(X.shape[1])
        whole.update(X[first:last], labels[first:last])
        head, tail = (X[:first], labels[:first]), (X[last:], labels[last:])
        return cls(first_row, head, whole.kind, whole.n_values, whole.digests, tail)


def _checked(X: Any, labels: ArrayLike) -> tuple[Any, bytes, NDArray[np.uint64]]:
    """X as CSR or array, the kind of labels, and the words of each."""
    X, labels = checked_csr(X) if sp.issparse(X) else np.asarray(X), np.asarray(labels)
    if X.ndim != 2 or labels.shape != (X.shape[0],):
        raise ValueError(f"X of shape {X.shape} does not go with labels of {labels.shape}")
    if labels.size == 0:
        return X, b"", np.empty((0, 1), dtype=np.uint64)
    values = labels.tolist() if labels.dtype.kind in "UOT" else []
    strings = {isinstance(value, str) for value in values}
    if len(strings) == 2:
        raise ValueError("some labels are numbers and others strings; make them all the same")
    if True not in strings:
        return X, b"n", _numbers(labels).view(np.uint64)[:, np.newaxis]
    digests = {value: hashlib.sha256(value.encode()).digest() for value in set(values)}
    joined = b"".join(map(digests.__getitem__, values))
    return X, b"s", np.frombuffer(joined, dtype="<u8").reshape(-1, 4)


def _numbers(labels: NDArray[Any]) -> NDArray[np.float64]:
    if labels.dtype.kind not in "biufO":
        raise ValueError(f"labels must be numbers or strings, got {labels.dtype}")
    try:
        # Adding zero turns -0.0 into 0.0.
        numbers: NDArray[np.float64] = labels.astype(np.float64) + 0.0
    except (TypeError, ValueError) as error:
        raise ValueError(f"labels must be numbers or strings: {error}") from None
    if np.isnan(numbers).any():
        raise ValueError("a label is NaN; remove rows whose label is missing")
    # Two integers this large may be the same float64.
    if labels.dtype.kind in "iuO" and (np.abs(numbers) > 2.0**53).any():
        raise ValueError("integer labels beyond 2**53 have no exact float64; use strings")
    return numbers


def _blocks(
    X: Any, labels: NDArray[np.uint64], first_row: int
) -> Iterator[tuple[sp.csr_array, NDArray[np.uint64]]]:
    """The rows without zeros and duplicates, in blocks that lie in one group each."""
    n_rows, n_columns = X.shape
    sparse = sp.issparse(X)
    starts = X.indptr.astype(np.int64) if sparse else np.arange(n_rows + 1) * n_columns
    first = 0
    while first < n_rows:
        last = int(np.searchsorted(starts, starts[first] + _AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), first + _GROUP - (first_row + first) % _GROUP, n_rows)
        if sparse:
            # Duplicates are added up in float64, as in training, and not in the caller's arrays.
            part = slice(starts[first], starts[last])
            entries = X.data[part].astype(np.float64), X.indices[part].copy()
            offsets = starts[first : last + 1] - starts[first]
            block = sp.csr_array((*entries, offsets), shape=(last - first, n_columns))
            block.sum_duplicates()
            block.eliminate_zeros()
        else:
            block = sp.csr_array(X[first:last].astype(np.float64))
        yield block, labels[first:last]
        first = last


def _canonical_words(X: sp.csr_array, labels: NDArray[np.uint64]) -> NDArray[np.uint64]:
    n_rows, width = labels.shape
    starts = X.indptr.astype(np.int64)
    lengths = np.diff(starts)
    words = np.empty(n_rows * (1 + width) + 2 * X.nnz, dtype="<u8")
    # Where each row begins, and each of its values.
    at_row = np.arange(n_rows) * (1 + width) + 2 * starts[:-1]
    at_value = 2 * np.arange(X.nnz) + np.repeat(np.arange(1, n_rows + 1) * (1 + width), lengths)
    words[at_row] = lengths
    words[at_row[:, np.newaxis] + np.arange(1, 1 + width)] = labels
    words[at_value] = X.indices
    words[at_value + 1] = X.data.view(np.uint64)
    return words
