"""Threads: sharing work among them, and limiting those of BLAS.

Kernels run without the GIL, so plain threads suffice. J has the same bits for any number of
threads. Sums of vectors and matrices have one part per thread, so their bits depend on the number
of threads, but not on their timing.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from certsvm.pass_limits import require_time

# So few operations are not worth sharing.
_LEAST_SHARED = 2_000_000


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

    def __exit__(self, *error: object) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def share(
        self, task: Callable[[int, int], Any], pieces: int, work: float = math.inf
    ) -> list[Any]:
        """Call ``task(first, last)`` for one range of pieces per thread; return the results.

        ``work`` is the number of operations, about; with few of them there is one range.
        """
        require_time()
        if self._executor is None or pieces <= 1 or work < _LEAST_SHARED:
            return [task(0, pieces)]
        n_ranges = min(self.n_jobs, pieces)
        edges = [pieces * i // n_ranges for i in range(n_ranges + 1)]
        return self.map(task, edges[:-1], edges[1:])

    def map(self, task: Callable[..., Any], *pieces: Sequence[Any]) -> list[Any]:
        """Results of ``task`` for every piece, in order; of several errors the first is raised."""
        if self._executor is None or len(pieces[0]) <= 1:
            return list(map(task, *pieces))
        return list(self._executor.map(task, *pieces))


ALONE = Team()
"""The caller's thread."""


class _BlasLimits:
    """The limits that are lowered now, and the number of callers that rely on it.

    ``libraries`` are threadpoolctl's controllers of the BLAS libraries in this process.
    """

    def __init__(self, libraries: Sequence[Any]) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._users = 0
        # The limits of the process before the first of these callers.
        self._before: dict[Any, int] = {}
        # Whether each thread has a limit of its own; found out when it first matters.
        self._is_per_thread: dict[Any, bool] = {}

    def lower(self) -> list[tuple[Any, int]]:
        """Set all limits to one; return those of this thread alone."""
        own = []
        with self._lock:
            self._users += 1
            for library in self._libraries:
                number = library.get_num_threads()
                if number is None or number <= 1:
                    continue
                _set_limit(library, 1)
                if library not in self._is_per_thread:
                    with ThreadPoolExecutor(1) as elsewhere:
                        other = elsewhere.submit(library.get_num_threads).result()
                    self._is_per_thread[library] = other != 1
                if self._is_per_thread[library]:
                    own.append((library, number))
                else:
                    self._before[library] = number
        return own

    def restore(self, own: list[tuple[Any, int]]) -> None:
        """Undo ``lower``; the last caller restores the limits of the process."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                own = own + list(self._before.items())
                self._before.clear()
            for library, number in own:
                _set_limit(library, number)


def _set_limit(library: Any, number: int) -> None:
    # Recent versions of threadpoolctl let one thread at a time change a limit of the process and
    # ignore all others, until that thread gives it up. Here the thread that lowers the limit need
    # not be the last to leave, so each takes over and gives up again.
    give_up = getattr(library, "clear_controlling_thread", lambda **_: None)
    give_up(force=True)
    library.set_num_threads(number)
    give_up(force=True)


@cache
def _blas_limits() -> _BlasLimits:
    # Finding the libraries takes milliseconds, so it is done once.
    return _BlasLimits(ThreadpoolController().select(user_api="blas").lib_controllers)


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
