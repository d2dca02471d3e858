"""Reading in a thread of its own, one item ahead."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Reader:
    """A thread that reads ahead; it ends when nobody has the reader any more.

    It is started once, not for each pass: an interrupt in the middle of a start would leave Python
    with a thread that neither runs nor is gone.

    Examples
    --------
    >>> reader = Reader()
    >>> list(reader.one_ahead(range(3)))
    [0, 1, 2]
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[_Work[Any] | None] = SimpleQueue()
        self._free = threading.Lock()
        # A daemon: a source that hangs must not keep the process from ending.
        threading.Thread(
            target=_work_off, args=(self._work,), name="certsvm-read", daemon=True
        ).start()
        weakref.finalize(self, self._work.put, None)

    def one_ahead(self, items: Iterable[T]) -> Iterator[T]:
        """The same items; the next is being made while one is in use, and none further.

        Only the thread touches ``items``, from beginning to end: whenever whoever takes the items
        stops, be it by Ctrl-C, it is the thread that closes a generator. A second pass at the same
        time is made without it.
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
            if handed_over:
                work.over.wait()
            self._free.release()


def _work_off(queue: SimpleQueue[_Work[Any] | None]) -> None:
    while (work := queue.get()) is not None:
        work.run()
        del work


class _End(NamedTuple):
    """Instead of an item: there are no more, or there was an error."""

    error: BaseException | None


class _Work(Generic[T]):
    """One pass."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self._made: SimpleQueue[T | _End] = SimpleQueue()
        # One is made before it is wanted.
        self._wanted = threading.Semaphore(1)
        self._stopped = False
        self.over = threading.Event()

    def results(self) -> Iterator[T]:
        """The items, as the thread makes them."""
        while True:
            made = self._made.get()
            if isinstance(made, _End):
                if made.error is not None:
                    raise made.error
                return
            self._wanted.release()
            yield made
            # Held no longer than by whoever took it.
            del made

    def stop(self) -> None:
        """Let the thread make no more."""
        self._stopped = True
        self._wanted.release()

    def run(self) -> None:
        """Make items as they are wanted: what the thread does."""
        try:
            iterator = iter(self._items)
            try:
                self._make_all(iterator)
            finally:
                if hasattr(iterator, "close"):
                    iterator.close()
        except BaseException as error:
            self._made.put(_End(error))
        finally:
            self.over.set()

    def _make_all(self, iterator: Iterator[T]) -> None:
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
