"""Tasks on a Dask cluster, with results or an error within a deadline.

All tasks are pure, and what they need is in their graph: when a worker is lost, Dask runs again
what it had. There is no limit as long as tasks finish. If none finishes for ``deadline`` seconds,
or the scheduler is gone, ``ClusterLostError`` is raised.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import operator
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dask
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
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def task(
        self, name: str, function: Callable[..., Any], *arguments: Any, at: str | None = None
    ) -> Delayed:
        """A task, preferably on the worker ``at``; the dashboard shows its name."""
        place = {} if not at else {"workers": [at], "allow_other_workers": True}
        with dask.annotate(**place):
            made: Delayed = delayed(function, pure=False, traverse=True)(
                *arguments, dask_key_name=f"certsvm-{name}-{uuid.uuid4().hex}"
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
        with self._connected(), self._lock, dask.config.set(quiet):
            futures: list[Future] = self.client.compute(list(tasks), optimize_graph=False)
        return futures

    def results(self, tasks: Sequence[Delayed]) -> list[Any]:
        """The results of tasks."""
        return self.gathered(self.begin(tasks))

    def gathered(self, futures: Sequence[Future]) -> list[Any]:
        """The results of tasks that have begun; raises the error of one that has failed."""
        states, progressed = "", time.monotonic()
        with self._connected():
            gathering = asyncio.run_coroutine_threadsafe(
                self.client.gather(futures, asynchronous=True), self.client.loop.asyncio_loop
            )
            while wait([gathering], timeout=self.deadline / _QUERIES).not_done:
                before, states = states, self._ask(self.client._run_on_scheduler, task_states)
                if states != before:
                    progressed = time.monotonic()
                elif time.monotonic() - progressed > self.deadline:
                    gathering.cancel()
                    raise self._lost(f"no task has finished for {self.deadline:g} s ({states})")
            error = gathering.exception()
            if isinstance(error, KilledWorker):
                raise self._lost(
                    f"workers were lost again and again at the same work: {error}. Have they "
                    "enough memory?"
                )
            if isinstance(error, OSError) and any(f.status == "error" for f in futures):
                raise ValueError(f"a task has failed on a worker: {error}") from error
            results: list[Any] = gathering.result()
        return results

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

    def _ask(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What the scheduler answers."""
        with self._connected():
            return self.client.sync(method, *arguments, callback_timeout=self.deadline, **options)

    def _lost(self, message: str) -> ClusterLostError:
        self.lost = self.lost or message
        return ClusterLostError(self.lost)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Any error of the connection loses the cluster."""
        if self.lost is not None:
            raise self._lost(self.lost)
        if self.client.status != "running":
            raise self._lost(f"the scheduler does not answer (the client is {self.client.status})")
        try:
            yield
        except (OSError, CancelledError) as error:
            raise self._lost(f"the scheduler does not answer: {error!r}") from error


def task_states(dask_scheduler: Any = None) -> str:
    """How many tasks are in each state, on the scheduler; any that ends changes that."""
    states = Counter(task.state for task in dask_scheduler.tasks.values())
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items()))


def add_up(terms: Sequence[Any]) -> Any:
    """The sum; the first term is copied, as it may be read-only or in use."""
    return functools.reduce(operator.iadd, terms[1:], copy.deepcopy(terms[0]))


def _itself(value: Any) -> Any:
    return value
