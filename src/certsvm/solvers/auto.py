"""Auto: working sets, or Newton, by what they are expected to cost.

What Newton costs hardly depends on anything but the shape of the data and the accuracy; what dual
coordinate descent on working sets costs depends on C and on the data in ways that cannot be known
beforehand, from a handful of passes to thousands. So working sets begin, and after each pass
the visits to rows that they still need are predicted from how their guess at the gap has fallen.
When that exceeds what Newton would cost in all, or when twice as much has been spent already and
half as much is still to come, Newton takes over: from a sample of the rows, or from the alpha at
hand if that is good. Where even the three passes that working sets always need cost more than
Newton to one per cent, it is Newton from the beginning.

With n stored values in m rows and d columns, and q the sum of the squares of the rows' lengths,
in nanoseconds (only ratios matter):

    a visit to a row      4 n / m + 30, and 250 more if rows beyond the caches come in random order
    a step of Newton      2 (1.5 n + 5 m) + 20 m + 0.1 q + 0.02 d^3, and 500,000 whatever the size,
                          7 of them to one per cent and 5 more for each further digit

The numbers are times on one machine, rounded, and averages over sets of data that differ; so the
choice is not always the better one.

Problems so small that all this takes less than a few milliseconds are solved by Newton at once, and
to the end: until the gap falls no more, or to machine precision.

On a stream, rows have no numbers of their own: there it is the smoothed form of Newton's method
up to 3000 columns, and SGD-s beyond.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from certsvm.certificates.dual import DualPoint
from certsvm.certificates.rounding import Bound
from certsvm.kernels.rows import Vector
from certsvm.problem.base import SummableProblem
from certsvm.problem.memory import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.newton import Newton, NewtonRun
from certsvm.solvers.sgd_s import SGDs
from certsvm.solvers.shared.order import Order
from certsvm.solvers.smoothed_newton import SmoothedNewton
from certsvm.solvers.working_set import WorkingSet, WorkingSetRun
from certsvm.storage.fields import count, nested, number, text
from certsvm.storage.state import State, Stateful

# The memory for Newton's matrix, in columns.
_MOST_COLUMNS = 5000
# On a stream, where a pass is dear and Newton's passes are few, but each solves a system.
_MOST_COLUMNS_OF_STREAM = 3000
# What a step of Newton costs besides what grows with the data.
_OVERHEAD = 500_000.0
# What a problem may cost per step of Newton, in nanoseconds, to be solved to the end.
_SMALL = 300_000
_MOST_REFINEMENTS, _PATIENCE = 100, 15
# Below this gap, alpha is a better start than a sample.
_GOOD_ALPHA = 0.05
_LEAST_PASSES = 3
# Guesses at the gap fall more slowly later on.
_OPTIMISM = 2.0
_SWITCHED = f"{WorkingSet.name}, then {Newton.name}"


@dataclass(frozen=True)
class Auto(Solver):
    """Dual coordinate descent on working sets, or Newton's method, or the one after the other.

    Parameters
    ----------
    shuffled : bool, default=None
        Passed on to ``WorkingSet``.

    Examples
    --------
    >>> Auto().name
    'auto'
    """

    name: ClassVar[str] = "auto"
    goes_on_from_alpha: ClassVar[bool] = True
    problem_type: ClassVar[type[Any]] = SummableProblem

    shuffled: bool | None = None

    def start(self, problem: SummableProblem, options: Options) -> Run:
        """Begin with the one or the other."""
        if isinstance(problem, Problem):
            return AutoRun(problem, options, self.shuffled)
        solver: Solver = self.for_stream(problem.dimension)
        return solver.start(problem, options)

    def for_stream(self, dimension: int) -> SmoothedNewton | SGDs:
        """What to take on a stream."""
        if dimension <= _MOST_COLUMNS_OF_STREAM:
            return SmoothedNewton()
        return SGDs(shuffled=self.shuffled)


class AutoRun(Run):
    """The one, or the one after the other, on one problem."""

    STATE = State(
        passes=count(),
        refinement=nested(),
        solver_name=text(WorkingSet.name, Newton.name, _SWITCHED),
        run=nested(fresh="_run_to_resume"),
    )

    computes_primal = True

    def __init__(self, problem: Problem, options: Options, shuffled: bool | None = None) -> None:
        self._problem = problem
        self._options = options
        self._passes = 0
        self._refinement = Refinement() if is_small(problem) else None
        self._run: WorkingSetRun | NewtonRun
        self.solver_name = Newton.name
        if self._refinement is None:
            order = Order(problem, options.rng, shuffled=shuffled)
            visits = _LEAST_PASSES * problem.m * visit_cost(problem, in_order=order.in_order)
            if visits <= newton_cost(problem, 0.01):
                self.solver_name = WorkingSet.name
                self._run = WorkingSetRun(WorkingSet(), problem, options, order)
                return
        self._run = self._newton(options)

    def _newton(self, options: Options) -> NewtonRun:
        return Newton(max_columns=_MOST_COLUMNS).start_in_memory(self._problem, options)

    def _run_to_resume(self, values: Mapping[str, Any]) -> WorkingSetRun | NewtonRun:
        if values["solver_name"] == self.solver_name:
            return self._run
        options = replace(self._options, start=None, resumed=True)
        if values["solver_name"] == WorkingSet.name:
            return WorkingSetRun(WorkingSet(), self._problem, options)
        return self._newton(options)

    def epoch(self) -> Epoch:
        """A pass of the one, or a step of the other."""
        if isinstance(self._run, WorkingSetRun) and self._is_time_for_newton(self._run):
            self._turn_to_newton(self._run)
        self._passes += 1
        epoch = replace(self._run.epoch(), epochs=self._passes)
        if self._refinement is not None and isinstance(self._run, NewtonRun):
            epoch = replace(epoch, refining=self._refinement.goes_on(self._run.relative_gap))
        return epoch

    def _is_time_for_newton(self, run: WorkingSetRun) -> bool:
        if self._passes < _LEAST_PASSES:
            # The first guesses mean little.
            return False
        visit = visit_cost(self._problem, in_order=run.in_order)
        newton = newton_cost(self._problem, self._options.target)
        left, spent = run.outlook() * visit, run.visited * visit
        return _OPTIMISM * left > newton or (
            # What was spent is no reason to give up shortly before the end.
            spent > 2.0 * newton and left > 0.5 * newton
        )

    def _turn_to_newton(self, run: WorkingSetRun) -> None:
        start = None
        if run.gap <= _GOOD_ALPHA:
            start = Start(next(run.candidates()).copy(), 1, run.alpha)
        self._run = self._newton(replace(self._options, start=start, resumed=False))
        self.solver_name = _SWITCHED

    def candidates(self) -> Iterator[Vector]:
        """Those of the one at work."""
        yield from self._run.candidates()

    def primal(self) -> tuple[Vector, Bound] | None:
        """That of the one at work."""
        return self._run.primal()

    def dual(self) -> DualPoint | None:
        """That of the one at work."""
        return self._run.dual()

    def warm_start(self) -> Start | None:
        """That of the one at work."""
        return self._run.warm_start()


class Refinement(Stateful):
    """Whether it is worth going on once the target is met."""

    STATE = State(best=number(low=-1.0, infinite=True), since=count(), steps=count())

    def __init__(self) -> None:
        self._best = math.inf
        self._since = 0
        self._steps = 0

    def goes_on(self, gap: float) -> bool:
        """Whether the gap has fallen lately, and can still fall."""
        self._steps += 1
        self._since += 1
        if gap < 0.5 * self._best:
            self._best, self._since = gap, 0
        return gap > 1e-15 and self._since < _PATIENCE and self._steps < _MOST_REFINEMENTS


def visit_cost(problem: Problem, *, in_order: bool) -> float:
    """What a visit of working sets to a row costs, on average."""
    waiting = 0.0 if in_order else 250.0
    return 4.0 * problem.rows.n_stored / problem.rows.n_rows + 30.0 + waiting


def step_cost(problem: Problem) -> float:
    """What a step of Newton costs, as far as it grows with the data."""
    rows = problem.rows
    n, m, d = float(rows.n_stored), float(rows.n_rows), float(rows.dimension)
    return 2.0 * (1.5 * n + 5.0 * m) + 20.0 * m + 0.1 * rows.squared_lengths + 0.02 * d**3


def newton_cost(problem: Problem, target: float) -> float:
    """What all of Newton costs, to the accuracy ``target``; infinite if it is out of question."""
    if problem.rows.dimension > _MOST_COLUMNS:
        return math.inf
    digits = math.log10(0.01 / max(target, 1e-10)) if target < 0.01 else 0.0
    return (7.0 + 5.0 * digits) * (step_cost(problem) + _OVERHEAD)


def is_small(problem: Problem) -> bool:
    """Whether Newton costs next to nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from certsvm.problem.rows import Rows
    >>> is_small(Problem(Rows(np.ones((100, 10))), np.ones(100)))
    True
    >>> is_small(Problem(Rows(np.ones((100_000, 10))), np.ones(100_000)))
    False
    """
    return problem.rows.dimension <= _MOST_COLUMNS and step_cost(problem) <= _SMALL
