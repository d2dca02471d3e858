"""Threads, time and memory.

Kernels run without the GIL, so plain threads suffice. J has the same bits for any number of
threads. Sums of vectors and matrices have one part per thread, so their bits depend on the number
of threads, but not on their timing.

A weight vector has a number for each column, whether the column occurs in one row or in all. So a
single large index in sparse data can ask for more memory than there is. Linux grants such requests
and ends the process when it writes to them. So whether vectors fit is asked before the first one is
allocated.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from threadpoolctl import ThreadpoolController


class PassCutError(Exception):
    """A pass was cut short: it proves nothing, and counts as not made."""


_limits: ContextVar[tuple[float, threading.Event | None]] = ContextVar(
    "certsvm_pass_limits", default=(math.inf, None)
)


@contextmanager
def pass_limits(seconds: float = math.inf, stop: threading.Event | None = None) -> Iterator[None]:
    """End what this thread does inside after so many seconds, or when ``stop`` is set.

    Examples
    --------
    >>> with pass_limits(0.0):
    ...     require_time()
    Traceback (most recent call last):
    ...
    certsvm.resources.PassCutError: out of time
    """
    before, limits = _limits.get(), (time.perf_counter() + seconds, stop)
    # An interrupt between setting the limits and the try would leave them in force for good.
    try:
        _limits.set(limits)
        yield
    finally:
        _limits.set(before)


def require_time() -> None:
    """Raise ``PassCutError`` beyond the limits; loops over blocks of rows call it."""
    until, stop = _limits.get()
    if time.perf_counter() >= until:
        raise PassCutError("out of time")
    if stop is not None and stop.is_set():
        raise PassCutError("stopped")


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
        # Of several errors the first is raised.
        return list(self._executor.map(task, edges[:-1], edges[1:]))


ALONE = Team()
"""The caller's thread."""


def _set_limit(library: Any, number: int) -> None:
    # Recent versions of threadpoolctl let one thread at a time change a limit of the process and
    # ignore all others, until that thread gives it up. Here the thread that lowers the limit need
    # not be the last to leave, so each takes over and gives up again.
    give_up = getattr(library, "clear_controlling_thread", lambda **_: None)
    give_up(force=True)
    library.set_num_threads(number)
    give_up(force=True)


@cache
def _is_per_thread(library: Any) -> bool:
    """Whether each thread has a limit of its own, asked when that of this thread is one."""
    with ThreadPoolExecutor(1) as elsewhere:
        return bool(elsewhere.submit(library.get_num_threads).result() != 1)


@cache
def _blas_libraries() -> list[Any]:
    # Finding them takes milliseconds, so it is done once.
    return ThreadpoolController().select(user_api="blas").lib_controllers  # type: ignore[no-any-return]


# The number of callers that rely on lowered limits, and the limits of the process before the first.
_blas_lock, _blas_users, _blas_before = threading.Lock(), 0, dict[Any, int]()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread for calls from this thread, since work is shared above it.

    Some libraries have a limit per thread, others one for the process. The latter is restored when
    the last caller that relies on it leaves. So this is for the calls themselves, not for a fit:
    entering and leaving takes microseconds.
    """
    global _blas_users
    of_thread: dict[Any, int] = {}
    with _blas_lock:
        _blas_users += 1
        for library in _blas_libraries():
            if (number := library.get_num_threads() or 1) > 1:
                _set_limit(library, 1)
                (of_thread if _is_per_thread(library) else _blas_before)[library] = number
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                of_thread |= _blas_before
                _blas_before.clear()
            for library, number in of_thread.items():
                _set_limit(library, number)


# Smaller amounts are not compared with the memory: reading its state takes longer than the check is
# worth.
_ALWAYS_GRANTED = 1 << 26
_CGROUPS, _OWN_CGROUPS = "/sys/fs/cgroup", "/proc/self/cgroup"


class NotEnoughMemoryError(MemoryError):
    """Vectors of this length do not fit in memory; the message says how much they would take."""


def require_memory_for(n_columns: int, n_vectors: int) -> None:
    """Raise a ``NotEnoughMemoryError`` if ``n_vectors`` vectors of float64 do not fit in memory.

    Parameters
    ----------
    n_columns : int
        Length of the vectors.
    n_vectors : int
        How many are needed at the same time, at least.

    Examples
    --------
    >>> require_memory_for(1000, 12)
    """
    needed = 8 * n_columns * n_vectors
    if needed > _ALWAYS_GRANTED and needed > (available := available_memory()):
        raise NotEnoughMemoryError(
            f"X has {n_columns:,} columns. {n_vectors} vectors with a number for each take "
            f"{needed / 1e9:,.1f} GB of memory, and {available / 1e9:,.1f} GB are available. A "
            "single large index makes so many columns: renumber those that occur, or hash them."
        )


def available_memory() -> int:
    """Bytes that this process can still allocate.

    The least of what the machine has left, with swap, and of the limits on this process: of its
    control groups and of its address space.
    """
    of_machine: int = psutil.virtual_memory().available + psutil.swap_memory().free
    return max(0, min([of_machine, *_of_cgroups(), *limits_of_process().values()]))


def physical_memory() -> int:
    """Bytes of memory that the machine has."""
    return int(psutil.virtual_memory().total)


def limits_of_process() -> dict[str, int]:
    """Bytes left of the limits on this process alone, by the option of ``ulimit`` that sets them.

    "-v" limits the address space, "-d" the part of it that can be written to.
    """
    process = psutil.Process()
    # Only Linux tells how much of them is used.
    if not hasattr(process, "rlimit"):
        return {}
    used = process.memory_info()
    left = {}
    for option, kind, size in (
        ("-v", psutil.RLIMIT_AS, used.vms), ("-d", psutil.RLIMIT_DATA, used.data)
    ):  # fmt: skip
        if (limit := process.rlimit(kind)[0]) != psutil.RLIM_INFINITY:
            left[option] = limit - size
    return left


def _of_cgroups() -> list[int]:
    """What is left of the limits of the control group of this process, and of those above."""
    left: list[int] = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(_OWN_CGROUPS).read_text().splitlines()
        innermost = next(line.removeprefix("0::/") for line in lines if line.startswith("0::/"))
        # In a container, only the innermost group may be visible, as the root.
        for folder in (Path(innermost), *Path(innermost).parents):
            with contextlib.suppress(OSError, ValueError):
                group = Path(_CGROUPS) / folder
                most = int((group / "memory.max").read_text())
                used = int((group / "memory.current").read_text())
                statistics = (group / "memory.stat").read_text().split()
                # Files that are cached count as used, and are dropped when memory is short.
                cached = int(statistics[statistics.index("inactive_file") + 1])
                left.append(max(1, most - used + cached))
    return left
