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


class _BlasLimit:
    """The limit on the threads of BLAS, and the number of fits that rely on it."""

    lock = threading.Lock()
    users = 0
    limiter: Any = None


@cache
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds, so it is done once.
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, since work is shared above it.

    The limit holds for the process. It is removed when the last fit that relies on it ends.
    """
    with _BlasLimit.lock:
        if _BlasLimit.users == 0:
            _BlasLimit.limiter = _controller().limit(limits=1, user_api="blas")
        _BlasLimit.users += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.users -= 1
            if _BlasLimit.users == 0:
                _BlasLimit.limiter.restore_original_limits()
