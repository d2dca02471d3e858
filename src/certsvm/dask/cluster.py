"""Tasks on a Dask cluster, with results or an error within a deadline.

All tasks are pure, and what they need is in their graph: when a worker is lost, Dask runs again
what it had. There is no limit as long as tasks finish. If none finishes for ``deadline`` seconds,
or the scheduler is gone, ``ClusterLostError`` is raised.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import operator
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import dask
import distributed
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker

from certsvm.solvers.base import RunLostError

# Results that are added at a time, and the most that reach the client.
_FAN_IN = 8
# Arguments up to this many bytes travel with each task; larger ones are a task of their own, whose
# result goes to each worker once.
_SMALL = 16_384
# How many times per deadline the scheduler is asked for progress.
_QUERIES = 8


class ClusterLostError(RunLostError):
    """The cluster does not answer, or makes no progress.

    Attributes
    ----------
    model : LinearSVC or None
        The estimator as far as it was trained, with its certificate.
    """

    def __init__(self, message: str, model: Any = None) -> None:
        super().__init__(message)
        self.model = model


@dataclass(frozen=True)
class Group:
    """Blocks that one thread of a worker handles one after the other, by their positions."""

    worker: str
    members: list[int]


@dataclass
class Cluster:
    """A cluster, which counts as lost after ``deadline`` seconds without a finished task.

    ``lost`` then says why, so that no other thread waits for its deadline too.
    """

    client: Client
    deadline: float = 60.0
    lost: str | None = None
    # Part of all task names: a name that was used before would return an old result.
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _numbers: Any = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def task(
        self, name: str, function: Callable[..., Any], *arguments: Any, at: str | None = None
    ) -> Delayed:
        """A task, preferably on the worker ``at``; the dashboard shows its name."""
        place = {} if not at else {"workers": [at], "allow_other_workers": True}
        with dask.annotate(**place):
            made: Delayed = delayed(function, pure=False, traverse=True)(
                *arguments, dask_key_name=f"certsvm-{name}-{self._token}-{next(self._numbers)}"
            )
        return made

    def argument(self, value: Any) -> Any:
        """A value as an argument of several tasks."""
        large = isinstance(value, np.ndarray) and value.nbytes > _SMALL
        return self.task("argument", _itself, value) if large else value

    def begin(self, tasks: Sequence[Delayed]) -> list[Future]:
        """Begin tasks, all in one message, as Dask waits between messages."""
        # Dask warns of large vectors in a graph; here they are what makes them recoverable.
        quiet = {"distributed.admin.large-graph-warning-threshold": "1TiB"}
        with self._lock, dask.config.set(quiet):
            futures: list[Future] = self._call(
                self.client.compute, list(tasks), optimize_graph=False
            )
        return futures

    def results(self, tasks: Sequence[Delayed]) -> list[Any]:
        """The results of tasks."""
        return self.gathered(self.begin(tasks))

    def gathered(self, futures: Sequence[Future]) -> list[Any]:
        """The results of tasks that have begun."""
        while True:
            self.wait(futures)
            with contextlib.suppress(TimeoutError):
                gathered: list[Any] = self._call(
                    self.client.sync, self.client._gather, futures, callback_timeout=self.deadline
                )
                return gathered
            # A worker may have been lost with a result, which another one computes again.
            if not self._unfinished(futures):
                raise self._lost(f"a worker has not sent its results for {self.deadline:g} s")

    def summed(self, tasks: Sequence[Delayed], places: Sequence[str]) -> Sequence[Delayed]:
        """A few tasks with the same sum: the workers at these places add the results in a tree."""
        while len(tasks) > _FAN_IN:
            starts = range(0, len(tasks), _FAN_IN)
            tasks = [self.task("sum", add_up, tasks[i : i + _FAN_IN], at=places[i]) for i in starts]
            places = places[::_FAN_IN]
        return tasks

    def total(self, tasks: Sequence[Delayed], places: Sequence[str]) -> Any:
        """The sum of the results of tasks."""
        return add_up(self.results(self.summed(tasks, places)))

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until all tasks have finished; raises the error of one that has failed."""
        unfinished, progressed = -1, time.monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                self._call(distributed.wait, futures, timeout=self.deadline / _QUERIES)
            self._raise_failed(futures)
            if all(future.status == "finished" for future in futures):
                return
            before, unfinished = unfinished, self._unfinished(futures)
            if unfinished != before:
                # The number grows if a worker was lost, and its tasks begin again.
                progressed = time.monotonic()
            elif time.monotonic() - progressed > self.deadline:
                raise self._lost(
                    f"no task has finished for {self.deadline:g} s ({unfinished} are waiting)"
                )

    def groups(self, futures: Sequence[Future]) -> list[Group]:
        """Finished blocks in groups by worker, one group for each of its threads."""
        threads = self._ask(self.client.scheduler.ncores)
        where = self._ask(self.client.scheduler.who_has, keys=[future.key for future in futures])
        here: dict[str, list[int]] = defaultdict(list)
        for i, future in enumerate(futures):
            # A worker that was lost just now has none.
            here[next(iter(where.get(future.key, ())), "")].append(i)
        return [
            Group(address, members[thread :: threads.get(address, 1)])
            for address, members in sorted(here.items())
            for thread in range(min(threads.get(address, 1), len(members)))
        ]

    def _raise_failed(self, futures: Sequence[Future]) -> None:
        if any(future.status in ("cancelled", "lost") for future in futures):
            raise self._lost("a result is lost, and so is what it was computed from")
        for future in (future for future in futures if future.status == "error"):
            error = self._call(future.exception, timeout=self.deadline)
            if isinstance(error, KilledWorker):
                raise self._lost(
                    f"workers were lost again and again at the same work: {error}. Have they "
                    "enough memory?"
                )
            if isinstance(error, OSError):
                raise ValueError(f"a task has failed on a worker: {error}") from error
            raise error

    def _unfinished(self, futures: Sequence[Future]) -> int:
        keys = [future.key for future in futures]
        count: int = self._ask(self.client._run_on_scheduler, count_unfinished, keys)
        return count

    def _ask(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What the scheduler answers."""
        with contextlib.suppress(TimeoutError):
            return self._call(
                self.client.sync, method, *arguments, callback_timeout=self.deadline, **options
            )
        raise self._lost(f"the scheduler has not answered for {self.deadline:g} s")

    def _lost(self, message: str) -> ClusterLostError:
        self.lost = self.lost or message
        return ClusterLostError(self.lost)

    def _call(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What a call returns; any error of the connection but a TimeoutError loses the cluster."""
        if self.lost is None and self.client.status != "running":
            self._lost(f"the scheduler does not answer (the client is {self.client.status})")
        if self.lost is not None:
            raise ClusterLostError(self.lost)
        try:
            return call(*arguments, **options)
        except TimeoutError:
            raise
        except (OSError, CancelledError) as error:
            raise self._lost(f"the scheduler does not answer: {error!r}") from error


def count_unfinished(keys: Sequence[str], dask_scheduler: Any = None) -> int:
    """Count the tasks without a result among these and their dependencies, on the scheduler."""
    seen: set[Any] = set()
    waiting = [dask_scheduler.tasks.get(key) for key in keys]
    while waiting:
        task = waiting.pop()
        if task is not None and task.key not in seen and task.state != "memory":
            seen.add(task.key)
            waiting.extend(task.dependencies)
    return len(seen)


def add_up(terms: Sequence[Any]) -> Any:
    """The sum; the first term is copied, as it may be read-only or in use."""
    return functools.reduce(operator.iadd, terms[1:], copy.deepcopy(terms[0]))


def _itself(value: Any) -> Any:
    return value
