"""Auto: chooses between working sets and Newton by their predicted cost, and may switch once.

The cost of Newton depends on little but the shape of the data and the accuracy. The cost of dual
coordinate descent on working sets also depends on C and on the data, and cannot be known in
advance: it takes from a few passes to thousands. So the run begins with working sets. After each
pass it predicts the remaining visits to rows from the fall of the estimated gap. It switches to
Newton if their cost exceeds that of Newton, or if working sets have already cost twice as much as
Newton would and need at least half as much again. Newton then starts from a sample of the rows, or
from the current alpha if that is good. If even the first three passes of working sets cost more
than Newton does to one per cent, the run begins with Newton. It also begins with Newton from a
given alpha, which is probably near, if the accuracy is high and a step of Newton costs no more than
ten passes.

With n stored values in m rows and d columns, and q the sum over rows of the squared number of
stored values, the costs in nanoseconds (only ratios matter) are

    a visit to a row      2 n / m + 35, plus 125 if rows beyond the caches come in random order
    a step of Newton      1.8 n + 20 m + 0.02 q + 0.02 d^3, plus 200,000

for sparse rows, and 0.5 n / m + 45 and n + 20 m + 0.004 q + 0.02 d^3 for dense ones. Newton takes
12 steps to one per cent, those on a sample included, and 5 for each further digit. From an alpha
that is good it takes 5 steps, and 5 for each digit to be gained. If the loss is smooth, these
numbers are smaller.

With fewer rows than columns, Newton's systems are as large as the number of free rows:

    a step of Newton      1.8 n (1.0 n) + 20 m + 10 d + m^2 + 0.006 m^3, plus 200,000
    once                  the products of the rows with each other: 4 m^2, plus half the sum over
                          columns of the squared number of stored values, or 0.02 m^2 d if dense

The costs are rounded averages over several data sets on one machine and one thread, so the choice
is not always best. Newton is out of the question if neither rows nor columns are few, or its
matrices do not fit in memory.

If a step of Newton takes a fraction of a millisecond, so does the bookkeeping of a pass. Such small
problems are solved to machine precision by Newton, in one pass.

On a stream, the smoothed form of Newton's method takes a few passes if there are many more rows
than columns, so that the first rows are a good sample. Auto begins with it if there are 1000 times
as many, and with ``block_dcd`` otherwise. Either may stall: Newton if the classes are separable or
columns differ much in scale, coordinate descent at large C. If the gap has not halved in six
passes, the other one goes on from there, and then has twice as many passes for that, and so on.
Above 3000 columns, or without room for the matrices of Newton, there is block DCD only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import DualPoint
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import BOTH_LOSSES
from certsvm.kernels.rows import CsrRows, Vector
from certsvm.problem.base import BaseProblem, PartedProblem, SummableProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.resources import available_memory, single_threaded_blas
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.block_dcd import BlockDCD, BlockDCDRun, cache_room
from certsvm.solvers.newton import Newton, NewtonRun
from certsvm.solvers.order import Order
from certsvm.solvers.smoothed_newton import SmoothedNewton, SmoothedNewtonRun
from certsvm.solvers.working_set import WorkingSet, WorkingSetRun

# The largest size of Newton's systems, and the largest number of columns on a stream.
_LARGEST_SIZE, _MOST_COLUMNS_OF_STREAM = 5000, 3000
# On a stream, Newton begins with so many rows per column. The passes in which the gap must halve.
_ROWS_PER_COLUMN, _PATIENT = 1000, 6
# The number of square matrices of that size that Newton keeps at the same time. Smaller ones than
# so many bytes always have room.
_MATRICES, _ALWAYS_ROOM = 3, 1 << 26
# The fixed cost of a step of Newton, in nanoseconds, and the cost of a step without it up to which
# a problem is small. The steps of its first pass: until this relative gap, and at most so many.
_OVERHEAD, _SMALL, _SOLVED, _MOST_STEPS = 200_000.0, 120_000, 1e-13, 100
# Below this relative gap, alpha is a better start than a sample.
_GOOD_ALPHA = 0.05
# The first estimates of working sets, after so few passes, mean little. Later ones promise too few
# visits by about this factor.
_LEAST_PASSES, _OPTIMISM = 3, 2.0
# The steps of Newton to one per cent, or before the gap of a good alpha falls, and those for each
# digit; and the number of passes of working sets that must cost more for Newton to begin.
_STEPS, _STEPS_IF_SMOOTH = (12.0, 5.0, 5.0, 3.0), (4.0, 2.0, 1.0, 4.5)
# From a given alpha to this accuracy or better, Newton begins if its step costs at most so many
# passes over the rows.
_ACCURATE, _CHEAP_STEP = 1e-4, 10.0


@dataclass(frozen=True)
class Auto(Solver):
    """Chooses between ``WorkingSet`` and ``Newton`` by their predicted cost, and may switch once.

    Parameters
    ----------
    shuffled : bool, default=None
        As for ``WorkingSet``.

    Examples
    --------
    >>> Auto().name
    'auto'
    """

    name: ClassVar[str] = "auto"
    warm_starts_from_alpha: ClassVar[bool] = True
    losses: ClassVar = BOTH_LOSSES
    frees_intercept: ClassVar[bool] = True
    problem_type: ClassVar[type[Any]] = SummableProblem

    shuffled: bool | None = None

    def start(self, problem: PartedProblem, options: Options) -> Run:
        """Begin a run."""
        if isinstance(problem, Problem):
            return AutoRun(problem, options, self.shuffled)
        d, first = problem.dimension, self.for_stream(problem.n_rows, problem.dimension)
        # A witness takes alpha if block DCD takes over from Newton, whose witness needs none.
        keeps = replace(options, keep_alpha=options.keep_alpha or first.name != BlockDCD.name)
        matrices = 8 * d**2 * (2 + options.team.n_jobs)
        if d > _MOST_COLUMNS_OF_STREAM or matrices > cache_room(problem):
            return BlockDCD().start(problem, keeps)
        return StreamRun(problem, first, options, keeps, BlockDCD())

    def saves_alpha(self, problem: BaseProblem) -> bool:
        """Unless it begins with Newton on a stream."""
        first = self.for_stream(problem.n_rows, problem.dimension)
        streamed = isinstance(problem, PartedProblem) and first.name == BlockDCD.name
        return streamed or isinstance(problem, Problem)

    def for_stream(self, n_rows: int, dimension: int) -> SmoothedNewton | BlockDCD:
        """The solver to begin with on a stream."""
        few = dimension <= _MOST_COLUMNS_OF_STREAM and _ROWS_PER_COLUMN * dimension <= n_rows
        return SmoothedNewton() if few else BlockDCD()


class RelayRun(Run):
    """A run of one solver after the other; ``_run`` is the one at work."""

    computes_primal = True
    _run: Run

    def candidates(self) -> Iterator[Vector]:
        """The candidates of the run at work."""
        yield from self._run.candidates()

    def primal(self) -> tuple[Vector, Bound] | None:
        """The primal value of the run at work."""
        return self._run.primal()

    def dual(self) -> DualPoint | None:
        """The dual point of the run at work."""
        return self._run.dual()

    def warm_start(self) -> Start | None:
        """The warm start of the run at work."""
        return self._run.warm_start()


class StreamRun(RelayRun):
    """Newton or a dual method, on parts; if the gap does not fall, the other one goes on.

    ``first`` is the one to begin with, ``dual`` the dual method: block DCD on a stream.
    """

    def __init__(
        self, problem: SummableProblem, first: Solver, of_newton: Options, of_dual: Options,
        dual: Solver,
    ) -> None:  # fmt: skip
        self._problem, self._of_newton, self._of_dual = problem, of_newton, of_dual
        self._dual_method = dual
        self._dual_run: Run | None = None
        if of_newton.start is not None and of_newton.resumed:
            # The one that was at work.
            first = dual if of_newton.start.smoothing is None else SmoothedNewton()
        options = of_newton if isinstance(first, SmoothedNewton) else of_dual
        self._run = first.start(problem, options)
        self.solver_name = self._run.solver_name
        # The gap when it last halved, the passes since, and the most of them.
        self._best, self._gap, self._idle, self._patience = BestValues(), math.inf, 0, _PATIENT
        self._passes, self._ended = 0, False

    def epoch(self) -> Epoch:
        """One pass of the run that is at work."""
        newton_works = isinstance(self._run, SmoothedNewtonRun)
        if self._idle >= self._patience and (newton_works or not self._ended):
            self._switch()
        epoch = self._run.epoch()
        self._passes += 1
        self._idle += 1
        self._best.offer(self._run.best.primal, self._run.best.dual)
        if self._best.relative_gap < 0.5 * self._gap:
            self._gap, self._idle = self._best.relative_gap, 0
        if epoch.finished:
            self._ended, self._idle = True, self._patience
        return replace(epoch, epochs=self._passes, finished=False)

    def _switch(self) -> None:
        """Let the other method go on from here, with more patience."""
        problem, run = self._problem, self._run
        self._idle, self._patience = 0, 2 * self._patience
        if isinstance(run, SmoothedNewtonRun):
            then = self._dual_method
            if self._dual_run is not None and self._dual_run.best.dual >= run.best.dual:
                self._run = self._dual_run
            else:
                w, sigma = run.best_response
                start = Start(w, smoothing=sigma / problem.C)
                self._run = then.start(problem, replace(self._of_dual, start=start))
        else:
            if isinstance(run, BlockDCDRun):
                run.drop_cache()
            start, then = Start(next(run.candidates()).copy()), SmoothedNewton()
            options = replace(self._of_newton, start=start, resumed=False)
            self._run, self._dual_run = then.start(problem, options), run
        if "then" not in self.solver_name:
            self.solver_name += f", then {then.name}"


class AutoRun(RelayRun):
    """Working sets, Newton, or one and then the other."""

    def __init__(self, problem: Problem, options: Options, shuffled: bool | None = None) -> None:
        self._problem, self._options, self._passes, rows = problem, options, 0, problem.rows
        self._n_steps = _STEPS_IF_SMOOTH if problem.loss.is_smooth else _STEPS
        self._step, self._once = newton_costs(rows)
        self._is_small = max(self._step, self._once) <= _SMALL
        if not self._is_small:
            order = Order(problem, options.rng, shuffled=shuffled)
            per_value, fixed = (2.0, 35.0) if isinstance(rows.arrays, CsrRows) else (0.5, 45.0)
            self._visit = per_value * rows.n_stored / rows.n_rows + fixed
            self._visit += 0.0 if order.in_order else 125.0
            if self._begins_with_working_sets():
                self.solver_name = WorkingSet.name
                self._run = WorkingSetRun(WorkingSet(), problem, options, order)
                return
        self.solver_name, self._run = Newton.name, NewtonRun(problem, options)

    def _begins_with_working_sets(self) -> bool:
        options, start, one_pass = self._options, self._options.start, self._problem.m * self._visit
        newton = self._newton_cost(0.01)
        if start is not None and math.isfinite(newton):
            newton_was_at_work = options.resumed and start.smoothing is not None
            accurate = start.alpha is not None and options.target <= _ACCURATE
            if newton_was_at_work or (accurate and self._step <= _CHEAP_STEP * one_pass):
                return False
        return bool(self._n_steps[3] * one_pass <= newton)

    def epoch(self) -> Epoch:
        """One pass of working sets, or one step of Newton; the first solves a small problem."""
        run = self._run
        if isinstance(run, WorkingSetRun) and self._newton_is_cheaper(run):
            self.solver_name = f"{WorkingSet.name}, then {Newton.name}"
            w = next(run.candidates()).copy()
            start = Start(w, alpha=run.alpha) if run.gap <= _GOOD_ALPHA else None
            options = replace(self._options, start=start, resumed=False)
            self._run = NewtonRun(self._problem, options)
        epoch = self._run.epoch()
        self._passes += 1
        if self._is_small and self._passes == 1:
            with single_threaded_blas():
                for _ in range(_MOST_STEPS):
                    if self._run.best.relative_gap <= _SOLVED:
                        break
                    epoch = self._run.epoch()
        return replace(epoch, epochs=self._passes)

    def _newton_is_cheaper(self, run: WorkingSetRun) -> bool:
        if self._passes < _LEAST_PASSES:
            return False
        newton = self._newton_cost(self._options.target, run.gap)
        left, spent = run.outlook() * self._visit, run.visited * self._visit
        # However much was spent, there is no point in switching shortly before the end.
        return _OPTIMISM * left > newton or (spent > 2.0 * newton and left > 0.5 * newton)

    def _newton_cost(self, target: float, gap: float = math.inf) -> float:
        """The cost of Newton to the accuracy ``target``; infinite without room for its systems.

        ``gap`` is the relative gap of the alpha to start from.
        """
        size = min(self._problem.n_rows, self._problem.dimension)
        needed = 8 * _MATRICES * size**2
        if needed > _ALWAYS_ROOM and needed > available_memory():
            return math.inf
        to_one_per_cent, from_alpha, per_digit, _ = self._n_steps
        n_steps, gap = (from_alpha, gap) if gap <= _GOOD_ALPHA else (to_one_per_cent, 0.01)
        # Beyond 1e-10 there are no digits to be gained.
        n_steps += per_digit * max(math.log10(max(gap, 1e-10) / max(target, 1e-10)), 0.0)
        return n_steps * (self._step + _OVERHEAD) + self._once


def newton_costs(rows: Rows) -> tuple[float, float]:
    """The cost of a step of Newton without the fixed cost, and of what is computed only once."""
    m, d = float(rows.n_rows), float(rows.dimension)
    if min(m, d) > _LARGEST_SIZE:
        # Of large systems, not even the cost is computed, which takes a pass over the columns.
        return math.inf, 0.0
    per_value, per_pair = (1.8, 0.02) if isinstance(rows.arrays, CsrRows) else (1.0, 0.004)
    step = per_value * rows.n_stored + 20.0 * m + 10.0 * d
    if m >= d:
        return step + per_pair * rows.squared_lengths + 0.02 * d**3, 0.0
    once = 4.0 * m**2 + min(0.02 * m**2 * rows.n_columns, 0.5 * rows.squared_column_lengths)
    return step + m**2 + 0.006 * m**3, once
