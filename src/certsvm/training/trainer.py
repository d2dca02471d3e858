"""A training run: the solver's, with its bounds and history, and when J is computed.

J costs a pass over all rows, so it is computed when it may end training: when the solver's estimate
of J, compared with the dual bound, is within f times the target. The estimate is multiplied by a
correction, the ratio of J to the estimate when J was last computed. J is also computed at
geometrically spaced passes, which keep the correction up to date, and an answer at hand in case
training is interrupted. Runs that need the products with all rows anyway compute J themselves.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from typing import cast

import numpy as np

from certsvm.certificates.best import BestBounds
from certsvm.certificates.dual import Response, dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.shared.dual_start import in_box
from certsvm.solvers.smoothed_newton import point_of_response
from certsvm.training.checkpoints import Saved
from certsvm.training.history import History, Record
from certsvm.training.result import Progress, Result

# The ratio of the passes at which J is computed in any case.
_SPACING = 1.5


class Trainer:
    """A solver's run with its bounds and history.

    ``began`` is the ``time.perf_counter`` at which training began.
    """

    def __init__(
        self, problem: BaseProblem, solver: Solver, options: Options, began: float
    ) -> None:
        self._problem, self._solver, self._options = problem, solver, options
        # The loop has checked that the solver supports this kind of problem.
        self.run: Run = solver.start(cast(Problem, problem), options)
        self.best = BestBounds(problem, options.target, keep_vector=options.keep_vector)
        self.history = History()
        self._correction, self._next_scheduled = 1.0, 1
        # Of an interrupted run that this one goes on from.
        self._passes_before = self._epochs_before = 0
        self._began = began

    @property
    def passes(self) -> int:
        """The number of complete passes, which are those with a record."""
        return self.history[-1].passes if len(self.history) else self._passes_before

    @property
    def seconds(self) -> float:
        """Time since training began, including the time before a checkpoint."""
        return time.perf_counter() - self._began

    @np.errstate(over="ignore", invalid="ignore")
    def resume(self, saved: Saved) -> None:
        """Go on counting from an interrupted run, with J and L of its points computed anew."""
        problem, options, start = self._problem, self._options, saved.start
        assert isinstance(problem, SummableProblem)
        for w in (start.w, saved.best_w):
            self.best.offer_primal(w, primal_bound(problem, w, options.team))
        if start.alpha is not None:
            alpha = in_box(problem, start.alpha)
            self.best.offer_dual(dual_point(problem, alpha, "checkpoint", options.team))
        elif start.smoothing is not None:
            response = Response(start.w, start.smoothing * problem.C)
            self.best.offer_dual(point_of_response(problem, response, "checkpoint", options))
        self._began -= saved.seconds
        self._passes_before, self._epochs_before = saved.passes - 1, start.epochs
        self._record(Epoch(start.epochs), self.best.primal.value)

    def saved(self) -> Saved:
        """Where training is."""
        best, epochs = self.best, self.history[-1].epochs
        if isinstance(best.dual.response, Response):
            w, sigma = best.dual.response
            start = Start(w, epochs, None, sigma / self._problem.C)
        else:
            rest = (best.w, np.zeros(self._problem.dimension))
            w = next(w for w in itertools.chain(self.run.candidates(), rest) if w is not None)
            end = self.run.warm_start()
            start = Start(w, epochs, best.dual.alpha, None if end is None else end.smoothing)
        return Saved(start, w if best.w is None else best.w, self.passes, self.seconds)

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
        elif last or self.passes + 1 >= self._next_scheduled or self._may_be_met(epoch):
            if epoch.dual_estimate is not None:
                self._compute_dual()
            primal = self.compute_primal()
            self._next_scheduled = max(self.passes + 2, math.ceil(_SPACING * (self.passes + 1)))
            if epoch.primal_estimate:
                correction = primal / epoch.primal_estimate
                if 0.0 <= correction < math.inf:
                    self._correction = correction
        self._record(epoch, primal)

    def compute_primal(self) -> float:
        """Compute J for the solver's candidates; return the least J."""
        least = math.inf
        for w in self.run.candidates():
            # A run on any other kind of problem computes J itself.
            assert isinstance(self._problem, SummableProblem)
            bound = primal_bound(self._problem, w, self._options.team)
            self.best.offer_primal(w, bound)
            least = min(least, bound.value)
        return least

    def _compute_dual(self) -> None:
        point = self.run.dual()
        if point is not None:
            self.best.offer_dual(point)

    def _may_be_met(self, epoch: Epoch) -> bool:
        dual = max(self.best.dual.bound.value, epoch.dual_estimate or 0.0)
        if epoch.primal_estimate is None or dual <= 0:
            return False
        guess = self._correction * epoch.primal_estimate
        return guess / dual - 1.0 <= self._solver.f * self.best.target

    def _record(self, epoch: Epoch, primal: float) -> None:
        epochs = epoch.epochs
        if self._epochs_before and len(self.history):
            # Not every solver counts on from its start.
            epochs = max(epochs, self.history[-1].epochs + 1)
        certificate = self.best.certificate()
        self.history.append(
            Record(
                seconds=self.seconds,
                passes=self.passes + 1,
                epochs=epochs,
                margin_errors=_or_nan(epoch.margin_errors),
                updates=_or_nan(epoch.updates),
                free=_or_nan(epoch.free),
                primal=primal,
                primal_estimate=_or_nan(epoch.primal_estimate),
                dual=certificate.dual,
                gap=certificate.gap,
                relative_gap=certificate.relative_gap,
            )
        )

    def progress(self) -> Progress:
        """The argument of callbacks."""
        return Progress(self.history[-1], self._best_w)

    def _best_w(self) -> Vector:
        # A copy, so that a callback cannot change the certified vector.
        w = next(self.run.candidates(), None) if self.best.w is None else self.best.w
        return np.zeros(self._problem.dimension) if w is None else w.copy()

    def result(self, reason: str, *, without_alpha: bool = False) -> Result:
        """The result of training."""
        assert self.best.w is not None
        alpha, warm_start = self.best.dual.alpha, self.run.warm_start()
        if without_alpha:
            alpha = None
            warm_start = warm_start and replace(warm_start, alpha=None)
        return Result(
            w=self.best.w,
            certificate=self.best.certificate(),
            history=self.history,
            reason=reason,
            passes=self.passes,
            epochs=self.history[-1].epochs,
            alpha=alpha,
            solver=self.run.solver_name or self._solver.name,
            response=self.best.dual.response,
            warm_start=warm_start,
            vector=self.best.dual.vector,
        )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
