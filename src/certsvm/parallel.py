"""Threads: sharing work among them, and limiting those of BLAS.

Kernels run without the GIL, so plain threads suffice. J has the same bits for any number of
threads. Sums of vectors and matrices have one part per thread, so their bits depend on the number
of threads, but not on their timing.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

from certsvm.pass_limits import require_time


def available_processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Team:
    """Threads that share the pieces of a task; a context manager.

    Parameters
    ----------
    n_jobs : int, default=1
        Number of threads; one means the caller's thread.

    Examples
    --------
    >>> done = []
    >>> with Team(1) as team:
    ...     _ = team.share(lambda first, last: done.extend(range(first, last)), 3)
    >>> done
    [0, 1, 2]
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.n_jobs = n_jobs
        self._executor: ThreadPoolExecutor | None = None

    def __enter__(self) -> Team:
        if self.n_jobs > 1:
            self._executor = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="certsvm")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def share(self, task: Callable[[int, int], Any], pieces: int) -> list[Any]:
        """Call ``task(first, last)`` for one range of pieces per thread; return the results."""
        require_time()
        if self._executor is None or pieces <= 1:
            return [task(0, pieces)]
        n_ranges = min(self.n_jobs, pieces)
        edges = [pieces * i // n_ranges for i in range(n_ranges + 1)]
        futures = [self._executor.submit(task, a, b) for a, b in itertools.pairwise(edges)]
        return [future.result() for future in futures]

    def map(self, task: Callable[..., Any], *pieces: Sequence[Any]) -> list[Any]:
        """Results of ``task`` for every piece, in order; of several errors the first is raised."""
        if self._executor is None or len(pieces[0]) <= 1:
            return list(map(task, *pieces))
        return list(self._executor.map(task, *pieces))


ALONE = Team()
"""The caller's thread."""


class _BlasLibrary:
    """A BLAS library in this process, and its limit on threads."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        # Whether each thread has a limit of its own; found out when it first matters.
        self._is_per_thread: bool | None = None

    def limit(self) -> int | None:
        """The number of threads for calls from this thread; None if it is unknown."""
        number: int | None = self._controller.get_num_threads()
        return number

    def set_limit(self, number: int) -> None:
        """Set the number of threads, for this thread or for the process."""
        # Recent versions of threadpoolctl let one thread at a time change a limit of the process
        # and ignore all others, until that thread gives it up. Here the thread that lowers the
        # limit need not be the last to leave, so each takes over and gives up again.
        give_up = getattr(self._controller, "clear_controlling_thread", None)
        if give_up is not None:
            give_up(force=True)
        self._controller.set_num_threads(number)
        if give_up is not None:
            give_up(force=True)

    def is_per_thread(self) -> bool:
        """Whether each thread has a limit of its own, given that it is one in this thread."""
        if self._is_per_thread is None:
            elsewhere: list[int | None] = []
            thread = threading.Thread(target=lambda: elsewhere.append(self.limit()))
            thread.start()
            thread.join()
            self._is_per_thread = elsewhere != [1]
        return self._is_per_thread


class _BlasLimits:
    """The limits that are lowered now, and the number of callers that rely on it."""

    def __init__(self, libraries: Sequence[_BlasLibrary]) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._users = 0
        # The limits of the process before the first of these callers.
        self._before: dict[_BlasLibrary, int] = {}

    def lower(self) -> list[tuple[_BlasLibrary, int]]:
        """Set all limits to one; return those of this thread alone."""
        own = []
        with self._lock:
            self._users += 1
            for library in self._libraries:
                number = library.limit()
                if number is None or number <= 1:
                    continue
                library.set_limit(1)
                if library.is_per_thread():
                    own.append((library, number))
                else:
                    self._before[library] = number
        return own

    def restore(self, own: list[tuple[_BlasLibrary, int]]) -> None:
        """Undo ``lower``; the last caller restores the limits of the process."""
        with self._lock:
            self._users -= 1
            for library, number in own:
                library.set_limit(number)
            if self._users == 0:
                for library, number in self._before.items():
                    library.set_limit(number)
                self._before.clear()


@cache
def _blas_limits() -> _BlasLimits:
    # Finding the libraries takes milliseconds, so it is done once.
    controllers = ThreadpoolController().select(user_api="blas").lib_controllers
    return _BlasLimits([_BlasLibrary(controller) for controller in controllers])


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread for calls from this thread, since work is shared above it.

    Some libraries have a limit per thread, others one for the process. The latter is restored when
    the last caller that relies on it leaves. So this is for the calls themselves, not for a fit:
    entering and leaving takes microseconds.
    """
    limits = _blas_limits()
    own = limits.lower()
    try:
        yield
    finally:
        limits.restore(own)
