"""Exact checks: when J is computed over all rows."""

from __future__ import annotations

import math

from certsvm.certificates.best import BestBounds
from certsvm.certificates.primal import primal_bound
from certsvm.parallel import Team
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.solvers.base import Epoch, Run, Solver


class ExactChecks:
    """The schedule of exact computations of J.

    J costs a pass over all rows, so it is computed when it may end training: when the solver's
    estimate of J, compared with the dual bound, is within f times the target. The estimate is
    multiplied by a correction, the ratio of J to the estimate at the last exact check. J is also
    computed at geometrically spaced passes, which keep the correction up to date, and an answer at
    hand in case training is interrupted.

    Runs that need the products with all rows anyway compute J themselves.
    """

    _SPACING = 1.5

    def __init__(
        self, problem: BaseProblem, solver: Solver, run: Run, best: BestBounds, team: Team
    ) -> None:
        self._problem = problem
        self._solver = solver
        self._run = run
        self._best = best
        self._team = team
        self._correction = 1.0
        self._next_scheduled = 1

    def after(self, passes: int, epoch: Epoch, *, last: bool) -> float:
        """Compute J if the schedule says so; return the least J of this pass, or NaN."""
        if epoch.dual_estimate is None or (last and self._run.computes_primal):
            self._take_dual()
        if self._run.computes_primal:
            return self._of_run(last=last)
        if not (last or passes >= self._next_scheduled or self._may_be_met(epoch)):
            return math.nan
        if epoch.dual_estimate is not None:
            self._take_dual()
        primal = self.now()
        self._next_scheduled = max(passes + 1, math.ceil(self._SPACING * passes))
        if epoch.primal_estimate:
            correction = primal / epoch.primal_estimate
            if 0.0 <= correction < math.inf:
                self._correction = correction
        return primal

    def now(self) -> float:
        """Compute J for the solver's candidates; return the least J."""
        least = math.inf
        for w in self._run.candidates():
            # A run on any other kind of problem computes J itself.
            assert isinstance(self._problem, SummableProblem)
            bound = primal_bound(self._problem, w, self._team)
            self._best.offer_primal(w, bound)
            least = min(least, bound.value)
        return least

    def _of_run(self, *, last: bool) -> float:
        point = self._run.primal()
        if point is None:
            return self.now() if last else math.nan
        self._best.offer_primal(*point)
        return point[1].value

    def _take_dual(self) -> None:
        point = self._run.dual()
        if point is not None:
            self._best.offer_dual(point)

    def _may_be_met(self, epoch: Epoch) -> bool:
        dual = max(self._best.dual.bound.value, epoch.dual_estimate or 0.0)
        if epoch.primal_estimate is None or dual <= 0:
            return False
        guess = self._correction * epoch.primal_estimate
        return guess / dual - 1.0 <= self._solver.f * self._best.target
