"""The training loop, the same for all solvers.

J costs a pass over all rows, so it is computed when it may end training: when the solver's estimate
of J, compared with the dual bound, is within f times the target. The estimate is multiplied by a
correction, the ratio of J to the estimate when J was last computed. J is also computed at
geometrically spaced passes, which keep the correction up to date, and an answer at hand in case
training is interrupted. Runs that need the products with all rows anyway compute J themselves.

A checkpoint is where training is, written to a file at intervals, after a pass. Writing is atomic,
so the file is complete whenever the process dies. A resumed run is a warm start: it begins at w and
alpha from the file, and computes J and L there anew. So nothing in a file is believed, and a forged
one costs time, not truth.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from certsvm.certificates.best import BestBounds
from certsvm.certificates.dual import Response, dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.rows import Vector
from certsvm.resources import PassCutError, Team, pass_limits, require_memory_for
from certsvm.solvers import SOLVERS, Auto, make_solver
from certsvm.solvers.base import Epoch, Options, RunLostError, Solver, Start
from certsvm.solvers.dual_coordinates import in_box
from certsvm.solvers.smoothed_newton import point_of_response
from certsvm.training import settings as ends
from certsvm.training.history import History, Record, shown_passes, shown_record
from certsvm.training.settings import Progress, Result, Settings

_DEFAULTS = Settings()
_log = logging.getLogger("certsvm")
# The ratio of the passes at which J is computed in any case.
_SPACING = 1.5
# What a record has of what a pass reports, NaN if the solver does not count or estimate it.
_REPORTED = ("margin_errors", "updates", "free", "primal_estimate")

KIND = "checkpoint"
# Writing may take this fraction of the time.
_SHARE = 0.05
# What is stored besides arrays: passes, epochs, seconds and smoothing, each less than this.
_LARGEST = np.array([2.0**31, 2.0**31, 2.0**62, 2.0**62])


class CheckpointError(ValueError):
    """A checkpoint that this run cannot resume from."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; training continues."""


class Saved(NamedTuple):
    """Where training was.

    Attributes
    ----------
    start : Start
        Where to go on. Its alpha is that of the largest L, if it was kept; if not, and there is a
        smoothing, the ``Response`` of its w is.
    best_w : ndarray of shape (dimension,)
        The weight vector of the least J.
    passes : int
        The number of passes so far.
    seconds : float
        The time that they took.
    """

    start: Start
    best_w: Vector
    passes: int
    seconds: float


def read_checkpoint(path: Path, problem: BaseProblem) -> Saved | None:
    """Where training was, in a form that fits ``problem``; None if there is no checkpoint.

    Raises an OSError if nothing can be written there.
    """
    from certsvm.files.container import read_container

    path.parent.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=path.parent).close()
    if not path.exists():
        return None
    try:
        file = read_container(path, KIND)
        if (of := file.content["problem"]) != (this := _in_words(problem)):
            what = f"{path} is of a run on {of!r:.200}, not {this!r}"
            raise CheckpointError(f"{what}. Choose another folder, or remove it to begin anew.")
        numbers = file.arrays["numbers"]
        if numbers.shape != _LARGEST.shape or not ((numbers >= 0) & (numbers < _LARGEST)).all():
            raise ValueError(f"its numbers are {numbers}")
        passes, epochs, seconds, smoothing = numbers.tolist()
        alpha = file.arrays.get("alpha")
        start = Start(file.arrays["w"], int(epochs), alpha, smoothing or None)
        best_w = Start(file.arrays["best_w"]).checked(problem).w
        return Saved(start.checked(problem), best_w, int(passes), float(seconds))
    except CheckpointError:
        raise
    except (ValueError, KeyError) as error:
        what = f"{path} is not a valid checkpoint: {error}"
        raise CheckpointError(f"{what.rstrip('.')}. Remove it to begin anew.") from None


def _in_words(problem: BaseProblem) -> str:
    """What a run minimises: one on another problem does not go on."""
    return (
        f"{problem.n_rows} rows, {problem.dimension} weights, C = {problem.C}, loss = "
        f"{problem.loss.name}, penalize_intercept = {not problem.free_intercept}, "
        f"intercept_scaling = {problem.intercept_scaling}"
    )


def train(
    problem: BaseProblem, solver: str | Solver, settings: Settings = _DEFAULTS, *,
    seed: int | np.random.SeedSequence | None = None, start: Start | None = None,
    checkpoint: str | PathLike[str] | None = None, name: str = "", **changes: Any,
) -> Result:  # fmt: skip
    """Train until the relative gap is proved to be at most ``tol``, or a limit is reached.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    solver : str or Solver
        The algorithm and its parameters.
    settings : Settings, default=Settings()
        Limits, and what to keep: ``tol``, ``max_iter``, ``max_time``, ``n_jobs``, ``keep_alpha``,
        ``keep_vector``, ``callbacks`` and ``stop``. The others are for those who make problems.
    seed : int or SeedSequence, default=None
        Seed of the random orders. The same seed and number of threads give the same bits.
    start : Start, default=None
        Where to start; None means at zero.
    checkpoint : path, default=None
        File to keep the state of training in, every ``checkpoint_every`` seconds, or less often if
        writing takes long. If it exists, training goes on from there. J and L are then computed
        anew, and ``start`` is ignored.
    name : str, default=""
        What is trained, at the beginning of lines of the log and of progress.
    **changes
        Other values of attributes of ``settings``, such as ``tol=1e-6``.

    Returns
    -------
    result : Result
        On KeyboardInterrupt, the result of the passes before it; if there is none, the exception
        is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from certsvm.problem.problems import Problem
    >>> from certsvm.problem.rows import Rows
    >>> from certsvm.solvers import SGDs
    >>> problem = Problem(Rows(np.array([[1.0, 1.0], [1.0, -1.0]])), labels=[1, -1], C=1.0)
    >>> result = train(problem, SGDs(), tol=0.01, seed=0)
    >>> result.reason, result.certificate.relative_gap <= 0.01
    ('target met', True)
    """
    if "objective" in changes:
        raise TypeError("the objective is that of the problem: Problem(rows, labels, C=...)")
    began, solver = time.perf_counter(), make_solver(solver)
    settings = replace(settings, **changes)
    _require_trainable(problem, solver)
    require_memory_for(problem.dimension, solver.n_vectors)
    saved, rng = None, np.random.default_rng(seed)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None:
        if not (solver.starts_warm and isinstance(problem, SummableProblem)):
            raise CheckpointError(f"solver {solver.name!r} cannot go on from a checkpoint here")
        saved = read_checkpoint(path, problem)
    if saved is not None:
        start, began = saved.start, began - saved.seconds
        # Or a run that is killed again and again would see the same few rows each time.
        rng = np.random.Generator(np.random.PCG64(seed).jumped(saved.passes))
    elif start is not None:
        start = start.checked(problem)
    if start is not None and start.overflows(problem):
        text = "The weights to start from are so large that J overflows; training starts from zero."
        warnings.warn(text, stacklevel=3)
        start = None
    # What a checkpoint has to prove L by, if alpha is no function of w.
    keeps = settings.keep_alpha or (path is not None and solver.saves_alpha(problem))
    with Team(settings.n_jobs) as team:
        resumed = saved is not None and start is not None
        options = Options(rng, settings.tol, start, keeps, team, resumed)
        prefix = f"{name}: " if name else ""
        trainer = Trainer(problem, solver, settings, options, began, prefix, path)
        if saved is not None:
            trainer.resume(saved)
        try:
            # The loop is in a function of its own: Python notices signals when it jumps back to
            # the head of a loop, and since 3.12 that jump is not part of a try around the loop.
            reason = trainer.make_passes()
        except PassCutError:
            reason = ends.INTERRUPTED if trainer.stop.is_set() else ends.OUT_OF_TIME
        except (KeyboardInterrupt, RunLostError) as error:
            if not trainer.passes:
                raise
            lost = isinstance(error, RunLostError)
            reason = f"{ends.LOST}: {error}" if lost else ends.INTERRUPTED
        if trainer.best.w is None and not reason.startswith(ends.LOST):
            trainer.compute_primal()
        # A second Ctrl-C loses the checkpoint, not the result.
        with contextlib.suppress(KeyboardInterrupt):
            trainer.save()
    return trainer.result(reason)


class Trainer:
    """A solver's run with its bounds and history.

    Parameters
    ----------
    problem, solver, settings, options
        What is trained, and how.
    began : float
        The ``time.perf_counter`` at which training began.
    prefix : str
        The beginning of lines of the log, and of those that are printed.
    checkpoint : Path or None
        The file to keep the state in.
    """

    def __init__(
        self, problem: BaseProblem, solver: Solver, settings: Settings, options: Options,
        began: float, prefix: str, checkpoint: Path | None,
    ) -> None:  # fmt: skip
        self.problem, self.solver, self.settings, self.options = problem, solver, settings, options
        self.began, self.prefix, self.checkpoint = began, prefix, checkpoint
        # When a checkpoint is to be written.
        self.due = time.perf_counter() + settings.checkpoint_every
        self.run = solver.start(problem, options)
        self.best = BestBounds(problem, settings.tol, keep_vector=settings.keep_vector)
        self.history, self.stop = History(), settings.stop or threading.Event()
        # The ratio of J to its estimate, and the pass after which J is computed in any case.
        self.correction, self.next_scheduled, self.printed = 1.0, 1, -math.inf

    @property
    def passes(self) -> int:
        """The number of complete passes, which are those with a record."""
        return self.history[-1].passes if self.history else 0

    @property
    def seconds(self) -> float:
        """Time since training began, including the time before a checkpoint."""
        return time.perf_counter() - self.began

    def make_passes(self) -> str:
        """Make passes until there is a reason to stop; return the reason."""
        settings, run, duration = self.settings, self.run, 0.0
        limit = math.inf if settings.max_time is None else settings.max_time
        reason = ends.OUT_OF_PASSES if self.passes >= settings.max_iter else ""
        if self.passes and self.best.certificate().met:
            reason = ends.TARGET_MET
        while not reason:
            began = self.seconds
            # A pass that takes a little longer than the last is worth waiting for.
            limits = pass_limits(limit - began + 0.1 * (1.0 + duration), self.stop)
            with limits if self.passes else contextlib.nullcontext():
                epoch = run.epoch()
            # The first pass may have compiled kernels, and tells nothing about the next.
            duration = self.seconds - began if self.passes else 0.0
            out_of_time = self.seconds + duration >= limit
            last = out_of_time or epoch.finished or self.passes + 1 == settings.max_iter
            self.end_pass(epoch, last=last)
            progress = Progress(self.history[-1], self._best_w)
            answers = [callback(progress) for callback in settings.callbacks]
            reasons = (
                (ends.TARGET_MET, self.best.certificate().met),
                (run.why_finished, epoch.finished),
                (ends.OUT_OF_TIME, out_of_time),
                (ends.STOPPED, any(answers)),
                (ends.INTERRUPTED, self.stop.is_set()),
                (ends.OUT_OF_PASSES, last),
            )
            reason = next((text for text, applies in reasons if applies), "")
            if not reason and time.perf_counter() >= self.due:
                self.save()
        return reason

    def end_pass(self, epoch: Epoch, *, last: bool) -> None:
        """Compute the bounds that a pass gives, and add it to the history."""
        run, number, point, primal = self.run, self.passes + 1, self.run.primal(), math.nan
        if epoch.dual_estimate is None or (last and run.computes_primal):
            self._compute_dual()
        if point is not None:
            self.best.offer_primal(*point)
            primal = point[1].value
        elif last or (not run.computes_primal and self._needs_primal(epoch, number)):
            if epoch.dual_estimate is not None:
                self._compute_dual()
            primal = self.compute_primal()
            self.next_scheduled = max(number + 1, math.ceil(_SPACING * number))
            if epoch.primal_estimate and 0.0 <= primal / epoch.primal_estimate < math.inf:
                self.correction = primal / epoch.primal_estimate
        self._record(epoch, primal, number)

    def compute_primal(self) -> float:
        """Compute J for the solver's candidates; return the least J."""
        least = math.inf
        for w in self.run.candidates():
            # A run on any other kind of problem computes J itself.
            assert isinstance(self.problem, SummableProblem)
            bound = primal_bound(self.problem, w, self.options.team)
            self.best.offer_primal(w, bound)
            least = min(least, bound.value)
        return least

    def _compute_dual(self) -> None:
        if (point := self.run.dual()) is not None:
            self.best.offer_dual(point)

    def _needs_primal(self, epoch: Epoch, number: int) -> bool:
        """Whether J is due, or may meet the target by the estimates."""
        if number >= self.next_scheduled:
            return True
        dual = max(self.best.dual.bound.value, epoch.dual_estimate or 0.0)
        if epoch.primal_estimate is None or dual <= 0:
            return False
        guess = self.correction * epoch.primal_estimate
        return guess / dual - 1.0 <= self.solver.f * self.best.target

    def _record(self, epoch: Epoch, primal: float, passes: int) -> None:
        # After a resumption, not every solver counts on from its start.
        epochs = max(epoch.epochs, self.history[-1].epochs + 1 if self.history else 0)
        values = {k: v for k, v in vars(epoch).items() if k in _REPORTED and v is not None}
        best = self.best.certificate()
        values |= {"dual": best.dual, "gap": best.gap, "relative_gap": best.relative_gap}
        self.history.append(Record(self.seconds, passes, epochs, primal=primal, **values))
        every = self.settings.print_every
        if every is not None and time.perf_counter() - self.printed >= every:
            self.printed = time.perf_counter()
            _print(f"{self.prefix}{shown_record(self.history[-1])}")
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s%s", self.prefix, shown_record(self.history[-1]))

    def _best_w(self) -> Vector:
        # A copy, so that a callback cannot change the certified vector.
        w = next(self.run.candidates(), None) if self.best.w is None else self.best.w
        return np.zeros(self.problem.dimension) if w is None else w.copy()

    def save(self) -> None:
        """Write where training is, if it is to be kept; a failure is a warning."""
        from certsvm.files.container import write_container

        if self.checkpoint is None:
            return
        began, dual, arrays = time.perf_counter(), self.best.dual, {"best_w": self._best_w()}
        if isinstance(dual.response, Response):
            arrays["w"], smoothing = dual.response.w, dual.response.sigma / self.problem.C
        else:
            arrays["w"] = next(self.run.candidates(), arrays["best_w"])
            end = self.run.warm_start()
            smoothing = 0.0 if end is None or end.smoothing is None else end.smoothing
            if dual.alpha is not None:
                arrays["alpha"] = dual.alpha
        numbers = self.passes, self.history[-1].epochs, self.seconds, smoothing
        content, arrays["numbers"] = {"problem": _in_words(self.problem)}, np.array(numbers)
        try:
            write_container(self.checkpoint, KIND, content, arrays)
        except OSError as error:
            warnings.warn(f"no checkpoint was written: {error}", CheckpointWarning, stacklevel=3)
        now = time.perf_counter()
        self.due = now + max(self.settings.checkpoint_every, (now - began) / _SHARE)

    @np.errstate(over="ignore", invalid="ignore")
    def resume(self, saved: Saved) -> None:
        """Go on counting from an interrupted run, with J and L of its points computed anew."""
        problem, options, start = self.problem, self.options, saved.start
        assert isinstance(problem, SummableProblem)
        for w in (start.w, saved.best_w):
            self.best.offer_primal(w, primal_bound(problem, w, options.team))
        if start.alpha is not None:
            alpha = in_box(problem, start.alpha, problem.loss, problem.C)
            self.best.offer_dual(dual_point(problem, alpha, "checkpoint", options.team))
        elif start.smoothing is not None:
            response = Response(start.w, start.smoothing * problem.C)
            self.best.offer_dual(point_of_response(problem, response, "checkpoint", options))
        self._record(Epoch(start.epochs), self.best.primal.value, saved.passes)

    def result(self, reason: str) -> Result:
        """The result, given the reason for which training ended."""
        best, settings = self.best, self.settings
        # J may be infinite, or larger than J(0), for all candidates.
        best.offer_zero()
        certificate, dual, alpha = best.certificate(), best.dual, best.dual.alpha
        if reason in (ends.OUT_OF_PASSES, ends.OUT_OF_TIME) and certificate.met:
            reason = ends.TARGET_MET
        assert best.w is not None
        end = self.run.warm_start() or Start(best.w, alpha=alpha)
        if self.options.keep_alpha and not settings.keep_alpha:
            alpha, end = None, replace(end, alpha=None)
        result = Result(
            best.w, certificate, self.history, reason,
            start=replace(end, w=best.w, epochs=self.history[-1].epochs),
            solver=self.run.solver_name or self.solver.name,
            alpha=alpha, response=dual.response, vector=dual.vector,
        )  # fmt: skip
        if settings.print_every is not None:
            _print(f"{self.prefix}{shown_passes(result.passes)}, {certificate}")
        _log.info(
            "%sC = %g, %s after %s of %s, %.3f s: %s", self.prefix, self.problem.C, reason,
            shown_passes(result.passes), result.solver, self.seconds, certificate,
        )  # fmt: skip
        return result


def _require_trainable(problem: BaseProblem, solver: Solver) -> None:
    """Raise unless the solver minimises this objective, on this kind of rows."""

    def fits(other: type[Solver]) -> bool:
        able = other.solves(problem.loss, free_intercept=problem.free_intercept)
        return able and isinstance(problem, other.problem_type)

    if fits(type(solver)):
        return
    needs = f"{solver.problem_type.where}, not {problem.where}"
    if problem.loss not in solver.losses:
        needs = f"the hinge loss, not loss={problem.loss.name!r}"
    elif isinstance(problem, solver.problem_type):
        needs = "penalize_intercept=True"
    solvers: dict[str, type[Solver]] = {Auto.name: Auto, **SOLVERS}
    names = ", ".join(repr(name) for name, other in solvers.items() if fits(other))
    raise ValueError(f"solver {solver.name!r} needs {needs}" + (f". Use {names}" if names else ""))


def _print(line: str) -> None:
    # Training does not end because nobody reads about it any more.
    with contextlib.suppress(OSError, ValueError):
        # With its end, since threads write at the same time.
        print(f"{line}\n", file=sys.stderr, end="", flush=True)
