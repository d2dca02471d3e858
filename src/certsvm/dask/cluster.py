"""Problems whose rows are on a Dask cluster, and the tasks that compute with them.

All tasks are pure, and what they need is in their graph: when a worker is lost, Dask runs again
what it had. There is no limit as long as tasks finish. If none finishes for ``deadline`` seconds,
or the scheduler is gone, ``ClusterLostError`` is raised.

A recheck computes intervals that contain J of the answer and L of the dual point from the rows as
they are now, by the arithmetic of verification, which shares nothing with training but the rows.
Each block has sums of its own, and they add up (docs/verification.md). An interval that is too wide
to tell, as float64 can be too coarse, refutes nothing. A certificate that contradicts an interval
is refuted: for example, a task that is repeated on another kind of processor rounds differently,
and alpha is no longer what the sums were taken of. The intervals are proofs themselves, so their
ends then replace it.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import operator
import threading
import time
import uuid
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from distributed import Client, Future, KilledWorker

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import Response
from certsvm.kernels.losses import loss_named
from certsvm.problem import base
from certsvm.problem.base import Objective, SummableProblem
from certsvm.problem.rows import Part, Rows, Vector, as_compiled_for
from certsvm.resources import ALONE, Team
from certsvm.solvers.base import RunLostError
from certsvm.solvers.smoothed_newton import alpha_of_part
from certsvm.training.settings import Result
from certsvm.verification.interval_arithmetic import ProblemSums
from certsvm.verification.verify import REFUTED, Verification, row_blocks

# Results that are added at a time, and the most that reach the client.
_FAN_IN = 8
# Arguments up to this many bytes travel with each task; larger ones are a task of their own, whose
# result goes to each worker once.
_SMALL = 16_384
# How many times per deadline the scheduler is asked for progress.
_QUERIES = 8
# Bytes of sampled rows that the client must be able to hold.
_LARGEST_SAMPLE = 2.0**27
# Of a recomputed bound, relative to it: other blocks of the same rows give other intervals.
_SLACK = 1e-12


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


class ClusterProblem(SummableProblem):
    """The i-th problem of a ``ClusterSource``: one class against all others, on a cluster."""

    where = "rows on a cluster"
    for_many_columns = "Use 'cocoa' (with penalize_intercept=True)"

    def __init__(self, source: Any, i: int, objective: Objective) -> None:
        summaries, factors = source.summaries, source.factors_in(i)
        R, rho = max(summary.R for summary in summaries), source.intercept_scaling
        surveys = source.surveys
        super().__init__(
            base.sizes_of_classes(surveys, factors, source.n_columns, rho, R=R), objective
        )
        signed = base.one_against_rest(factors, source.positive[i])
        if self.free_intercept:
            base.require_both_classes(signed * source.totals)
        self.cluster: Cluster = source.cluster
        self.groups: list[Group] = source.groups
        self.places, self.number = [group.worker for group in self.groups], i
        self.workers = sorted(set(self.places))
        self.nbytes = 12 * sum(summary.n_stored for summary in summaries)
        class_weights = dict(zip(source.classes.tolist(), signed.tolist(), strict=True))
        self.futures = source.parts(class_weights)

    @cached_property
    def weights(self) -> Vector:
        """The row weights s_k, brought to the client."""
        weights: Vector = np.concatenate(self.of_each(_weights_of))
        return weights

    def some_rows(self, n_rows: int) -> Part:
        """About ``n_rows`` rows, from all blocks: one block may be unlike the others."""
        share = min(n_rows / self.n_rows, _LARGEST_SAMPLE / max(self.nbytes, 1))
        pieces = self.of_each(_some_rows, share)
        matrices, signed_weights = zip(*pieces, strict=True)
        return joined(matrices, signed_weights, self.intercept_scaling)

    def task(
        self, name: str, group: Group, function: Callable[..., Any], *arguments: Any
    ) -> Delayed:
        """A task that calls ``function(parts, *arguments)`` with the parts of a group."""
        parts = [self.futures[i] for i in group.members]
        return self.cluster.task(name, _on_parts, function, parts, *arguments, at=group.worker)

    def total(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> Any:
        """The sum of ``task(part, ALONE, *arguments)`` over all parts, added up on the workers."""
        return add_up(self.cluster.results(self.sums_of(task, *arguments)))

    def sums_of(self, task: Callable[..., Any], *arguments: Any) -> Sequence[Delayed]:
        """A few tasks whose results add up to ``total``."""
        name = task.__name__.strip("_").replace("_", "-")
        return self.cluster.summed(self._tasks(name, _sum, task, *arguments), self.places)

    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """``task(part, ALONE, *arguments)`` of each part, in their order."""
        return self.in_order(self.cluster.results(self._tasks("gather", _each, task, *arguments)))

    def in_order(self, results: Sequence[Sequence[Any]]) -> list[Any]:
        """What each group has of each of its parts, in the order of all parts."""
        ordered: list[Any] = [None] * len(self.futures)
        for group, of_group in zip(self.groups, results, strict=True):
            for i, result in zip(group.members, of_group, strict=True):
                ordered[i] = result
        return ordered

    def _tasks(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Delayed]:
        sent = [self.cluster.argument(argument) for argument in arguments]
        return [self.task(name, group, function, *sent) for group in self.groups]


def _on_parts(function: Callable[..., Any], parts: Sequence[Part], *arguments: Any) -> Any:
    # What a part computes and keeps goes with its copy, at the end of the task.
    return function(list(map(copy.copy, parts)), *map(as_compiled_for, arguments))


def _sum(parts: Sequence[Part], task: Callable[..., Any], *arguments: Any) -> Any:
    return functools.reduce(operator.iadd, (task(part, ALONE, *arguments) for part in parts))


def _each(parts: Sequence[Part], task: Callable[..., Any], *arguments: Any) -> list[Any]:
    return [task(part, ALONE, *arguments) for part in parts]


def _weights_of(part: Part, team: Team) -> Vector:
    return part.weights


def _some_rows(part: Part, team: Team, share: float) -> tuple[Any, Vector]:
    """Equally spaced rows of a part."""
    n_rows = max(1, round(share * part.rows.n_rows))
    which = np.unique(np.linspace(0, part.rows.n_rows - 1, n_rows).astype(np.int64))
    return part.rows.matrix[which], part.signed_weights[which]


def joined(matrices: Sequence[Any], signed_weights: Sequence[Vector], rho: float) -> Part:
    """One part of the rows of all."""
    sparse = any(map(sp.issparse, matrices))
    X = sp.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)
    return Part(Rows(X, intercept_scaling=rho), np.concatenate(signed_weights))


class CertificateRefutedWarning(UserWarning):
    """A certificate was not true of the rows, and the one that is computed again replaces it."""


def recheck(problem: ClusterProblem, result: Result) -> Result:
    """The result, with the recomputed bounds if J or L is refuted.

    Each block is a task, as this takes longer than a pass of training. It counts once, whatever the
    groups are.
    """
    claimed, response, cluster = result.certificate, result.response, problem.cluster
    alphas = [response if isinstance(response, Response) else None] * len(problem.futures)
    if isinstance(response, list):
        for group, of_group in zip(problem.groups, response, strict=True):
            for place, i in enumerate(group.members):
                alphas[i] = cluster.task("alpha", operator.itemgetter(place), of_group)
    of_sums = claimed
    if response is None and result.alpha is not None:
        # As it was in a checkpoint; it is multiplied by the scale already.
        alphas = [cluster.argument(result.alpha)] * len(alphas)
        of_sums = replace(claimed, scale=1.0)
    w = cluster.argument(result.w)
    tasks = [
        problem.task("recheck", Group("", [i]), _sum, interval_sums, alpha, w, of_sums)
        for i, alpha in enumerate(alphas)
    ]
    sums: ProblemSums = add_up(cluster.results(cluster.summed(tasks, [""] * len(tasks))))
    checked = Verification(claimed, sums.J(), sums.L(), sums.box_violation, None)
    if checked.verdict != REFUTED:
        return result
    c = checked.recomputed
    c = replace(c, primal_rounding=_SLACK * c.primal, dual_rounding=_SLACK * c.dual)
    proved = result.certified_by(c, vector=None)
    warnings.warn(
        f"the certificate ({claimed}) is not true of the rows: J is {checked.J}, and L {checked.L}."
        f" It is replaced by what these intervals prove ({proved.certificate}). A worker on another"
        " kind of processor may have repeated the work of a lost one; or the program is wrong.",
        CertificateRefutedWarning,
        stacklevel=2,
    )
    return proved


def interval_sums(
    part: Part, team: Team, alpha: Vector | Response | None, w: Vector, claimed: Certificate
) -> ProblemSums:
    """The sums over one block; its alpha is yet to be multiplied by the scale of the certificate.

    Without alpha, it is zero; alpha may be that of all rows.

    Examples
    --------
    >>> from certsvm.problem.rows import Rows
    >>> part = Part(Rows(np.array([[2.0], [1.0]])), np.array([1.0, -1.0]))
    >>> claimed = Certificate(2.0, 1.5, target=0.1)
    >>> sums = interval_sums(part, ALONE, np.ones(2), np.zeros(1), claimed)
    >>> print(sums.J(), "and", sums.L())
    from 2 to 2 and from 1.5 to 1.5
    """
    n, rho = part.rows.n_columns, part.rows.intercept_scaling
    claimed = replace(claimed, intercept_scaling=rho)
    if alpha is None:
        alpha = np.zeros(part.rows.n_rows)
    elif isinstance(alpha, Response):
        alpha = alpha_of_part(part, team, alpha, loss_named(claimed.loss), claimed.C)
    elif alpha.size != part.rows.n_rows:
        alpha = alpha[part.span]
    sums = ProblemSums(claimed, w[:n], rho * float(w[n]) if rho > 0 else 0.0)
    alpha = claimed.scale * alpha
    for first, rows in row_blocks(part.rows.matrix):
        span = slice(first, first + rows.n_rows)
        sums.add(rows, part.labels[span], part.weights[span], alpha[span])
    return sums
