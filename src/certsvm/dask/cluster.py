"""Calls to a Dask cluster that end, with results or with an error within a deadline.

All tasks are pure: a task that runs twice because a worker was lost changes nothing. Dask repeats
the tasks of lost workers by itself. What it cannot restore, such as data sent to workers that are
gone, is sent again with the next attempt. When a worker is lost during a round, the round begins
again with the workers that are left. There is no limit as long as tasks finish. If none finishes
for ``deadline`` seconds, or the scheduler is gone, ``ClusterLostError`` is raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import itertools
import operator
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm.core import CommClosedError

from certsvm.solvers.base import RunLostError


class WorkerGoneError(Exception):
    """A worker was lost while it had something to do."""


# Errors that may not occur again in the next attempt.
TRANSIENT = (
    KilledWorker, FutureCancelledError, FuturesCancelledError, CommClosedError, TimeoutError,
    asyncio.TimeoutError, asyncio.CancelledError, OSError, WorkerGoneError,
)  # fmt: skip

# Seconds between two looks at the state of tasks and workers.
_POLL = 0.2
# How many times per deadline the scheduler is asked for the progress of dependencies.
_QUERIES = 4
# Consecutive failures of the same work after which it is given up.
_MOST_FAILURES = 20
# Results that are added at a time, and the most that reach the client.
_FAN_IN = 8
# Arguments up to this many bytes travel with each task; larger ones go to each worker once.
_SMALL = 16_384


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


@dataclass
class Traffic:
    """Data moved between the client and the workers.

    Attributes
    ----------
    rounds : int
        Calls that involved all workers.
    to_workers, from_workers : int
        Bytes sent and received, over all workers.
    workers : int
        Largest number of workers.
    """

    rounds: int = 0
    to_workers: int = 0
    from_workers: int = 0
    workers: int = 0

    @property
    def per_round_and_worker(self) -> float:
        """Bytes sent and received, for each round and worker."""
        calls = self.rounds * self.workers
        return (self.to_workers + self.from_workers) / calls if calls else 0.0


@dataclass
class Group:
    """Blocks that one thread of one worker handles one after the other."""

    worker: str
    members: list[int] = field(default_factory=list)


@dataclass
class Cluster:
    """A cluster, which counts as lost after ``deadline`` seconds without a finished task.

    ``lost`` then says why.
    """

    client: Client
    deadline: float = 60.0
    traffic: Traffic = field(default_factory=Traffic)
    lost: str | None = None
    # Part of all task names: a name that was used before would return an old result.
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _numbers: Any = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, *, rounds: int = 0, to_workers: int = 0, from_workers: int = 0) -> None:
        """Add to the traffic; locked, as classes are trained in threads."""
        with self._lock:
            self.traffic.rounds += rounds
            self.traffic.to_workers += to_workers
            self.traffic.from_workers += from_workers

    def groups(self, futures: Sequence[Future]) -> list[Group]:
        """The blocks in groups by worker, one group for each of its threads."""
        threads = {
            address: max(1, int(worker.get("nthreads", 1))) for address, worker in self.workers()
        }
        where = self._answer(self.client.who_has, list(futures))
        here: dict[str, list[int]] = defaultdict(list)
        loads = dict.fromkeys(threads, 0)
        for i, future in enumerate(futures):
            holders = [address for address in where.get(future.key, ()) if address in threads]
            # A block that is nowhere goes to the worker with the least load.
            address = min(holders or threads, key=lambda a: loads[a] / threads[a])
            here[address].append(i)
            loads[address] += 1
        return [
            Group(address, members[thread :: threads[address]])
            for address, members in sorted(here.items())
            for thread in range(min(threads[address], len(members)))
        ]

    def workers(self) -> list[tuple[str, dict[str, Any]]]:
        """Addresses and descriptions of the workers; waits for the first one."""
        until = time.monotonic() + self.deadline
        while True:
            self._require_scheduler()
            # The client's own list lags behind the scheduler's.
            info = self._answer(self.client.sync, self.client.scheduler.identity)
            workers = dict(info.get("workers", {}))
            if workers:
                self.traffic.workers = max(self.traffic.workers, len(workers))
                return sorted(workers.items())
            if time.monotonic() > until:
                raise self._lost(f"there was no worker for {self.deadline:g} s")
            time.sleep(_POLL)

    def send(self, value: Any, groups: Sequence[Group]) -> Any:
        """Send a value to the workers of all groups.

        Returns the argument for tasks: the value itself if it is small, or its future.
        """
        size = size_of(value)
        workers = sorted({group.worker for group in groups})
        self.count(to_workers=size * len(workers))
        if size <= _SMALL:
            return value
        return self._scatter(value, workers)

    def place(self, value: Any, group: Group) -> Future:
        """Put a value on the worker of a group, with which it may be lost."""
        self.count(to_workers=size_of(value))
        return self._scatter(value, [group.worker])

    def _scatter(self, value: Any, workers: Sequence[str]) -> Future:
        try:
            # In a list, as Dask would scatter the items of a tuple.
            future: Future = self._answer(
                self.client.scatter, [value], workers=workers, broadcast=True, hash=False
            )[0]
        except (*TRANSIENT, ClusterLostError):
            raise
        except Exception as error:
            # The scheduler reports a worker that it no longer knows by various errors.
            raise WorkerGoneError(f"nothing can be sent to the workers: {error!r}") from error
        return future

    def task(
        self, name: str, function: Callable[..., Any], *arguments: Any, at: str | None = None
    ) -> Delayed:
        """A task for ``begin``, preferably on the worker ``at``; the dashboard shows its name."""
        with self._lock:
            number = next(self._numbers)
        place = {} if at is None else {"workers": [at], "allow_other_workers": True}
        with dask.annotate(**place):
            made: Delayed = delayed(function, pure=False, traverse=True)(
                *arguments, dask_key_name=f"certsvm-{name}-{self._token}-{number}"
            )
        return made

    def begin(self, tasks: Sequence[Delayed]) -> list[Future]:
        """Begin tasks, all in one message, as Dask waits between messages."""
        futures: list[Future] = self.client.compute(list(tasks), optimize_graph=False)
        return futures

    def summed(self, tasks: Sequence[Delayed], groups: Sequence[Group]) -> list[Delayed]:
        """At most ``_FAN_IN`` tasks with the same sum: the workers add the results in a tree."""
        where, sums = [group.worker for group in groups], list(tasks)
        while len(sums) > _FAN_IN:
            starts = range(0, len(sums), _FAN_IN)
            sums = [self.task("sum", add_up, sums[i : i + _FAN_IN], at=where[i]) for i in starts]
            where = [where[i] for i in starts]
        return sums

    def results(self, futures: Sequence[Future], groups: Sequence[Group] = ()) -> list[Any]:
        """The results of tasks; fails if a worker of one of the groups is lost meanwhile."""
        self.wait(futures, {group.worker for group in groups})
        for future in futures:
            error = future.exception(timeout=self.deadline) if future.status == "error" else None
            # Unlike an OSError of the cluster, that of a task is permanent.
            if isinstance(error, OSError) and not isinstance(error, CommClosedError):
                raise ValueError(f"a task has failed on a worker: {error}") from error
        gathered: list[Any] = self._answer(
            self.client.sync, self.client._gather, list(futures), callback_timeout=self.deadline
        )
        self.count(from_workers=sum(map(size_of, gathered)))
        return gathered

    def wait(self, futures: Sequence[Future], workers: Collection[str] = ()) -> None:
        """Wait until all tasks have finished or one has failed.

        Raises ``ClusterLostError`` if there is no progress for the deadline, and
        ``WorkerGoneError`` if one of the workers is lost.
        """
        n_running, unfinished = len(futures), 0
        progressed = looked = asked = time.monotonic()
        while True:
            self._require_scheduler()
            running = [future for future in futures if future.status == "pending"]
            failed = any(future.status in ("error", "cancelled", "lost") for future in futures)
            if failed or not running:
                return
            now = time.monotonic()
            if len(running) != n_running:
                # The number grows if a worker was lost and its tasks begin again.
                n_running, progressed = len(running), now
            if now - asked > self.deadline / _QUERIES:
                # Tasks that these depend on may have finished.
                keys = [future.key for future in running]
                before, asked = unfinished, now
                unfinished = self._answer(self.client.run_on_scheduler, count_unfinished, keys)
                if unfinished != before:
                    progressed = now
            if now - progressed > self.deadline:
                raise self._lost(
                    f"no task has finished for {self.deadline:g} s ({len(running)} are waiting)"
                )
            _wait_for_any(running)
            if workers and time.monotonic() - looked > _POLL:
                looked = time.monotonic()
                gone = set(workers) - {address for address, _ in self.workers()}
                if gone:
                    raise WorkerGoneError(f"workers are gone: {', '.join(sorted(gone))}")

    def insistent(self, attempt: Callable[[], Any], again: Callable[[], None]) -> Any:
        """Repeat an attempt until it succeeds, with a call of ``again`` before each repetition.

        Gives up after many failures, or when failures have followed each other closely for twice
        the deadline.
        """
        failing_since, failures = None, 0
        while True:
            began = time.monotonic()
            try:
                if failing_since is not None:
                    self.workers()
                    again()
                return attempt()
            except TRANSIENT as error:
                self._require_scheduler()
                now = time.monotonic()
                if failing_since is None or now - began > self.deadline:
                    failing_since = now
                elif now - failing_since > 2.0 * self.deadline:
                    raise self._lost(
                        f"workers were lost again and again for {2.0 * self.deadline:g} s: {error}"
                    ) from error
                failures += 1
                if failures > _MOST_FAILURES:
                    raise self._lost(
                        f"workers were lost {failures} times at the same work: {error}. Have they "
                        "enough memory?"
                    ) from error
                time.sleep(_POLL)

    def revive(self, futures: Sequence[Future]) -> None:
        """Retry tasks that Dask has given up because their workers died."""
        given_up = [
            future
            for future in futures
            if future.status == "error"
            and isinstance(future.exception(timeout=self.deadline), KilledWorker)
        ]
        if given_up:
            # Dask does not know a task whose input it has forgotten; the next attempt will show.
            with contextlib.suppress(KeyError):
                self._answer(self.client.retry, given_up)

    def _lost(self, message: str) -> ClusterLostError:
        """Mark the cluster as lost, so that no other thread waits for its deadline too."""
        self.lost = self.lost or message
        return ClusterLostError(message)

    def _require_scheduler(self) -> None:
        if self.lost is not None:
            raise ClusterLostError(self.lost)
        if self.client.status != "running":
            raise self._lost(f"the scheduler does not answer (the client is {self.client.status})")

    def _answer(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make a call that may hang, in a thread that is then abandoned."""
        done = threading.Event()
        outcome: list[Any] = [None, None]

        def work() -> None:
            try:
                outcome[0] = call(*arguments, **options)
            except BaseException as error:
                outcome[1] = error
            finally:
                done.set()

        threading.Thread(target=work, daemon=True, name="certsvm-dask").start()
        until = time.monotonic() + self.deadline
        while not done.wait(_POLL):
            self._require_scheduler()
            if time.monotonic() > until:
                raise self._lost(f"the scheduler has not answered for {self.deadline:g} s")
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]


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


def size_of(value: Any) -> int:
    """Bytes of the arrays and numbers in a value.

    Examples
    --------
    >>> import numpy as np
    >>> size_of((np.zeros(10), [1.0, 2.0], None))
    96
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    if sp.issparse(value):
        rows = value.tocsr()
        return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
    if isinstance(value, int | float):
        return 8
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    if is_dataclass(value) and not isinstance(value, type):
        return sum(size_of(getattr(value, item.name)) for item in fields(value))
    return 0


def _wait_for_any(futures: Sequence[Future]) -> None:
    """Wait until one of them has finished, but not longer than ``_POLL``."""
    until = time.monotonic() + _POLL
    pause = 0.0005
    while time.monotonic() < until:
        if any(future.done() for future in futures):
            return
        time.sleep(pause)
        pause = min(2.0 * pause, 0.002)
