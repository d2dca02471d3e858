"""The loop over classes. There is one, for all kinds of data.

Each class against all others is a binary problem with a random stream of its own. Problems are
trained one after the other, or several at a time in threads. Ctrl-C stops the running problems
after their current pass and keeps what is proved; problems that had not started have zero weights
and prove nothing. If no problem has completed a pass, the interrupt is raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.primal import zero_bound
from certsvm.fitting.settings import Settings
from certsvm.fitting.sources import Source
from certsvm.problem.base import BaseProblem
from certsvm.problem.objective import Objective
from certsvm.problem.room import require_room
from certsvm.solvers.base import RunLostError, Solver, Start
from certsvm.training.checkpoints import Checkpoint
from certsvm.training.history import History
from certsvm.training.loop import train
from certsvm.training.result import INTERRUPTED, LOST, Callback, Result


class Observer:
    """Receives the progress of training. Methods may be called from several threads at once."""

    def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
        """Return callbacks for the passes of problem ``i``, whose training is about to begin."""
        return ()

    def end(self, i: int, label: Any, result: Result) -> None:
        """The training of problem ``i`` has ended."""


class Observers(Observer):
    """Several observers."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
        """Tell all, and gather their callbacks."""
        return [c for observer in self._observers for c in observer.begin(i, label, problem)]

    def end(self, i: int, label: Any, result: Result) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.end(i, label, result)


Finish = Callable[[int, BaseProblem, Result], Result]
"""Called with a trained problem and its result; returns the result to report."""


@dataclass(frozen=True)
class Task:
    """A binary problem to be trained.

    Attributes
    ----------
    problem : callable
        Makes the problem, when its turn has come.
    solver : Solver
        How to train it.
    seed : SeedSequence
        Its random stream.
    label : object
        The class on its positive side, or another name.
    untrained : callable
        Returns the result if the problem is never trained.
    start : Start, default=None
        Where to begin; None means at zero.
    checkpoint : Checkpoint, default=None
        Where to keep the state of training.
    """

    problem: Callable[[], BaseProblem]
    solver: Solver
    seed: np.random.SeedSequence
    label: Any
    untrained: Callable[[], Result]
    start: Start | None = None
    checkpoint: Checkpoint | None = None


def fit_classes(
    source: Source,
    settings: Settings,
    *,
    start: Sequence[Start] | None = None,
    observer: Observer | None = None,
    finish: Finish | None = None,
    stop: threading.Event | None = None,
) -> list[Result]:
    """Train each class against all others.

    Parameters
    ----------
    source : Source
        The data.
    settings : Settings
        How.
    start : sequence of Start, default=None
        Where each problem begins; None means at zero.
    observer : Observer, default=None
        Told when problems begin and end, with callbacks for their passes.
    finish : callable, default=None
        Called with each problem that has been trained and its result, after the source's own.
    stop : threading.Event, default=None
        Ends training when it is set; Ctrl-C sets it. For fits that belong together.

    Returns
    -------
    results : list of Result
        One for each problem, in the order of ``source.labels``.

    Examples
    --------
    >>> from certsvm.fitting.sources import MemorySource
    >>> source = MemorySource(np.array([[1.0, 1.0], [1.0, -1.0]]), np.array(["no", "yes"]))
    >>> [result.certificate.met for result in fit_classes(source, Settings(C=0.1))]
    [True]
    """
    solver = source.solver(settings.solver, settings.objective)
    seeds = np.random.SeedSequence(settings.seed).spawn(len(source.labels))
    workers = source.at_once(solver, settings.n_jobs)
    # Each running problem has its vectors, each that has ended its answer.
    n_vectors = workers * solver.n_vectors + len(seeds)
    require_room(source.dimension, n_vectors, getattr(source, "rows", None))

    def task(i: int) -> Task:
        return Task(
            problem=lambda: source.problem(i, settings.objective),
            solver=solver,
            seed=seeds[i],
            label=source.labels[i],
            untrained=lambda: untrained(
                source.dimension, source.weight_sum(i), settings.objective,
                source.intercept_scaling, settings.tol, solver,
            ),
            start=None if start is None else start[i],
            checkpoint=_checkpoint(source, settings, solver, i),
        )  # fmt: skip

    def finish_both(i: int, problem: BaseProblem, result: Result) -> Result:
        result = source.finish(i, problem, result)
        return result if finish is None else finish(i, problem, result)

    return train_all(
        [task(i) for i in range(len(seeds))],
        settings,
        workers=workers,
        observer=observer,
        finish=finish_both,
        stop=stop,
    )


def train_all(
    tasks: Sequence[Task],
    settings: Settings,
    *,
    workers: int = 1,
    observer: Observer | None = None,
    finish: Finish | None = None,
    stop: threading.Event | None = None,
) -> list[Result]:
    """Train all tasks; what ``fit_classes`` and a comparison of solvers have in common.

    Parameters
    ----------
    tasks : sequence of Task
        What to train.
    settings : Settings
        Limits, accuracy and threads; solvers and seeds are those of the tasks.
    workers : int, default=1
        Tasks that are trained at the same time, each with its share of ``n_jobs``.
    observer : Observer, default=None
        Told when tasks begin and end.
    finish : callable, default=None
        Called with each task's problem and result.
    stop : threading.Event, default=None
        Ends training when it is set; Ctrl-C sets it.

    Returns
    -------
    results : list of Result
        One for each task.
    """
    stop = threading.Event() if stop is None else stop
    return _Training(tasks, settings, workers, observer or Observer(), finish, stop).results()


class _Training:
    """The training of several tasks."""

    def __init__(
        self,
        tasks: Sequence[Task],
        settings: Settings,
        workers: int,
        observer: Observer,
        finish: Finish | None,
        stop: threading.Event,
    ) -> None:
        self._tasks, self._settings, self._workers = tasks, settings, workers
        self._observer, self._finish = observer, finish
        self._stop = stop
        # The errors that kept tasks from completing a first pass.
        self._errors: list[BaseException] = []

    def results(self) -> list[Result]:
        numbers = range(len(self._tasks))
        results = self._in_threads() if self._workers > 1 else [self._one(i) for i in numbers]
        if self._errors and not any(result.passes for result in results):
            raise self._errors[0]
        return results

    def _in_threads(self) -> list[Result]:
        with ThreadPoolExecutor(self._workers) as executor:
            futures: list[Future[Result]] = [
                executor.submit(self._one, i) for i in range(len(self._tasks))
            ]
            try:
                pending = wait(futures, return_when=FIRST_EXCEPTION).not_done
            except KeyboardInterrupt:
                pending = set(futures)
            if pending:
                # Running tasks finish their pass, the others do not begin.
                self._stop.set()
                wait(futures)
            return [future.result() for future in futures]

    def _one(self, i: int) -> Result:
        task = self._tasks[i]
        if self._stop.is_set():
            result = task.untrained()
        else:
            try:
                result = self._trained(i, task)
            except KeyboardInterrupt as error:
                self._stop.set()
                self._errors.append(error)
                result = task.untrained()
            except RunLostError as error:
                self._errors.append(error)
                result = replace(task.untrained(), reason=f"{LOST}: {error}")
        self._observer.end(i, task.label, result)
        return result

    def _trained(self, i: int, task: Task) -> Result:
        settings = self._settings
        problem = task.problem()
        result = train(
            problem,
            task.solver,
            tol=settings.tol,
            max_iter=settings.max_iter,
            max_time=settings.max_time,
            seed=task.seed,
            start=task.start,
            keep_alpha=settings.keep_alpha,
            keep_vector=settings.keep_vector,
            n_jobs=max(1, settings.n_jobs // self._workers),
            callbacks=self._observer.begin(i, task.label, problem),
            stop=self._stop,
            checkpoint=task.checkpoint,
        )
        if result.reason == INTERRUPTED:
            self._stop.set()
        if self._finish is None or result.reason.startswith(LOST):
            return result
        try:
            return self._finish(i, problem, result)
        except KeyboardInterrupt:
            self._stop.set()
            return replace(result, reason=INTERRUPTED)


def untrained(
    dimension: int,
    weight_sum: float,
    objective: Objective,
    intercept_scaling: float,
    tol: float,
    solver: Solver,
) -> Result:
    """The result of a problem that was never trained: zero, which proves nothing."""
    zero = zero_bound(objective.C, weight_sum, objective.loss)
    certificate = Certificate(
        primal=zero.value,
        dual=0.0,
        target=tol,
        primal_rounding=zero.rounding,
        C=objective.C,
        intercept_scaling=intercept_scaling,
        loss=objective.loss.name,
        penalize_intercept=not objective.frees(intercept_scaling),
    )
    return Result(
        w=np.zeros(dimension),
        certificate=certificate,
        history=History(),
        reason=INTERRUPTED,
        passes=0,
        epochs=0,
        alpha=None,
        solver=solver.name,
    )


def _checkpoint(source: Source, settings: Settings, solver: Solver, i: int) -> Checkpoint | None:
    if settings.checkpoint is None:
        return None
    identity = {
        "data": source.identity,
        "C": settings.C,
        "loss": settings.loss,
        "penalize_intercept": settings.penalize_intercept,
        "intercept_scaling": source.intercept_scaling,
        "tol": settings.tol,
        "solver": solver.label,
        "class weights": source.factors.tolist(),
        "seed": settings.seed,
        "n_jobs": settings.n_jobs,
        "dual point": settings.keep_alpha,
    }
    path = Path(settings.checkpoint) / f"class-{i}.checkpoint"
    return Checkpoint(path, identity, interval=settings.checkpoint_every)
