"""Reading one item ahead, in another thread."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Generator, Iterable, Iterator
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Reader:
    """A thread that reads ahead; it ends when the reader is garbage-collected.

    The thread is started once, not for each pass: an interrupt during a start would leave a thread
    that neither runs nor has ended. Nor is it an executor, whose ``submit`` takes locks in Python:
    an interrupt in the midst of it can leave one locked for ever.

    Examples
    --------
    >>> reader = Reader()
    >>> list(reader.one_ahead(range(3)))
    [0, 1, 2]
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[_Work[Any] | None] = SimpleQueue()
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
        work: _Work[T] = _Work(items)
        handed_over = False
        try:
            self._work.put(work)
            handed_over = True
            yield from work.results()
        finally:
            work.stop()
            # When the interpreter exits, daemon threads no longer run.
            if handed_over and not sys.is_finalizing():
                work.over.wait()
            self._free.release()


def _run_all(queue: SimpleQueue[_Work[Any] | None]) -> None:
    while (work := queue.get()) is not None:
        work.run()
        del work


class _End(NamedTuple):
    """Marks the end of the items, or an error."""

    error: BaseException | None


class _Work(Generic[T]):
    """One pass."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self._made: SimpleQueue[T | _End] = SimpleQueue()
        # The first item is read before it is asked for.
        self._wanted = threading.Semaphore(1)
        self._stopped = False
        self.over = threading.Event()

    def results(self) -> Iterator[T]:
        """The items, as the thread reads them."""
        while True:
            made = self._made.get()
            if isinstance(made, _End):
                if made.error is not None:
                    raise made.error
                return
            self._wanted.release()
            yield made
            # Keep no reference while the next item is read.
            del made

    def stop(self) -> None:
        """Let the thread read no more items."""
        self._stopped = True
        self._wanted.release()

    def run(self) -> None:
        """Read items as they are asked for; runs in the thread."""
        try:
            iterator = iter(self._items)
            try:
                self._read_all(iterator)
            finally:
                if hasattr(iterator, "close"):
                    iterator.close()
        except BaseException as error:
            self._made.put(_End(error))
        finally:
            self.over.set()

    def _read_all(self, iterator: Iterator[T]) -> None:
        while True:
            self._wanted.acquire()
            if self._stopped:
                return
            try:
                item = next(iterator)
            except StopIteration:
                self._made.put(_End(None))
                return
            self._made.put(item)
            del item
