"""The parts of a training run, and their state in a checkpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from certsvm.certificates.best import BestBounds
from certsvm.certificates.certificate import Certificate
from certsvm.certificates.primal import primal_bound
from certsvm.certificates.rounding import Bound
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver
from certsvm.storage.fields import generator, nested, number, text
from certsvm.storage.state import Scope, State, Stateful
from certsvm.training.exact_checks import ExactChecks
from certsvm.training.history import History, Record
from certsvm.training.result import SOLVER_FINISHED, TARGET_MET, Progress, Result


class Trainer(Stateful):
    """A solver's run with its bounds, exact checks and history.

    ``began`` is the ``time.perf_counter`` at which training began. ``finished`` is the reason why
    training has ended, if it would end with any other limits, too. ``between_passes`` says whether
    the state is that after a complete pass.
    """

    STATE = State(
        seconds=number(low=0.0),
        finished=text("", TARGET_MET, SOLVER_FINISHED),
        rng=generator(),
        run=nested(),
        best=nested(),
        checks=nested(),
        history=nested(),
    )

    def __init__(
        self, problem: BaseProblem, solver: Solver, options: Options, began: float
    ) -> None:
        self._problem, self._solver, self._options = problem, solver, options
        self._rng = options.rng
        # The loop has checked that the solver supports this kind of problem.
        self.run: Run = solver.start(cast(Problem, problem), options)
        self.best = BestBounds(problem, options.target, keep_vector=options.keep_vector)
        self.checks = ExactChecks(problem, solver, self.run, self.best, options.team)
        self.history = History()
        self.finished = ""
        self.between_passes = True
        self._began, self._seconds_before = began, 0.0

    @property
    def seconds(self) -> float:
        """Time since training began, including the time before a checkpoint."""
        return self._seconds_before + time.perf_counter() - self._began

    @seconds.setter
    def seconds(self, before: float) -> None:
        self._seconds_before = before

    @property
    def passes(self) -> int:
        """Number of complete passes."""
        return len(self.history)

    def epoch(self) -> Epoch:
        """Make a pass of the solver, which ``record`` completes."""
        self.between_passes = False
        return self.run.epoch()

    def record(self, epoch: Epoch, primal: float) -> None:
        """Add the pass to the history."""
        certificate = self.best.certificate()
        self.history.append(
            Record(
                seconds=self.seconds,
                passes=self.passes + 1,
                epochs=epoch.epochs,
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
        self.between_passes = True

    def progress(self) -> Progress:
        """The argument of callbacks."""
        return Progress(self.history[-1], self._best_w)

    def _best_w(self) -> Vector:
        # A copy, so that a callback cannot change the certified vector.
        w = next(self.run.candidates(), None) if self.best.w is None else self.best.w
        return np.zeros(self._problem.dimension) if w is None else w.copy()

    def result(self, reason: str) -> Result:
        """The result of training."""
        assert self.best.w is not None
        return Result(
            w=self.best.w,
            certificate=self.best.certificate(),
            history=self.history,
            reason=reason,
            passes=self.passes,
            epochs=self.history[-1].epochs,
            alpha=self.best.dual.alpha,
            solver=self.run.solver_name or self._solver.name,
            response=self.best.dual.response,
            warm_start=self.run.warm_start(),
            vector=self.best.dual.vector,
        )

    def require_consistent(self, state: Mapping[str, Any], scope: Scope) -> None:
        """Raise unless J at the best w is as stated and not below the dual bound.

        J is recomputed in one pass; the two values agree if their rounding allowances overlap.
        Without a w, the dual bound is compared with J at zero. If training has ended because the
        target was met, the bounds must meet it.
        """
        best, dual = state["best"]["best"], Bound(**state["best"]["dual"]["bound"])
        claimed, primal = Bound(**best["bound"]), self.best.at_zero
        if best["w"] is not None:
            assert isinstance(self._problem, SummableProblem)
            primal = primal_bound(self._problem, best["w"].copy(), self._options.team)
            if not (primal.low <= claimed.high and claimed.low <= primal.high):
                scope.fail(
                    f"says that J is {claimed.value:.10g} at the best weight vector, where it is "
                    f"{primal.value:.10g}: it is of other data, or was changed"
                )
        if not dual.low <= primal.high:
            scope.fail(f"has a dual bound of {dual.value:.10g}, above J = {primal.value:.10g}")
        certificate = Certificate(
            primal=claimed.value,
            dual=dual.value,
            target=self.best.target,
            primal_rounding=claimed.rounding,
            dual_rounding=dual.rounding,
        )
        if state["finished"] == TARGET_MET and not certificate.met:
            scope.fail("says that the target is met, which its bounds do not prove")


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
