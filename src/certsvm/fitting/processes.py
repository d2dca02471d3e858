"""Calls in other processes, on objects whose arrays they map from one file.

Processes are loky's, as in joblib: they need no guard in the user's script. They ignore Ctrl-C,
which is for the process that waits for them. They wait a minute for more work, and then end.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import joblib
from joblib.externals.loky import ProcessPoolExecutor, process_executor

Submit: TypeAlias = Callable[..., Future[Any]]
"""``submit(function, i, *arguments)`` calls ``function(objects[i], *arguments)``."""

_SECONDS_IDLE = 60.0
# Those that wait for work, by the process that started them and their number.
_idle: dict[tuple[int, int], Any] = {}


def started(n_jobs: int) -> bool:
    """Whether so many processes wait for work."""
    return (os.getpid(), n_jobs) in _idle


@contextmanager
def submitter(objects: Sequence[Any], n_jobs: int) -> Iterator[Submit]:
    """A function that submits calls to ``n_jobs`` processes; one means this process, at once.

    Calls that have not ended when the context is left are given up.

    Parameters
    ----------
    objects : sequence
        What functions are called on.
    n_jobs : int
        Number of processes.
    """
    calls: list[Future[Any]] = []

    def here(function: Callable[..., Any], i: int, *arguments: Any) -> Future[Any]:
        call: Future[Any] = Future()
        call.set_result(function(objects[i], *arguments))
        return call

    def elsewhere(function: Callable[..., Any], i: int, *arguments: Any) -> Future[Any]:
        calls.append(pool.submit(_call, path, function, i, *arguments))
        return calls[-1]

    if n_jobs == 1:
        yield here
        return
    key, ended = (os.getpid(), n_jobs), False
    pool = _idle.pop(key, None) or ProcessPoolExecutor(
        n_jobs, timeout=_SECONDS_IDLE, initializer=_prepare
    )
    with TemporaryDirectory(prefix="certsvm-", ignore_cleanup_errors=True) as folder:
        path = str(Path(folder, "objects"))
        joblib.dump(list(objects), path)
        try:
            yield elsewhere
            ended = all(call.done() for call in calls)
        finally:
            if ended:
                _idle[key] = pool
            else:
                pool.shutdown(wait=True, kill_workers=True)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Mapped arrays count as memory of the process, and loky would end it as if it leaked.
    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf


def _call(path: str, function: Callable[..., Any], i: int, *arguments: Any) -> Any:
    return function(_objects(path)[i], *arguments)


@lru_cache(maxsize=1)
def _objects(path: str) -> Any:
    return joblib.load(path, mmap_mode="r")
