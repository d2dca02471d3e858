"""The loop over classes. There is one, for all kinds of data.

Each class against all others is a binary problem with a random stream of its own. Problems are
trained one after the other, or several at a time in threads, which on a stream share each reading
of the data. Ctrl-C stops the running problems, in their first pass only after it, and keeps what is
proved; problems that had not started have zero weights and prove nothing. If no problem has
completed a pass, the interrupt is raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import numpy as np

from certsvm.certificates.certificate import Certificate, tidy
from certsvm.certificates.primal import zero_bound
from certsvm.fitting.sources import Source
from certsvm.problem.base import BaseProblem
from certsvm.resources import require_memory_for
from certsvm.solvers.base import RunLostError, Solver, Start
from certsvm.training.history import History
from certsvm.training.loop import train
from certsvm.training.settings import INTERRUPTED, LOST, Result, Settings

Finish = Callable[[int, BaseProblem, Result], Result]
"""Called with a trained problem and its result; returns the result to report."""


def fit_classes(
    source: Source, settings: Settings, *, start: Sequence[Start] | None = None,
    finish: Finish | None = None,
) -> list[Result]:  # fmt: skip
    """Train each class against all others.

    Parameters
    ----------
    source : Source
        The data.
    settings : Settings
        How.
    start : sequence of Start, default=None
        Where each problem begins; None means at zero.
    finish : callable, default=None
        Called with each problem that has been trained and its result, after the source's own.

    Returns
    -------
    results : list of Result
        One for each problem, in the order of ``source.labels``.

    Examples
    --------
    >>> from certsvm.fitting.sources import MemorySource
    >>> source = MemorySource(np.array([[1.0, 1.0], [1.0, -1.0]]), np.array(["no", "yes"]))
    >>> [result.certificate.met for result in fit_classes(source, Settings())]
    [True]
    """
    solver = source.solver(settings.solver, settings.objective)
    labels, folder = source.labels, settings.checkpoint
    seeds = np.random.SeedSequence(settings.seed).spawn(len(labels))
    workers = source.at_once(solver, settings.n_jobs)
    source.starts = start
    stop = threading.Event() if settings.stop is None else settings.stop
    each = replace(settings, n_jobs=max(1, settings.n_jobs // workers), stop=stop)
    # Each running problem has its vectors, each that has ended its answer.
    require_memory_for(source.dimension, workers * solver.n_vectors + len(labels))
    # What kept problems from completing a first pass.
    errors: list[BaseException] = []

    def fit_class(i: int) -> Result:
        result: Result | None = None
        try:
            if not stop.is_set():
                problem = source.problem(i, settings.objective)
                callbacks = [c for o in settings.observers for c in o.begin(i, labels[i], problem)]
                result = train(
                    problem, solver, each, seed=seeds[i],
                    start=None if start is None else start[i],
                    checkpoint=folder and Path(folder, f"class-{i}.checkpoint"),
                    callbacks=[*settings.callbacks, *callbacks],
                    name=f"class {tidy(labels[i])}" if len(labels) > 1 else "",
                )  # fmt: skip
                if not result.reason.startswith(LOST):
                    result = source.finish(i, problem, result)
                    result = result if finish is None else finish(i, problem, result)
        except (KeyboardInterrupt, RunLostError) as error:
            if result is None:
                errors.append(error)
                result = _untrained(source, settings, solver, i)
            lost = isinstance(error, RunLostError)
            result = replace(result, reason=f"{LOST}: {error}" if lost else INTERRUPTED)
        if result is None:
            result = _untrained(source, settings, solver, i)
        if result.reason == INTERRUPTED:
            stop.set()
        for observer in settings.observers:
            observer.end(i, labels[i], result)
        return result

    def fit_all() -> list[Result]:
        with ThreadPoolExecutor(workers) as executor:
            fit = source.in_threads(fit_class, workers, settings.n_jobs)
            try:
                futures = [executor.submit(fit, i) for i in range(len(labels))]
            except BaseException:
                # There is no thread left, or no memory for one.
                stop.set()
                raise
            if wait(futures, return_when=FIRST_EXCEPTION).not_done:
                stop.set()
        return [future.result() for future in futures]

    if workers == 1:
        results = list(map(fit_class, range(len(labels))))
    else:
        # Problems are begun in another thread, which no signal reaches: they may wait for each
        # other, and an interrupt must not leave some of them out.
        with ThreadPoolExecutor(1) as executor:
            fitted: Future[list[Result]] | None = None
            try:
                fitted = executor.submit(fit_all)
                # A signal that another thread gets is noticed as the wait ends.
                while wait([fitted], timeout=0.5).not_done:
                    pass
            except KeyboardInterrupt:
                # Running problems finish their first pass, the others do not begin.
                stop.set()
                if fitted is None:
                    raise
            results = fitted.result()
    if errors and not any(result.passes for result in results):
        raise errors[0]
    return results


def _untrained(source: Source, settings: Settings, solver: Solver, i: int) -> Result:
    """The result of a problem that was never trained: zero, which proves nothing."""
    objective, rho = settings.objective, source.intercept_scaling
    zero = zero_bound(objective.C, source.weight_sum(i), objective.loss, source.n_rows)
    certificate = Certificate(
        zero.value, 0.0, settings.tol, primal_rounding=zero.rounding, C=objective.C,
        intercept_scaling=rho, loss=objective.loss.name,
        penalize_intercept=not objective.frees(rho),
    )  # fmt: skip
    w = np.zeros(source.dimension)
    return Result(w, certificate, History(), INTERRUPTED, Start(w, 0), solver.name)
