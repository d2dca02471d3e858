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
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.matrices import checked_csr, read_only
from certsvm.verification.interval_arithmetic import Vector

_GROUP = 4096
# Conversions stay in the processor's cache.
_AT_ONCE = 1 << 16
_MIXED = "some labels are numbers and others strings; make them all the same"


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
        *numbers, digest = astuple(self)
        counts = all(type(number) is int and number >= 0 for number in numbers)
        if not (counts and re.fullmatch("[0-9a-f]{64}", str(digest))):
            has = "three integers >= 0 and 64 hexadecimal digits"
            raise ValueError(f"a fingerprint has {has}, got {astuple(self)!r:.200}")

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
        self._kind = self._digests = b""
        self._group = hashlib.sha256()

    def update(self, X: Any, labels: ArrayLike) -> None:
        """Add rows and their labels: numbers or strings, of one kind in all blocks."""
        X, kind, words = _checked(X, labels)
        if X.shape[1] > self.n_columns:
            raise ValueError(f"X has {X.shape[1]} columns, more than the {self.n_columns} stated")
        if kind and self._kind not in (b"", kind):
            raise ValueError(_MIXED)
        self._kind = kind or self._kind
        for first, n_rows, *block in entries(X, _AT_ONCE, self.n_rows):
            if not (used := block[0] != 0.0).all():
                block = [of_values[used] for of_values in block]
            values, rows, columns = block
            width, lengths = words.shape[1], np.bincount(rows, minlength=n_rows)
            written = np.empty(n_rows * (1 + width) + 2 * values.size, dtype="<u8")
            # Where each row begins, and each of its values.
            at_row = np.arange(n_rows) * (1 + width) + 2 * (np.cumsum(lengths) - lengths)
            at_value = 2 * np.arange(values.size) + (rows + 1) * (1 + width)
            written[at_row] = lengths
            written[at_row[:, np.newaxis] + np.arange(1, 1 + width)] = words[first:][:n_rows]
            written[at_value], written[at_value + 1] = columns, values.view(np.uint64)
            self._group.update(written.data)
            self.n_rows += n_rows
            self.n_values += values.size
            if self.n_rows % _GROUP == 0:
                self._digests += self._group.digest()
                self._group = hashlib.sha256()

    def finish(self) -> Fingerprint:
        """The fingerprint of all rows so far."""
        last = self._group.digest() if self.n_rows % _GROUP else b""
        counts = struct.pack("<qq", self.n_rows, self.n_values)
        digest = hashlib.sha256(counts + self._kind + self._digests + last).hexdigest()
        return Fingerprint(self.n_rows, self.n_columns, self.n_values, digest)


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
        raise ValueError(_MIXED)
    if True not in strings:
        try:
            if labels.dtype.kind not in "biufO":
                raise TypeError(f"got {labels.dtype}")
            # Adding zero turns -0.0 into 0.0.
            numbers: NDArray[np.float64] = labels.astype(np.float64) + 0.0
        except (TypeError, ValueError) as error:
            raise ValueError(f"labels must be numbers or strings: {error}") from None
        if np.isnan(numbers).any():
            raise ValueError("a label is NaN; remove rows whose label is missing")
        return X, b"n", numbers.view(np.uint64)[:, np.newaxis]
    digests = {value: hashlib.sha256(value.encode()).digest() for value in set(values)}
    joined = b"".join(map(digests.__getitem__, values))
    return X, b"s", np.frombuffer(joined, dtype="<u8").reshape(-1, 4)


def added_up(X: Any) -> Any:
    """An array or a CSR matrix that was checked, with values stored twice added up in float64.

    Scores must be computed from what this returns. Of values that cancel, products with each of
    them are off by far more than the size of the row allows for.

    Examples
    --------
    >>> twice = sp.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
    >>> added_up(twice).data.tolist()
    [3.0]
    """
    if not sp.issparse(X):
        return X
    # A new matrix, since flags of the given one may lie, and its first value need not be used.
    used = slice(int(X.indptr[0]), int(X.indptr[-1]))
    X = sp.csr_array((X.data[used], X.indices[used], X.indptr - X.indptr[0]), shape=X.shape)
    if not X.has_canonical_format:
        X = X.astype(np.float64)
        X.sum_duplicates()
    return X


def entries(
    X: Any, most: int, first_row: int | None = None
) -> Iterator[tuple[int, int, Vector, NDArray[np.intp], NDArray[np.intp]]]:
    """All values of an array or CSR matrix, in blocks of consecutive rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns)
        What is stored twice is added up in float64, as in training.
    most : int
        About how many values a block has. It has at least a row.
    first_row : int, default=None
        The number of rows before these, if a block is to lie in one group.

    Yields
    ------
    first, n_rows : int
        The number of a block's first row, and of its rows.
    values, rows, columns : ndarray
        Each value in float64, its row in the block and its column, in ascending order.
    """
    X, sparse, (n_rows, n_columns) = added_up(X), sp.issparse(X), X.shape
    starts = X.indptr.astype(np.int64) if sparse else np.arange(n_rows + 1) * n_columns
    first = 0
    while first < n_rows:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        n_left = most if first_row is None else _GROUP - (first_row + first) % _GROUP
        last = min(max(last, first + 1), first + n_left, n_rows)
        part, n_here = slice(starts[first], starts[last]), last - first
        if sparse:
            values, columns = X.data[part], X.indices[part].astype(np.intp)
        else:
            values, columns = X[first:last].reshape(-1), np.tile(np.arange(n_columns), n_here)
        rows = np.repeat(np.arange(n_here), np.diff(starts[first : last + 1]))
        yield first, n_here, values.astype(np.float64), rows, columns
        first = last


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
        fit = codes.ndim == 2 and scale.shape == codes.shape[:1] and codes.dtype in _CODES.values()
        # NaN must fail, so the comparisons are not negated.
        if not (fit and ((scale > 0) & (scale < np.inf)).all()):
            has = f"{codes.dtype} of shape {codes.shape}, scales {scale}"
            raise ValueError(f"a witness has a matrix of uint codes and scales > 0, got {has}")
        object.__setattr__(self, "codes", read_only(codes))
        object.__setattr__(self, "scale", read_only(scale))

    def __repr__(self) -> str:
        n_problems, n_rows = self.codes.shape
        return f"<Witness of {n_rows} rows, {n_problems} problems, {self.bits} bits each>"

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
        with np.errstate(over="ignore", invalid="ignore"):
            alpha: Vector = box * (self.scale[i] * (codes / float(2**self.bits - 1)))
        return alpha
