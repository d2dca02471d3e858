"""Streams of blocks, which are read again in every pass.

A certificate holds for one set of rows, so every pass must see the same rows. ``BlockStream``
ensures this: the first pass, the survey, stores a digest of each block, and later passes compare
their blocks with it. Other blocks, or another number of blocks, are an error: nothing is certified.

Two blocks are in memory at a time: one in use, and the next, which another thread reads and checks
meanwhile. A source that reuses its arrays could overwrite the block in use, so the digest of each
block is computed a second time after its use.

Several fits on one stream, as of several classes, make their passes together (``SharedPasses``), so
that each block is read once for all of them.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.files.batch import Batch
from certsvm.kernels.digest import mix
from certsvm.matrices import checked_csr, exact_labels, read_only, refuse_masked
from certsvm.problem.base import ClassSurvey
from certsvm.problem.rows import Rows, Vector
from certsvm.verification.evidence import FingerprintBuilder
from certsvm.verification.verify import checked_weights

T = TypeVar("T")

BlockSource: TypeAlias = Callable[[], Iterable[tuple[Any, ...]]]
"""Begins a pass: returns blocks ``(X, y)`` or ``(X, y, weights)``, the same in each pass."""


class DataChangedError(ValueError):
    """A source does not give the same rows in every pass."""


class Block(NamedTuple):
    """Rows to train on: augmented, with the class index of each row.

    ``first`` is the number of rows before the block.
    """

    rows: Rows
    y_index: NDArray[np.intp]
    weights: Vector | None
    first: int


class BlockStream:
    """Blocks of rows from a source that can be read repeatedly.

    Parameters
    ----------
    source : callable
        Called without arguments at the beginning of each pass; returns an iterable of blocks
        ``(X, y)`` or ``(X, y, weights)``: X sparse or dense, y the labels. It is iterated in
        another thread, which reads the next block while one is in use.
    intercept_scaling : float, default=0.0
        The augmentation rho >= 0 of the rows.
    on_block : callable, default=None
        Called after each block of the survey with the number of rows read; for a progress bar.
    cache_bytes : int, default=None
        Memory for what a solver keeps of the rows; None leaves it to the solver.

    Attributes
    ----------
    n_rows, n_columns, n_stored, n_blocks : int
        Size of the data.
    classes : ndarray
        The labels that occur, in ascending order.
    surveys : list of ClassSurvey
        Row count and weights of each class.
    R : float
        The largest norm of an augmented row of positive weight.
    nbytes, largest_block : int
        Size of all blocks and of the largest, in bytes.
    float32 : bool
        Whether all values are float32.
    fingerprint : Fingerprint
        Fingerprint of all rows and labels; it does not depend on the division into blocks.

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
        self, source: BlockSource, *, intercept_scaling: float = 0.0,
        on_block: Callable[[int], None] | None = None, cache_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self.source, self._reader = source, Reader()
        self.intercept_scaling = float(intercept_scaling)
        self.n_rows = self.n_columns = self.n_stored = self.n_blocks = self.largest_block = 0
        self.R, self.float32 = 0.0, True
        self.nbytes, self.cache_bytes = 0, cache_bytes
        self._digests: list[bytes] = []
        self._survey(on_block)

    def blocks(self) -> Iterator[Block]:
        """All rows, in order; raises ``DataChangedError`` if they differ from the survey.

        A member of ``SharedPasses`` gets them together with the others.
        """
        member = self._member
        return self.read() if member is None or member.queues is not None else member.blocks()

    @property
    def cache_share(self) -> int | None:
        """Memory for what a solver keeps of the rows; a member of ``SharedPasses`` has a share."""
        return self.cache_bytes if self._member is None else self._member.passes.cache_bytes

    @property
    def _member(self) -> _Member | None:
        """The member of passes over this stream that asks."""
        member = _member.get()
        return member if member is not None and member.passes.stream is self else None

    def read(self) -> Generator[Block, None, None]:
        """All rows, in order, for one user."""
        first = n_blocks = 0
        with closing(self._batches()) as batches:
            for batch, digest in batches:
                if self._digests[n_blocks : n_blocks + 1] != [digest]:
                    break
                rows = Rows(batch.X, intercept_scaling=self.intercept_scaling)
                yield Block(rows, self._class_index(batch.y), batch.weights, first)
                first += rows.n_rows
                n_blocks += 1
            else:
                if n_blocks == self.n_blocks:
                    return
        raise DataChangedError(
            f"the data are not what they were in the first pass, from block {n_blocks + 1} of "
            f"{self.n_blocks} on: they changed underneath, or the source cannot be read a second "
            "time or gives other blocks (an iterator, not a function that makes one?). Nothing is "
            "certified."
        )

    def _class_index(self, y: NDArray[Any]) -> NDArray[np.intp]:
        # NumPy compares labels of different types in a third, which may have neither.
        y = y.astype(self.classes.dtype, copy=False)
        if self.classes.size == 2:
            # Much faster than a search.
            return np.asarray(y == self.classes[1], dtype=np.intp)
        return np.searchsorted(self.classes, y)

    def _survey(self, on_block: Callable[[int], None] | None) -> None:
        surveys: dict[Any, ClassSurvey] = {}
        for batch, digest in self._batches():
            X, y, weights = batch
            if self.n_blocks == 0:
                self.n_columns = int(X.shape[1])
                fingerprint = FingerprintBuilder(self.n_columns)
            if X.shape[1] != self.n_columns:
                widths = f"{X.shape[1]} columns, those before it {self.n_columns}"
                raise ValueError(f"block {self.n_blocks + 1} has {widths}")
            try:
                rows = Rows(X, intercept_scaling=self.intercept_scaling)
            except ValueError as error:
                place = f"block {self.n_blocks + 1} of the data (after {self.n_rows} rows)"
                raise ValueError(f"{place}: {error}") from None
            labels, y_index = np.unique(y, return_inverse=True)
            for i, label in enumerate(labels.tolist()):
                in_class = y_index == i
                class_weights = None if weights is None else weights[in_class]
                surveys.setdefault(label, ClassSurvey()).add(int(in_class.sum()), class_weights)
            norms = rows.squared_norms if weights is None else rows.squared_norms[weights > 0]
            self.R = max(self.R, float(np.sqrt(norms.max(initial=0.0))))
            self.n_rows += rows.n_rows
            self.n_stored += rows.n_stored
            self.nbytes += rows.nbytes
            self.largest_block = max(self.largest_block, rows.nbytes)
            self.n_blocks += 1
            self.float32 &= X.dtype == np.float32
            self._digests.append(digest)
            fingerprint.update(X, y)
            if on_block is not None:
                on_block(self.n_rows)
        if self.n_rows == 0:
            raise ValueError("there are no rows in the data")
        self.fingerprint = fingerprint.finish()
        self.classes = exact_labels(sorted(surveys))
        self.surveys = [surveys[label] for label in self.classes.tolist()]

    def _batches(self) -> Generator[tuple[Batch, bytes], None, None]:
        """The blocks of a pass as the source gives them, with their digests."""

        def checked() -> Generator[tuple[Batch, bytes], None, None]:
            # Since Python 3.12, a generator that is closed may still hold those inside it.
            with _closing(iter(self.source())) as blocks:
                for block in blocks:
                    batch = checked_block(block)
                    if len(batch.y):
                        yield batch, block_digest(*batch)

        with closing(self._reader.one_ahead(checked())) as batches:
            for batch, digest in batches:
                yield batch, digest
                if block_digest(*batch) != digest:
                    raise DataChangedError(
                        "a block was overwritten while it was in use: the source must not use its "
                        "arrays again for the next block, but yield copies. Nothing is certified."
                    )
                # Keep no reference while the next one is read.
                del batch


def checked_block(block: Any) -> Batch:
    """A block from a source: X as CSR or array, y, and the weights, all validated."""
    if not (isinstance(block, tuple | list) and len(block) in (2, 3)):
        raise ValueError(
            f"a block must be (X, y) or (X, y, weights), got {type(block).__name__}. Data in one "
            "piece are a list of one block: [(X, y)]."
        )
    X, y, weights = (*block, None)[:3]
    y = exact_labels(y)
    refuse_masked(X=X)
    X = checked_csr(X) if sp.issparse(X) else np.ascontiguousarray(X)
    if X.ndim != 2 or y.shape != (X.shape[0],):
        raise ValueError(
            f"a block has X of shape {X.shape} and y of shape {y.shape}: there must be a label "
            "for each row"
        )
    objects = y.tolist() if y.dtype.kind == "O" else []
    missing = any(label is None or label != label for label in objects)
    if missing or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        raise ValueError("a block has rows without a label, or labels that are not finite")
    return Batch(X, y, None if weights is None else checked_weights(weights, len(y)))


def block_digest(X: Any, y: NDArray[Any], weights: Vector | None) -> bytes:
    """Digest of everything in a block, as it is stored."""
    digest = hashlib.sha256(repr(X.shape).encode())
    arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    if y.dtype.kind == "O":
        digest.update("\0".join(map(repr, y.tolist())).encode())
    else:
        arrays.append(y)
    if weights is not None:
        arrays.append(weights)
    for array in arrays:
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        whole = content.size // 64 * 64
        state = np.arange(1, 9, dtype=np.uint64)
        mix(read_only(content[:whole].view(np.uint64)), state)
        digest.update(f"{array.dtype.str} {array.size} ".encode())
        digest.update(state.tobytes() + content[whole:].tobytes())
    return digest.digest()[:16]


# Seconds after which those who wait for a pass make it without those who have not begun.
_LATE = 1.0


class _End(NamedTuple):
    """The last that the thread says of a pass: the error that ended it, if one did."""

    error: BaseException | None


class _Queues(NamedTuple):
    """Between one who takes part in a pass and the thread that reads."""

    wanted: SimpleQueue[bool]
    made: SimpleQueue[Any]


def _closing(items: Any) -> AbstractContextManager[Iterator[Any]]:
    return closing(items) if hasattr(items, "close") else nullcontext(items)


def _make_pass(items: Iterable[Any], users: list[_Queues]) -> None:
    """Give each item to all who want one; who does not has ended the pass."""
    left, end = users, None
    try:
        with _closing(iter(items)) as iterator:
            while left := [user for user in left if user.wanted.get()]:
                item = next(iterator)
                for user in left:
                    user.made.put(item)
                # Keep no reference while the next item is read.
                del item
    except StopIteration:
        pass
    except BaseException as error:
        end = error
    for user in users:
        # Twice, since an interrupt can lose what was just taken from a queue.
        user.made.put(_End(end))
        user.made.put(_End(end))


def _run_all(work: SimpleQueue[Any]) -> None:
    """Read one pass after the other; runs in the thread."""
    while (a_pass := work.get()) is not None:
        _make_pass(*a_pass)
        del a_pass


class Reader:
    """A thread that reads ahead; it ends when the reader is garbage-collected.

    The thread is started once, not for each pass: an interrupt during a start would leave a thread
    that neither runs nor has ended. Nor is it an executor, whose ``submit`` takes locks in Python:
    an interrupt in the midst of it can leave one locked for ever. The queues are written in C.

    Examples
    --------
    >>> reader = Reader()
    >>> list(reader.one_ahead(range(3)))
    [0, 1, 2]
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Any] = SimpleQueue()
        self._free = threading.Lock()
        # A daemon, so that a source that hangs does not keep the process alive.
        threading.Thread(
            target=_run_all, args=(self._work,), name="certsvm-read", daemon=True
        ).start()
        weakref.finalize(self, self._work.put, None)

    def one_ahead(self, items: Iterable[T]) -> Generator[T, None, None]:
        """The same items; the next one is read while one is in use.

        Only the thread touches ``items``: it also closes a generator if the caller stops early, be
        it by Ctrl-C. A second pass at the same time is read in the caller's thread.
        """
        if not self._free.acquire(blocking=False):
            yield from items
            return
        queues = _Queues(SimpleQueue(), SimpleQueue())
        item: Any = _End(None)
        try:
            # The first item is read before it is asked for.
            queues.wanted.put(True)
            self._work.put((items, [queues]))
            item = None
            while not isinstance(item := queues.made.get(), _End):
                queues.wanted.put(True)
                yield item
                # Keep no reference while the next item is read.
                item = None
            if item.error is not None:
                raise item.error
        finally:
            queues.wanted.put(False)
            # When the interpreter exits, daemon threads no longer run.
            while not isinstance(item, _End) and not sys.is_finalizing():
                item = queues.made.get()
            self._free.release()


class SharedPasses:
    """Passes over a stream that several fits make together, each in a thread of its own.

    A pass begins when all who are at work want one, and each block is given to all who take part.
    Who wants more passes than others makes them with whoever is left. A thread computes only while
    it has one of a number of permits, which it returns while it waits for a block.

    Parameters
    ----------
    stream : BlockStream
        The data.
    n_fits, at_once : int
        The number of fits, and how many of them are at work at the same time.
    n_jobs : int
        How many of these compute at the same time.
    cache_bytes : int
        Memory for what each keeps of the rows.
    """

    def __init__(
        self, stream: BlockStream, n_fits: int, at_once: int, n_jobs: int, cache_bytes: int
    ) -> None:
        self.stream, self.cache_bytes = stream, cache_bytes
        self.permits = threading.Semaphore(n_jobs)
        # What a fit says: that it has begun, the queues of a pass that it asks for, or, as it has
        # ended, nothing.
        self.asked: SimpleQueue[_Queues | bool | None] = SimpleQueue()
        threading.Thread(
            target=self._serve, args=(n_fits, at_once), name="certsvm-passes", daemon=True
        ).start()

    def member(self, fit: Callable[[int], T]) -> Callable[[int], T]:
        """A function that makes the i-th fit as a member; it must be called once for each fit."""

        def fit_as_member(i: int) -> T:
            member = _Member(self)
            self.asked.put(True)
            with self.permits:
                token = _member.set(member)
                try:
                    return fit(i)
                finally:
                    _member.reset(token)
                    # An error may keep alive a generator that makes a pass.
                    if member.queues is not None:
                        member.queues.wanted.put(False)
                    self.asked.put(None)

        return fit_as_member

    def _serve(self, left: int, at_once: int) -> None:
        waiting: list[_Queues] = []
        at_work = 0
        while left:
            delay = None
            if waiting and len(waiting) == at_work:
                # Where the system has no thread for a fit, it never begins.
                delay = 0.0 if at_work == min(at_once, left) else _LATE
            try:
                asked = self.asked.get(timeout=delay)
            except Empty:
                _make_pass(self.stream.read(), waiting)
                waiting = []
                continue
            if isinstance(asked, _Queues):
                waiting.append(asked)
            elif asked:
                at_work += 1
            else:
                left, at_work = left - 1, at_work - 1


class _Member:
    """One of those who make passes together, and the queues of the pass that it makes."""

    def __init__(self, passes: SharedPasses) -> None:
        self.passes = passes
        self.queues: _Queues | None = None

    def blocks(self) -> Generator[Block, None, None]:
        """Make a pass."""
        queues = self.queues = _Queues(SimpleQueue(), SimpleQueue())
        self.passes.asked.put(queues)
        try:
            while True:
                queues.wanted.put(True)
                self.passes.permits.release()
                item = queues.made.get()
                self.passes.permits.acquire()
                if isinstance(item, _End):
                    break
                yield item
                # Keep no reference while the next block is read.
                del item
        finally:
            queues.wanted.put(False)
            self.queues = None
        if item.error is not None:
            raise item.error


_member: ContextVar[_Member | None] = ContextVar("certsvm_member", default=None)
