"""Threads: sharing work among them, and keeping libraries from adding their own.

Kernels run without the GIL, so plain threads suffice. J has the same bits for any number of
threads; sums of vectors and matrices are put together from as many parts as there are threads,
so that results depend on their number, but on nothing else about them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController


class Team:
    """Threads that share the pieces of a task; a context manager.

    Parameters
    ----------
    n_jobs : int, default=1
        One means the caller's own thread.

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
        """Call ``task(first, last)`` for a run of pieces per thread; return what it returned."""
        if self._executor is None or pieces <= 1:
            return [task(0, pieces)]
        runs = min(self.n_jobs, pieces)
        edges = [pieces * i // runs for i in range(runs + 1)]
        futures = [self._executor.submit(task, a, b) for a, b in itertools.pairwise(edges)]
        return [future.result() for future in futures]


ALONE = Team()
"""The caller's own thread."""


class _Limits:
    """The one limit on the threads of BLAS, and how many fits rely on it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.limiter: Any = None


_limits = _Limits()


@cache
def _controller() -> ThreadpoolController:
    # Looking for libraries takes milliseconds, so it is done once.
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread: what is worth sharing is shared above it.

    The setting belongs to the process. It is restored when the last fit that relies on it ends.
    """
    with _limits.lock:
        if _limits.users == 0:
            _limits.limiter = _controller().limit(limits=1, user_api="blas")
        _limits.users += 1
    try:
        yield
    finally:
        with _limits.lock:
            _limits.users -= 1
            if _limits.users == 0:
                _limits.limiter.restore_original_limits()
