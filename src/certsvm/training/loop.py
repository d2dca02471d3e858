"""The training loop, the same for all solvers.

J costs a pass over all rows, so it is computed when it may end training: when the solver's estimate
of J, compared with the dual bound, is within f times the target. The estimate is multiplied by a
correction, the ratio of J to the estimate when J was last computed. J is also computed at
geometrically spaced passes, which keep the correction up to date, and an answer at hand in case
training is interrupted. Runs that need the products with all rows anyway compute J themselves.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import time
import warnings
import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certsvm.certificates.best import BestBounds
from certsvm.certificates.dual import Response, dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.matrices import dense
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows, Vector
from certsvm.resources import PassCutError, Team, pass_limits, require_memory_for
from certsvm.solvers import SOLVERS, Auto, make_solver
from certsvm.solvers.base import Epoch, Options, RunLostError, Solver, Start
from certsvm.solvers.dual_coordinates import in_box
from certsvm.solvers.smoothed_newton import point_of_response
from certsvm.training import settings as ends
from certsvm.training.history import History, Record, shown_passes, shown_record
from certsvm.training.settings import Checkpoint, CheckpointError, Progress, Result, Saved, Settings

_DEFAULTS = Settings()
_log = logging.getLogger("certsvm")
# The ratio of the passes at which J is computed in any case.
_SPACING = 1.5
# What a record has of what a pass reports, NaN if the solver does not count or estimate it.
_REPORTED = ("margin_errors", "updates", "free", "primal_estimate")
# Training takes long after so many seconds. Columns differ much by this factor, in the first rows.
_LONG, _MUCH, _FIRST_ROWS = 10.0, 1000.0, 100_000
_LOOKED_AT: weakref.WeakSet[Rows] = weakref.WeakSet()


class ScaleWarning(UserWarning):
    """Training takes long, and columns differ much in scale: the usual reason for it."""


def train(
    problem: BaseProblem, solver: str | Solver, settings: Settings = _DEFAULTS, *,
    seed: int | np.random.SeedSequence | None = None, start: Start | None = None,
    checkpoint: Checkpoint | None = None, name: str = "", **changes: Any,
) -> Result:  # fmt: skip
    """Train until the relative gap is proved to be at most ``tol``, or a limit is reached.

    If training takes long and columns differ much in scale, a ``ScaleWarning`` says so once.

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
    checkpoint : Checkpoint, default=None
        File to keep the state of training in; if it exists, training goes on from there. J and L
        are then computed anew, and ``start`` is ignored.
    name : str, default=""
        What is trained, at the beginning of lines of the log.
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
    if checkpoint is not None:
        if not (solver.starts_warm and isinstance(problem, SummableProblem)):
            raise CheckpointError(f"solver {solver.name!r} cannot go on from a checkpoint here")
        saved = checkpoint.load(problem)
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
    with Team(settings.n_jobs) as team:
        # What a checkpoint has to prove L by, if alpha is no function of w.
        keeps = settings.keep_alpha or (checkpoint is not None and solver.saves_alpha(problem))
        resumed = saved is not None and start is not None
        options = Options(rng, settings.tol, start, keeps, team, resumed)
        trainer = Trainer(problem, solver, settings, options, began, f"{name}: " if name else "")
        if saved is not None:
            trainer.resume(saved)
        try:
            # The loop is in a function of its own: Python notices signals when it jumps back to
            # the head of a loop, and since 3.12 that jump is not part of a try around the loop.
            reason = trainer.make_passes(checkpoint)
        except PassCutError:
            reason = ends.INTERRUPTED if trainer.stopped else ends.OUT_OF_TIME
        except (KeyboardInterrupt, RunLostError) as error:
            if not trainer.passes:
                raise
            lost = isinstance(error, RunLostError)
            reason = f"{ends.LOST}: {error}" if lost else ends.INTERRUPTED
        if trainer.best.w is None and not reason.startswith(ends.LOST):
            trainer.compute_primal()
        if checkpoint is not None:
            # A second Ctrl-C loses the checkpoint, not the result.
            with contextlib.suppress(KeyboardInterrupt):
                checkpoint.save(trainer.saved())
    # J may be infinite, or larger than J(0), for all candidates.
    trainer.best.offer_zero()
    if reason in (ends.OUT_OF_PASSES, ends.OUT_OF_TIME) and trainer.best.certificate().met:
        reason = ends.TARGET_MET
    best, alpha = trainer.best, trainer.best.dual.alpha
    assert best.w is not None
    end = trainer.run.warm_start() or Start(best.w, alpha=alpha)
    if keeps and not settings.keep_alpha:
        alpha, end = None, replace(end, alpha=None)
    result = Result(
        best.w, best.certificate(), trainer.history, reason,
        start=replace(end, w=best.w, epochs=trainer.history[-1].epochs),
        solver=trainer.run.solver_name or solver.name,
        alpha=alpha, response=best.dual.response, vector=best.dual.vector,
    )  # fmt: skip
    _log.info(
        "%sC = %g, %s after %s of %s, %.3f s: %s", trainer.prefix, problem.C, reason,
        shown_passes(result.passes), result.solver, trainer.seconds, result.certificate,
    )  # fmt: skip
    return result


@dataclass
class Trainer:
    """A solver's run with its bounds and history.

    Attributes
    ----------
    problem, solver, settings, options
        What is trained, and how.
    began : float
        The ``time.perf_counter`` at which training began.
    prefix : str
        The beginning of lines of the log.
    """

    problem: BaseProblem
    solver: Solver
    settings: Settings
    options: Options
    began: float
    prefix: str

    def __post_init__(self) -> None:
        self.run, settings = self.solver.start(self.problem, self.options), self.settings
        self.best = BestBounds(self.problem, settings.tol, keep_vector=settings.keep_vector)
        self.history, self.resumed = History(), False
        # The ratio of J to its estimate, and the pass after which J is computed in any case.
        self.correction, self.next_scheduled = 1.0, 1

    @property
    def passes(self) -> int:
        """The number of complete passes, which are those with a record."""
        return self.history[-1].passes if self.history else 0

    @property
    def seconds(self) -> float:
        """Time since training began, including the time before a checkpoint."""
        return time.perf_counter() - self.began

    @property
    def stopped(self) -> bool:
        """Whether training is to end at once."""
        return self.settings.stop is not None and self.settings.stop.is_set()

    def make_passes(self, checkpoint: Checkpoint | None) -> str:
        """Make passes until there is a reason to stop; return the reason."""
        max_iter, max_time, duration = self.settings.max_iter, self.settings.max_time, 0.0
        limit = math.inf if max_time is None else max_time
        reason = ends.OUT_OF_PASSES if self.passes >= max_iter else ""
        if self.passes and self.best.certificate().met:
            reason = ends.TARGET_MET
        while not reason:
            began = self.seconds
            # A pass that takes a little longer than the last is worth waiting for.
            limits = pass_limits(limit - began + 0.1 * (1.0 + duration), self.settings.stop)
            with limits if self.passes else contextlib.nullcontext():
                epoch = self.run.epoch()
            # The first pass may have compiled kernels, and tells nothing about the next.
            duration = self.seconds - began if self.passes else 0.0
            out_of_time = self.seconds + duration >= limit
            last = out_of_time or epoch.finished or self.passes + 1 == max_iter
            self.end_pass(epoch, last=last)
            progress = Progress(self.history[-1], self._best_w)
            answers = [callback(progress) for callback in self.settings.callbacks]
            met = self.best.certificate().met
            reasons = (
                (ends.TARGET_MET, met),
                (self.run.why_finished, epoch.finished),
                (ends.OUT_OF_TIME, out_of_time),
                (ends.STOPPED, any(answers)),
                (ends.INTERRUPTED, self.stopped),
                (ends.OUT_OF_PASSES, last),
            )
            reason = next((text for text, applies in reasons if applies), "")
            if not met and self.seconds >= _LONG and isinstance(self.problem, Problem):
                _warn_of_scales(self.problem.rows)
            if not reason and checkpoint is not None and checkpoint.due():
                checkpoint.save(self.saved())
        return reason

    def end_pass(self, epoch: Epoch, *, last: bool) -> None:
        """Compute the bounds that a pass gives, and add it to the history."""
        if epoch.dual_estimate is None or (last and self.run.computes_primal):
            self._compute_dual()
        primal = math.nan
        if self.run.computes_primal:
            point = self.run.primal()
            if point is not None:
                self.best.offer_primal(*point)
                primal = point[1].value
            elif last:
                primal = self.compute_primal()
        elif last or self.passes + 1 >= self.next_scheduled or self._may_be_met(epoch):
            if epoch.dual_estimate is not None:
                self._compute_dual()
            primal = self.compute_primal()
            self.next_scheduled = max(self.passes + 2, math.ceil(_SPACING * (self.passes + 1)))
            if epoch.primal_estimate:
                correction = primal / epoch.primal_estimate
                if 0.0 <= correction < math.inf:
                    self.correction = correction
        self._record(epoch, primal, self.passes + 1)

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

    def _may_be_met(self, epoch: Epoch) -> bool:
        dual = max(self.best.dual.bound.value, epoch.dual_estimate or 0.0)
        if epoch.primal_estimate is None or dual <= 0:
            return False
        guess = self.correction * epoch.primal_estimate
        return guess / dual - 1.0 <= self.solver.f * self.best.target

    def _record(self, epoch: Epoch, primal: float, passes: int) -> None:
        epochs, best = epoch.epochs, self.best.certificate()
        if self.resumed:
            # Not every solver counts on from its start.
            epochs = max(epochs, self.history[-1].epochs + 1)
        values = {name: getattr(epoch, name) for name in _REPORTED}
        values = {name: value for name, value in values.items() if value is not None}
        values |= {"dual": best.dual, "gap": best.gap, "relative_gap": best.relative_gap}
        self.history.append(Record(self.seconds, passes, epochs, primal=primal, **values))
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s%s", self.prefix, shown_record(self.history[-1]))

    def _best_w(self) -> Vector:
        # A copy, so that a callback cannot change the certified vector.
        w = next(self.run.candidates(), None) if self.best.w is None else self.best.w
        return np.zeros(self.problem.dimension) if w is None else w.copy()

    def saved(self) -> Saved:
        """Where training is."""
        best, epochs = self.best, self.history[-1].epochs
        if isinstance(best.dual.response, Response):
            w, sigma = best.dual.response
            start = Start(w, epochs, None, sigma / self.problem.C)
        else:
            rest = (best.w, np.zeros(self.problem.dimension))
            w = next(w for w in itertools.chain(self.run.candidates(), rest) if w is not None)
            end = self.run.warm_start()
            start = Start(w, epochs, best.dual.alpha, None if end is None else end.smoothing)
        return Saved(start, w if best.w is None else best.w, self.passes, self.seconds)

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
        self.resumed = True


def _require_trainable(problem: BaseProblem, solver: Solver) -> None:
    """Raise unless the solver minimises this objective, on this kind of rows."""

    def solves(other: type[Solver]) -> bool:
        return other.solves(problem.loss, free_intercept=problem.free_intercept)

    if solves(type(solver)) and isinstance(problem, solver.problem_type):
        return
    needs = f"{solver.problem_type.where}, not {problem.where}"
    if problem.loss not in solver.losses:
        needs = f"the hinge loss, not loss={problem.loss.name!r}"
    elif not solves(type(solver)):
        needs = "penalize_intercept=True"
    solvers: dict[str, type[Solver]] = {Auto.name: Auto, **SOLVERS}
    able = [n for n, s in solvers.items() if isinstance(problem, s.problem_type) and solves(s)]
    instead = f". Use {', '.join(map(repr, able))}" if able else ""
    raise ValueError(f"solver {solver.name!r} needs {needs}{instead}")


def _warn_of_scales(rows: Rows) -> None:
    """Warn if the largest absolute values of columns differ much, once for the same rows."""
    if rows in _LOOKED_AT:
        return
    _LOOKED_AT.add(rows)
    largest = dense(abs(rows.matrix[:_FIRST_ROWS]).max(axis=0)).ravel().astype(np.float64)
    largest = largest[largest > 0.0]
    factor = float(largest.max() / largest.min()) if largest.size else 1.0
    if factor >= _MUCH:
        warnings.warn(
            f"Training takes long, and columns differ in scale by a factor of {factor:.2g}. Scale "
            "them, for example with StandardScaler or, if they are sparse, MaxAbsScaler of "
            "sklearn.preprocessing.",
            ScaleWarning,
            stacklevel=4,
        )
