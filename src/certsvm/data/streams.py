"""Data that is read anew in each pass: a stream of blocks, and the problem on it.

A certificate is about one set of rows, so all passes must see the same. A ``BlockStream`` makes
sure of it: the first pass, the survey, takes a digest of each block, and every later block must
have the digest of its place. A source that gives something else, fewer or more blocks than before
is an error, and no certificate.

At any time two blocks are in memory: the one that is worked on, and the next, which is read and
checked in a thread of its own meanwhile. A source that writes over its last block then would change
rows in use; so each block's digest is taken once more when it has been worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
import xxhash
from numpy.typing import NDArray

from certsvm.data.read_ahead import Reader
from certsvm.problem.rows import Rows, Vector, to_csr
from certsvm.problem.sizes import ClassSurvey
from certsvm.storage.fingerprint import FingerprintBuilder

Source: TypeAlias = Callable[[], Iterable[tuple[Any, ...]]]
"""Begins a pass: returns blocks ``(X, y)`` or ``(X, y, weights)``, the same in each pass."""


class DataChangedError(ValueError):
    """A source did not give the same rows again."""


class Block(NamedTuple):
    """Rows in memory, the positions of their labels among the classes, and their weights."""

    rows: Rows
    y_index: NDArray[np.intp]
    weights: Vector | None
    first: int


class RawBlock(NamedTuple):
    """A block as it comes from the source, with its digest."""

    X: Any
    y: NDArray[Any]
    weights: Vector | None
    digest: bytes

    def refuse_overwritten(self) -> None:
        """Raise if somebody wrote into the block since its digest was taken."""
        if block_digest(self.X, self.y, self.weights) != self.digest:
            raise DataChangedError(
                "a block was overwritten while it was in use: the source must not use its arrays "
                "again for the next block. Let it yield copies, or read_ahead=False. Nothing is "
                "certified."
            )


class BlockStream:
    """Blocks of rows from a source that can be read again and again.

    Parameters
    ----------
    source : callable
        Called without arguments at the beginning of each pass; returns an iterable of blocks
        ``(X, y)`` or ``(X, y, weights)``: X sparse or dense, y the labels. It is iterated in
        another thread unless ``read_ahead`` is False.
    intercept_scaling : float, default=0.0
        The augmentation rho >= 0 of the rows.
    read_ahead : bool, default=True
        Whether to read the next block while one is worked on. Then two are in memory.
    on_block : callable, default=None
        Called with the number of rows read after each block of the survey; for a progress bar.

    Attributes
    ----------
    n_rows, n_columns, n_stored, n_blocks : int
        Size of the data.
    classes : ndarray
        The labels that occur, in ascending order.
    surveys : list of ClassSurvey
        One for each class.
    R : float
        The largest norm of an augmented row of positive weight.
    largest_block : int
        Size of the largest block, in bytes.
    fingerprint : Fingerprint
        Of all rows and labels, however they are cut into blocks.

    Examples
    --------
    >>> import numpy as np
    >>> def blocks():
    ...     for i in range(3):
    ...         yield np.eye(2) * (i + 1), np.array(["yes", "no"])
    >>> stream = BlockStream(blocks)
    >>> stream.n_rows, stream.classes.tolist(), stream.R
    (6, ['no', 'yes'], 3.0)
    """

    def __init__(
        self,
        source: Source,
        *,
        intercept_scaling: float = 0.0,
        read_ahead: bool = True,
        on_block: Callable[[int], None] | None = None,
    ) -> None:
        if not callable(source):
            raise TypeError(
                "source must be a function that begins a pass and returns the blocks, not the "
                f"blocks themselves: they are read many times. Got {type(source).__name__}."
            )
        self.source = source
        self._reader = Reader() if read_ahead else None
        self.intercept_scaling = float(intercept_scaling)
        self.n_rows = self.n_columns = self.n_stored = self.n_blocks = self.largest_block = 0
        self.R = 0.0
        self._digests: list[bytes] = []
        self._survey(on_block)

    def blocks(self) -> Iterator[Block]:
        """All rows, in order; raises ``DataChangedError`` if they are not those of the survey."""
        first = n_blocks = 0
        for block in self._raw_blocks():
            if n_blocks == self.n_blocks or block.digest != self._digests[n_blocks]:
                raise DataChangedError(
                    f"block {n_blocks + 1} of the data is not what it was in the first pass: the "
                    "data changed underneath, or the source does not give the same blocks in each "
                    "pass. Nothing is certified."
                )
            rows = Rows(block.X, intercept_scaling=self.intercept_scaling)
            yield Block(rows, self._positions(block.y), block.weights, first)
            block.refuse_overwritten()
            first += rows.n_rows
            n_blocks += 1
        if n_blocks < self.n_blocks:
            raise DataChangedError(
                f"the data ended after {n_blocks} of {self.n_blocks} blocks: the source cannot be "
                "read a second time (an iterator instead of a function that makes one?), or the "
                "data changed underneath. Nothing is certified."
            )

    @property
    def digest(self) -> str:
        """Of all rows, labels and weights, as they are cut into blocks."""
        return xxhash.xxh3_128_hexdigest(b"".join(self._digests))

    def _positions(self, y: NDArray[Any]) -> NDArray[np.intp]:
        if self.classes.size == 2:
            # Much faster than a search, and the usual case.
            second: NDArray[np.bool_] = y == self.classes[1]
            return second.astype(np.intp)
        return np.searchsorted(self.classes, y)

    def _survey(self, on_block: Callable[[int], None] | None) -> None:
        surveys: dict[Any, ClassSurvey] = {}
        for block in self._raw_blocks():
            X, y, weights, digest = block
            if self.n_blocks == 0:
                self.n_columns = int(X.shape[1])
                fingerprint = FingerprintBuilder(self.n_columns)
            if X.shape[1] != self.n_columns:
                raise ValueError(
                    f"block {self.n_blocks + 1} has {X.shape[1]} columns, those before it "
                    f"{self.n_columns}"
                )
            rows = self._checked_rows(X)
            labels, y_index = np.unique(y, return_inverse=True)
            for i, label in enumerate(labels.tolist()):
                mine = y_index == i
                some = None if weights is None else weights[mine]
                surveys.setdefault(label, ClassSurvey()).add(int(mine.sum()), some)
            norms = rows.squared_norms if weights is None else rows.squared_norms[weights > 0]
            self.R = max(self.R, float(np.sqrt(norms.max(initial=0.0))))
            self.n_rows += rows.n_rows
            self.n_stored += rows.n_stored
            self.largest_block = max(self.largest_block, rows.nbytes)
            self.n_blocks += 1
            self._digests.append(digest)
            fingerprint.update(X, y)
            block.refuse_overwritten()
            if on_block is not None:
                on_block(self.n_rows)
        if self.n_rows == 0:
            raise ValueError("there are no rows in the data")
        self.fingerprint = fingerprint.finish()
        self.classes = np.array(sorted(surveys))
        self.surveys = [surveys[label] for label in self.classes.tolist()]

    def _checked_rows(self, X: Any) -> Rows:
        try:
            return Rows(X, intercept_scaling=self.intercept_scaling)
        except ValueError as error:
            raise ValueError(
                f"block {self.n_blocks + 1} of the data (after {self.n_rows} rows): {error}"
            ) from None

    def _raw_blocks(self) -> Iterator[RawBlock]:
        blocks = self._digested()
        yield from blocks if self._reader is None else self._reader.one_ahead(blocks)

    def _digested(self) -> Iterator[RawBlock]:
        for block in self.source():
            X, y, weights = checked_block(block)
            if X.shape[0]:
                yield RawBlock(X, y, weights, block_digest(X, y, weights))


def checked_block(block: Any) -> tuple[Any, NDArray[Any], Vector | None]:
    """X as CSR or array, y, and the weights of a block."""
    if not (isinstance(block, tuple | list) and len(block) in (2, 3)):
        raise ValueError(
            f"a block must be (X, y) or (X, y, weights), got {type(block).__name__}"
            + (f" of length {len(block)}" if isinstance(block, tuple | list) else "")
        )
    X, y = block[0], np.asarray(block[1])
    X = to_csr(X) if sp.issparse(X) else np.ascontiguousarray(X)
    if X.ndim != 2 or y.shape != (X.shape[0],):
        raise ValueError(
            f"a block has X of shape {X.shape} and y of shape {y.shape}: there must be a label "
            "for each row"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("a block has labels that are not finite")
    if y.dtype.kind == "O" and any(label is None or label != label for label in y.tolist()):
        raise ValueError("a block has rows without a label (NaN or None)")
    if len(block) == 2 or block[2] is None:
        return X, y, None
    weights: Vector = np.asarray(block[2], dtype=np.float64)
    if weights.shape != y.shape or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("a block's weights must be finite and not negative, one for each row")
    return X, y, weights


def block_digest(X: Any, y: NDArray[Any], weights: Vector | None) -> bytes:
    """Of everything in a block, as it is stored."""
    digest = xxhash.xxh3_128(repr(X.shape).encode())
    arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    if y.dtype.kind == "O":
        digest.update("\0".join(map(repr, y.tolist())).encode())
    else:
        arrays.append(y)
    if weights is not None:
        arrays.append(weights)
    for array in arrays:
        digest.update(array.dtype.str.encode())
        if array.size:
            digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.digest()


__all__ = [
    "Block",
    "BlockStream",
    "DataChangedError",
    "Source",
    "block_digest",
    "checked_block",
]
