"""What comes with a model to check it by: the fingerprint of its data, and a witness of its bounds.

A fingerprint tells whether a model was trained on the data at hand. It depends on the values of
rows and labels, not on their storage: CSR or dense, float32 or float64 (if both hold the same
values), with explicit zeros or without, in any order within a row, in one piece or in blocks. No
proof rests on it: a certificate is checked against the data at hand, whatever they are.

Every row has canonical bytes, little-endian words of 8 bytes: the number of its values that are
not zero (int64); its label; and for each of these values, ascending by column, the column
(int64) and the value (float64). A label that is a number is one word, a float64, so 1, 1.0 and
True are one label and -0.0 is 0.0. A string is the 32 bytes of the SHA-256 of its UTF-8. "1" is
not 1.

Groups of 4096 consecutive rows, of which the last may be shorter, are hashed with SHA-256. The
digest is the SHA-256 of the numbers of rows and values (as int64), of a byte for the kind of labels
(``n`` for numbers, ``s`` for strings), and of the digests of all groups. It does not include the
number of columns: appending empty columns does not change it.

A witness is a compact dual point, from which dual bounds are recomputed. Any alpha in the box
0 <= alpha_k <= C s_k proves the bound L(alpha) <= J_opt, whatever its origin. So alpha need not be
stored exactly: a rounded alpha in the box proves almost the same bound. The box of the squared
hinge has no upper end. If the intercept is free, verification balances alpha. A witness stores each
alpha_k as a multiple of C s_k, in 8, 16 or 32 bits.
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

from certsvm.matrices import checked_csr, read_only
from certsvm.verification.interval_arithmetic import Vector

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
    >>> builder.update(X[1:], y[1:])
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


_CODES = {8: np.uint8, 16: np.uint16, 32: np.uint32}


@dataclass(frozen=True, eq=False)
class Witness:
    """alpha, quantised: alpha_k = scale * C s_k * code_k / (2**bits - 1).

    With a scale of at most 1, alpha never leaves the box of the hinge: code / (2**bits - 1) and its
    product with the scale are at most 1, exactly, since rounding keeps order and 1 is a float64.
    The same holds for the product of that with C s_k.

    Attributes
    ----------
    codes : ndarray of shape (n_problems, n_rows)
        Of type uint8, uint16 or uint32.
    scale : ndarray of shape (n_problems,)
        Finite and > 0; for the hinge, at most 1. A multiple s alpha is feasible too, and may prove
        more.

    Examples
    --------
    >>> box = np.array([0.5, 0.5, 2.0])
    >>> witness = Witness.quantise(np.array([0.0, 0.5, 0.7]), box, bits=8)
    >>> witness.codes.tolist(), witness.alpha(0, box).round(3).tolist()
    ([[0, 255, 89]], [0.0, 0.5, 0.698])
    """

    codes: NDArray[np.unsignedinteger[Any]]
    scale: Vector

    def __post_init__(self) -> None:
        codes, scale = np.asarray(self.codes), np.asarray(self.scale, dtype=np.float64)
        shape = f"{codes.dtype} of shape {codes.shape}"
        if codes.ndim != 2 or codes.dtype not in (np.uint8, np.uint16, np.uint32):
            raise ValueError(f"codes must be a matrix of uint8, uint16 or uint32, got {shape}")
        # NaN must fail, so the comparisons are not negated.
        if scale.shape != codes.shape[:1] or not ((scale > 0) & (scale < np.inf)).all():
            raise ValueError(f"scales must be finite, > 0, one for each problem: got {scale}")
        object.__setattr__(self, "codes", read_only(codes))
        object.__setattr__(self, "scale", read_only(scale))

    def __repr__(self) -> str:
        return f"<Witness of {self.n_rows} rows, {self.n_problems} problems, {self.bits} bits each>"

    @classmethod
    def quantise(cls, alpha: Vector, box: Vector, bits: int = 8, *, scale: float = 1.0) -> Witness:
        """Round each alpha_k of one problem to the nearest of 2**bits levels.

        Zero stays zero, exactly, and so does C s_k with a scale of 1.

        Parameters
        ----------
        alpha : ndarray of shape (n_rows,)
            In the box; zero where C s_k is.
        box : ndarray of shape (n_rows,)
            C s_k.
        bits : {8, 16, 32}, default=8
            Bits for each alpha_k.
        scale : float, default=1.0
            The highest level, as a multiple of C s_k. With the squared hinge, alpha may exceed
            C s_k.

        Returns
        -------
        witness : Witness
            With this scale.
        """
        if bits not in _CODES:
            raise ValueError(f"bits must be 8, 16 or 32, got {bits!r}")
        multiple = np.divide(alpha, box, out=np.zeros(alpha.size), where=box > 0.0)
        inside = (multiple >= 0.0) & (multiple <= scale) & ((alpha == 0.0) | (box > 0.0))
        if not (inside.all() and np.isfinite(box).all()):
            raise ValueError("alpha leaves its box, or C s_k is infinite")
        codes = np.rint(multiple / scale * (2**bits - 1)).astype(_CODES[bits])
        return cls(codes[np.newaxis], np.array([scale]))

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return int(self.codes.shape[0])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    @property
    def bits(self) -> int:
        """Bits for each alpha_k."""
        return 8 * self.codes.dtype.itemsize

    def alpha(self, i: int, box: Vector, first: int = 0) -> Vector:
        """The i-th problem's alpha of some rows.

        Parameters
        ----------
        i : int
            Index of the problem.
        box : ndarray of shape (n_block,)
            C s_k of the rows.
        first : int, default=0
            Number of rows before them.

        Returns
        -------
        alpha : ndarray of shape (n_block,)
            In the box of the hinge if the scale is at most 1.
        """
        codes = self.codes[i, first : first + box.size]
        if codes.size != box.size:
            raise ValueError(f"the witness is about {self.n_rows} rows, the data has more")
        with np.errstate(over="ignore", invalid="ignore"):
            alpha: Vector = box * (self.scale[i] * (codes / float(2**self.bits - 1)))
        return alpha
