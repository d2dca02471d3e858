"""Calls to a Dask cluster that end: with results, or with an error within a deadline.

All work is done by pure tasks: a task that runs twice, because a worker was lost, changes nothing.
Dask runs tasks of lost workers again by itself; what it cannot bring back, such as data that was
sent to workers that are gone, is sent again with the next attempt. When a worker that was given
something to do is gone, we do not wait for what may come of it, but begin the round again with
those that are left. As long as tasks finish there is no limit; when none has for ``deadline``
seconds, or the scheduler is gone, ``ClusterLostError``.
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
    """A worker that was given something to do is no longer there."""


# What may pass if everything is tried again.
TRANSIENT = (
    KilledWorker, FutureCancelledError, FuturesCancelledError, CommClosedError, TimeoutError,
    asyncio.TimeoutError, asyncio.CancelledError, OSError, WorkerGoneError,
)  # fmt: skip

# Seconds between looks at tasks that are running.
_LOOK = 0.2
# So often within a deadline we ask whether tasks get on that others wait for.
_LOOKS = 4
# Failures of the same work, without success between, after which it is given up.
_MOST_FAILURES = 20
# So many results are added at a time, and so many reach the client.
_FAN_IN = 8
# Arguments up to this size travel with each task; larger ones are sent to each worker once.
_SMALL = 16_384


class ClusterLostError(RunLostError):
    """The cluster does not answer, or does not get on; nothing more is to be expected of it.

    Attributes
    ----------
    model : LinearSVC or None
        As far as training had come, with its certificate.
    """

    def __init__(self, message: str, model: Any = None) -> None:
        super().__init__(message)
        self.model = model


@dataclass
class Traffic:
    """Bytes that were moved, as far as we sent or asked for them.

    Attributes
    ----------
    rounds : int
        Calls that involved all workers.
    to_workers, from_workers : int
        Bytes, all workers together.
    workers : int
        The largest number of workers.
    """

    rounds: int = 0
    to_workers: int = 0
    from_workers: int = 0
    workers: int = 0

    @property
    def per_round_and_worker(self) -> float:
        """Both ways."""
        calls = self.rounds * self.workers
        return (self.to_workers + self.from_workers) / calls if calls else 0.0


@dataclass
class Group:
    """Blocks that are worked on one after the other, by one thread of one worker."""

    worker: str
    members: list[int] = field(default_factory=list)


@dataclass
class Cluster:
    """A client, and the patience to have with it.

    Attributes
    ----------
    client : Client
        Of the cluster.
    deadline : float
        Seconds without any task that finishes, after which the cluster counts as lost.
    """

    client: Client
    deadline: float = 60.0
    traffic: Traffic = field(default_factory=Traffic)
    # Why nothing more is to be expected of it.
    lost: str | None = None
    # In the names of all tasks: a name that was used before would bring back an old result.
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _numbers: Any = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, *, rounds: int = 0, to_workers: int = 0, from_workers: int = 0) -> None:
        """Add to the traffic; classes are trained in threads of their own."""
        with self._lock:
            self.traffic.rounds += rounds
            self.traffic.to_workers += to_workers
            self.traffic.from_workers += from_workers

    def groups(self, futures: Sequence[Future]) -> list[Group]:
        """Blocks by where they are, as many groups for a worker as it has threads."""
        threads = {
            address: max(1, int(worker.get("nthreads", 1))) for address, worker in self.workers()
        }
        where = self._answer(self.client.who_has, list(futures))
        here: dict[str, list[int]] = defaultdict(list)
        loads = dict.fromkeys(threads, 0)
        for i, future in enumerate(futures):
            holders = [address for address in where.get(future.key, ()) if address in threads]
            # A block without a place goes where there is the least to do.
            address = min(holders or threads, key=lambda a: loads[a] / threads[a])
            here[address].append(i)
            loads[address] += 1
        return [
            Group(address, members[thread :: threads[address]])
            for address, members in sorted(here.items())
            for thread in range(min(threads[address], len(members)))
        ]

    def workers(self) -> list[tuple[str, dict[str, Any]]]:
        """The workers that there are; waits for the first one."""
        until = time.monotonic() + self.deadline
        while True:
            self._require_scheduler()
            # From the scheduler, not from the client's memory, which lags behind.
            info = self._answer(self.client.sync, self.client.scheduler.identity)
            workers = dict(info.get("workers", {}))
            if workers:
                self.traffic.workers = max(self.traffic.workers, len(workers))
                return sorted(workers.items())
            if time.monotonic() > until:
                raise self._lost(f"there was no worker for {self.deadline:g} s")
            time.sleep(_LOOK)

    def send(self, thing: Any, groups: Sequence[Group]) -> Any:
        """What a task is to get as an argument: the thing itself, or where each worker has it."""
        size = size_of(thing)
        workers = sorted({group.worker for group in groups})
        self.count(to_workers=size * len(workers))
        if size <= _SMALL:
            return thing
        return self._scattered(thing, workers, broadcast=True)

    def place(self, thing: Any, group: Group) -> Future:
        """Put something where a group is; if its worker is lost, so is it."""
        self.count(to_workers=size_of(thing))
        return self._scattered(thing, [group.worker], broadcast=False)

    def _scattered(self, thing: Any, workers: Sequence[str], *, broadcast: bool) -> Future:
        try:
            # In a list: Dask looks into tuples, and would cut them up.
            future: Future = self._answer(
                self.client.scatter, [thing], workers=workers, broadcast=broadcast, hash=False
            )[0]
        except (*TRANSIENT, ClusterLostError):
            raise
        except Exception as error:
            # A scheduler that does not know one of the workers any more says so in various ways.
            raise WorkerGoneError(f"nothing can be sent to the workers: {error!r}") from error
        return future

    def task(
        self, name: str, function: Callable[..., Any], *arguments: Any, at: str | None = None
    ) -> Delayed:
        """What ``begin`` begins, preferably on the worker ``at``; the dashboard shows its name."""
        with self._lock:
            number = next(self._numbers)
        place = {} if at is None else {"workers": [at], "allow_other_workers": True}
        with dask.annotate(**place):
            made: Delayed = delayed(function, pure=False, traverse=True)(
                *arguments, dask_key_name=f"certsvm-{name}-{self._token}-{number}"
            )
        return made

    def begin(self, tasks: Sequence[Delayed]) -> list[Future]:
        """Begin tasks, all in one message: Dask lets some time pass between messages."""
        begun: list[Future] = self.client.compute(list(tasks), optimize_graph=False)
        return begun

    def summed(self, tasks: Sequence[Delayed], groups: Sequence[Group]) -> list[Delayed]:
        """As many tasks as the client can do with, of the same sum.

        With many groups their results are added on the workers first, some at a time, so that the
        client gets a few however many there are.
        """
        where = [group.worker for group in groups]
        some = list(tasks)
        while len(some) > _FAN_IN:
            starts = range(0, len(some), _FAN_IN)
            some = [self.task("sum", add_up, some[i : i + _FAN_IN], at=where[i]) for i in starts]
            where = [where[i] for i in starts]
        return some

    def results(self, futures: Sequence[Future], groups: Sequence[Group] = ()) -> list[Any]:
        """Of tasks, when all have finished; ``groups`` are the workers that may not be lost."""
        self.wait(futures, {group.worker for group in groups})
        self._refuse_failed(futures)
        gathered: list[Any] = self._answer(
            self.client.sync, self.client._gather, list(futures), callback_timeout=self.deadline
        )
        self.count(from_workers=sum(map(size_of, gathered)))
        return gathered

    def wait(self, futures: Sequence[Future], workers: Collection[str] = ()) -> None:
        """Until all have finished or one has failed; as long as some do, and no worker is lost."""
        left, unfinished = len(futures), 0
        since = looked = asked = time.monotonic()
        while True:
            self._require_scheduler()
            running = [future for future in futures if future.status == "pending"]
            if any(future.status in ("error", "cancelled", "lost") for future in futures):
                return
            if not running:
                return
            now = time.monotonic()
            if len(running) != left:
                # More of them, if a worker was lost: its tasks begin again.
                left, since = len(running), now
            if now - asked > self.deadline / _LOOKS:
                # They may wait for others, which get on.
                before, unfinished, asked = unfinished, self._unfinished(running), now
                if unfinished != before:
                    since = now
            if now - since > self.deadline:
                raise self._lost(
                    f"no task has finished for {self.deadline:g} s ({len(running)} are waiting)"
                )
            _wait_a_moment(running)
            if workers and time.monotonic() - looked > _LOOK:
                looked = time.monotonic()
                gone = set(workers) - {address for address, _ in self.workers()}
                if gone:
                    raise WorkerGoneError(f"workers are gone: {', '.join(sorted(gone))}")

    def insistent(self, attempt: Callable[[], Any], again: Callable[[], None]) -> Any:
        """Try until it works; after a failure that may pass, call ``again`` first.

        For twice the deadline, from the first of failures that follow each other closely.
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
                time.sleep(_LOOK)

    def revive(self, futures: Sequence[Future]) -> None:
        """Let tasks run again that Dask has given up because their workers died."""
        given_up = [
            future
            for future in futures
            if future.status == "error"
            and isinstance(future.exception(timeout=self.deadline), KilledWorker)
        ]
        if given_up:
            # It does not know a task whose input it has forgotten; the next attempt will tell.
            with contextlib.suppress(KeyError):
                self._answer(self.client.retry, given_up)

    def _refuse_failed(self, futures: Sequence[Future]) -> None:
        """Tell the errors of tasks from those of the cluster: they will not pass."""
        for future in futures:
            if future.status == "error":
                error = future.exception(timeout=self.deadline)
                if isinstance(error, OSError) and not isinstance(error, CommClosedError):
                    raise ValueError(f"a task has failed on a worker: {error}") from error

    def _lost(self, message: str) -> ClusterLostError:
        """An error for all who use the cluster: each waiting for its own would take too long."""
        self.lost = self.lost or message
        return ClusterLostError(message)

    def _require_scheduler(self) -> None:
        if self.lost is not None:
            raise ClusterLostError(self.lost)
        if self.client.status != "running":
            raise self._lost(f"the scheduler does not answer (the client is {self.client.status})")

    def _unfinished(self, futures: Sequence[Future]) -> int:
        """How many tasks must finish before these have."""
        keys = [future.key for future in futures]
        count: int = self._answer(self.client.run_on_scheduler, count_unfinished, keys)
        return count

    def _answer(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make a call that Dask does not end by itself, in a thread that is left if it hangs."""
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
        while not done.wait(_LOOK):
            self._require_scheduler()
            if time.monotonic() > until:
                raise self._lost(f"the scheduler has not answered for {self.deadline:g} s")
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]


def count_unfinished(keys: Sequence[str], dask_scheduler: Any = None) -> int:
    """The tasks without a result among these and those that they depend on, on the scheduler."""
    seen: set[Any] = set()
    waiting = [dask_scheduler.tasks.get(key) for key in keys]
    while waiting:
        task = waiting.pop()
        if task is not None and task.key not in seen and task.state != "memory":
            seen.add(task.key)
            waiting.extend(task.dependencies)
    return len(seen)


def add_up(things: Sequence[Any]) -> Any:
    """Their sum; what came from another process may be read-only, so the first is copied."""
    return functools.reduce(operator.iadd, things[1:], copy.deepcopy(things[0]))


def size_of(thing: Any) -> int:
    """Bytes of the arrays and numbers in it; what is around them is small.

    Examples
    --------
    >>> import numpy as np
    >>> size_of((np.zeros(10), [1.0, 2.0], None))
    96
    """
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if sp.issparse(thing):
        rows = thing.tocsr()
        return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
    if isinstance(thing, int | float):
        return 8
    if isinstance(thing, list | tuple):
        return sum(map(size_of, thing))
    if is_dataclass(thing):
        return sum(size_of(getattr(thing, item.name)) for item in fields(thing))
    return 0


def _wait_a_moment(futures: Sequence[Future]) -> None:
    """Until one of them has finished, but not long."""
    until = time.monotonic() + _LOOK
    pause = 0.0005
    while time.monotonic() < until:
        if any(future.done() for future in futures):
            return
        time.sleep(pause)
        pause = min(2.0 * pause, 0.002)
