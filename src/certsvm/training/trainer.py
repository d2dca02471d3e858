"""The parts of a training run, and where it is for a checkpoint."""

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
from certsvm.training.exact_checks import ExactChecks
from certsvm.training.history import History, Record
from certsvm.training.result import Progress, Result


class Trainer:
    """A solver's run with its bounds, exact checks and history.

    ``began`` is the ``time.perf_counter`` at which training began, ``passes`` the number of
    complete passes; both count those before a checkpoint.
    """

    def __init__(
        self, problem: BaseProblem, solver: Solver, options: Options, began: float
    ) -> None:
        self._problem, self._solver, self._options = problem, solver, options
        # The loop has checked that the solver supports this kind of problem.
        self.run: Run = solver.start(cast(Problem, problem), options)
        self.best = BestBounds(problem, options.target, keep_vector=options.keep_vector)
        self.checks = ExactChecks(problem, solver, self.run, self.best, options.team)
        self.history = History()
        self.passes = 0
        # Of an interrupted run that this one goes on from.
        self._epochs_before = 0
        self._began = began

    @property
    def seconds(self) -> float:
        """Time since training began, including the time before a checkpoint."""
        return time.perf_counter() - self._began

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
        self.passes, self._epochs_before = saved.passes - 1, start.epochs
        self.record(Epoch(start.epochs), self.best.primal.value)

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

    def record(self, epoch: Epoch, primal: float) -> None:
        """Add the pass to the history."""
        self.passes += 1
        epochs = epoch.epochs
        if self._epochs_before and len(self.history):
            # Not every solver counts on from its start.
            epochs = max(epochs, self.history[-1].epochs + 1)
        certificate = self.best.certificate()
        self.history.append(
            Record(
                seconds=self.seconds,
                passes=self.passes,
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
