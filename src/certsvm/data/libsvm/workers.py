"""Threads that work on the pieces of a text, or the caller's own thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


class Workers:
    """Does a task for every piece.

    Parameters
    ----------
    executor : ThreadPoolExecutor or None
        None means the caller's own thread.
    """

    def __init__(self, executor: ThreadPoolExecutor | None) -> None:
        self._executor = executor

    def map(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Results of a task in order; of several errors the first in this order is raised."""
        if self._executor is None or len(arguments[0]) <= 1:
            return list(map(task, *arguments))
        return list(self._executor.map(task, *arguments))


@contextmanager
def workers_for(n_jobs: int) -> Iterator[Workers]:
    """Workers that are there until the block ends."""
    if n_jobs == 1:
        yield Workers(None)
        return
    with ThreadPoolExecutor(n_jobs, thread_name_prefix="certsvm-read") as executor:
        yield Workers(executor)
