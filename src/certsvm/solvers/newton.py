"""Newton: a second-order method for few columns or few rows.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by the method of ``schedule``, in the form for rows in memory, with a multiplier per
row. If the loss is the squared hinge, J itself is smooth, and there are no multipliers.

A step costs two passes over the rows, the Gram matrix of the free support vectors, and the solution
of a system as large as the number of columns. With fewer rows than columns, the system is as large
as the number of free support vectors, and the products of the rows with each other are computed
once (``directions``). The number of steps grows slowly with C and with the accuracy.
The run keeps the products of w with all rows, so each step gives J, and the slope at any point
along a direction costs no pass.

If there are many rows, the run begins on a random sample, which may begin on a smaller sample.

``smoothed_newton`` is the form for streams, which stores nothing per row.

Given:      C, s, the rows; at most ``max_size`` columns, or at most as many rows.
Result:     w, and alpha(w).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates import dual
from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import DualPoint, dual_bound
from certsvm.certificates.primal import Products
from certsvm.certificates.rounding import Bound, length
from certsvm.kernels.losses import BOTH_LOSSES, response_slope, smoothing_centre
from certsvm.kernels.rows import Vector
from certsvm.problem.base import SummableProblem
from certsvm.problem.problems import Problem
from certsvm.solvers import directions, schedule, smoothing
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.dual_coordinates import starting_alpha
from certsvm.solvers.schedule import Move, Schedule
from certsvm.solvers.smoothed_newton import SmoothedNewton

# If alpha changed on at most this share of the rows, sum_k alpha_k y_k is updated, not recomputed.
_FEW_CHANGES = 0.3
# Operations per row of what is shared among threads.
_PER_ROW = 10
# The run ends if the gap is closed but for rounding and has not halved in so many steps.
_MOST_IDLE = 30


@dataclass(frozen=True)
class Newton(Solver):
    """Second-order method for few columns or few rows.

    Parameters
    ----------
    max_size : int, default=5000
        The largest size of the systems to solve: raise an error if there are more columns, and more
        rows, too. The memory grows with the square of the size, the time of a step with its cube.
    samples : bool, default=True
        Whether to begin on samples of the rows. Steps on samples do not count as passes, and limits
        are checked only after them.

    Examples
    --------
    >>> Newton().name
    'newton'
    """

    name: ClassVar[str] = "newton"
    warm_starts_from_alpha: ClassVar[bool] = True
    problem_type: ClassVar[type[Any]] = SummableProblem
    losses: ClassVar = BOTH_LOSSES
    frees_intercept: ClassVar[bool] = True
    ranges: ClassVar = {"max_size": "> 0"}

    max_size: int = 5000
    samples: bool = True

    def start(self, problem: SummableProblem, options: Options) -> Run:
        """Begin a run; on a stream, a run of ``SmoothedNewton``."""
        if not isinstance(problem, Problem):
            return SmoothedNewton(self.max_size, self.samples).start(problem, options)
        size = min(problem.n_rows, problem.dimension)
        directions.require_small_systems(problem, size, self.max_size, self)
        return NewtonRun(problem, options, samples=self.samples)


class NewtonRun(Run):
    """The second-order method on one problem."""

    computes_primal = True

    def __init__(self, problem: Problem, options: Options, *, samples: bool = True) -> None:
        self._problem, self._options, self._team = problem, options, options.team
        self.best = BestValues()
        self._steps = 0
        # The gap when it last halved, and the number of steps since.
        self._gap, self._idle = math.inf, 0
        start, rules = options.start, schedule.rules_for(problem.loss, schedule.MEMORY)
        w, self._alpha_hat = options.first_w(problem), np.zeros(problem.n_rows)
        self._schedule = Schedule(rules)
        if start is not None:
            self._alpha_hat = starting_alpha(problem, start)
            self._schedule = Schedule.warm(
                rules, start.smoothing, smoothing=False, same=options.resumed
            )
        elif samples and (run := run_on_sample(problem, options)) is not None:
            w, self._schedule = run.w, run._schedule.on_all_rows(run._filled)
        if self._schedule.smoothing:
            self._alpha_hat = smoothing_centre(problem.loss, problem.C, problem.weights)
        # Arrays with an entry per row are reused: allocating them costs as much as filling them.
        self._rows = np.empty(problem.rows.n_rows, dtype=np.int64)
        self._unclipped = np.empty(problem.rows.n_rows)
        # alpha(w), and its last change; the dual point of alpha, if it is known.
        self._alpha, self._change = np.zeros((2, problem.rows.n_rows))
        self._summed: DualPoint | None = None
        # A dual point from between two steps, if it is the best so far.
        self._between: DualPoint | None = None
        self._products = Products(problem, w, self._team)
        self._along = self._products.copy()
        self._evaluate()
        self._complete = True

    @property
    def w(self) -> Vector:
        """The weight vector."""
        return self._products.w

    @property
    def sigma(self) -> float:
        """The slope of alpha as a function of the margin."""
        return float(self._schedule.sigma * self._problem.C)

    @property
    def _filled(self) -> float:
        """sum_k alpha_k / (C sum_k s_k)."""
        return float(self._point.alpha_sum / (self._problem.C * self._problem.weight_sum))

    def _evaluate(self) -> None:
        """Compute alpha(w), its dual point and J(w) from w and its products."""
        problem, sigma = self._problem, self.sigma
        # Until the point is known, alpha and the last point do not belong together.
        before, self._summed = self._summed, None

        def alpha_in(first: int, last: int) -> tuple[int, NDArray[np.int64]]:
            part = slice(first, last)
            changes, n_free = smoothing.smoothed_alpha(
                problem.loss, self._products.values[part], problem.weights[part],
                self._alpha_hat[part], sigma, problem.C, self._unclipped[part],
                self._alpha[part], self._change[part], self._rows[part],
            )  # fmt: skip
            return changes, first + self._rows[first : first + n_free]

        changes, free = zip(*self._share(alpha_in), strict=True)
        self._free = free[0] if len(free) == 1 else np.concatenate(free)
        self._sum_up(before, sum(changes))
        self._primal = self._products.primal_bound(self._team)
        self.best.offer(self._primal.value, dual_bound(self._point)[0].value)
        if schedule.too_rounded(self._primal.rounding, self.best):
            self._products.compute(self._team)
            self._primal = self._products.primal_bound(self._team)
        self._answer = self.w, self._primal
        target, slack = self._options.target, self._products.slack
        factor = schedule.lengthening(self._primal, self.best, target, slack)
        if factor is not None:
            longer = self._products.copy()
            longer.mix(factor, 0.0, self._along)
            bound = longer.primal_bound(self._team)
            if bound.high < self._primal.high:
                self._answer = longer.w, bound

    def _sum_up(self, before: DualPoint | None, changes: int) -> None:
        """Compute the dual point of alpha and the gradient.

        The point is updated from the one ``before`` if alpha changed on few rows.
        """
        problem, keep_alpha = self._problem, self._options.keep_alpha
        if problem.free_intercept:
            sums = dual.dual_sums(problem, self._alpha, self._team, balanced=True)
            balanced = dual.balancing(problem, self._alpha)
            self._point = sums.point("multipliers", balanced if keep_alpha else None)
            self._gradient = directions.gradient_at(problem, self.w, sums.w)
            return
        few = changes <= _FEW_CHANGES * problem.m
        rounding = before.w_rounding * length(before.w) if before else math.inf
        if before and few and not schedule.too_rounded(rounding, self.best):
            point = dual.moved_point(problem, before, self._change, self._alpha, self._team)
        else:
            point = dual.dual_point(problem, self._alpha, "multipliers", self._team)
        self._summed = point
        # The next step overwrites alpha, so the point returns a copy.
        self._point = replace(point, alpha=self._alpha.copy if keep_alpha else None)
        self._gradient = self.w - point.w

    def epoch(self) -> Epoch:
        """Make one Newton step, on a new smooth problem if the last one is solved."""
        problem, team = self._problem, self._team
        self._steps += 1
        self._complete = False
        self._between = None
        square = directions.squared_gradient(problem, self.w, self._gradient)
        move = self._schedule.judge(square, self.best, filled=self._filled)
        if move is not Move.STEP:
            self._begin_problem(move)
        free, w, gradient = self._free, self.w, self._gradient
        weights = response_slope(problem.loss, self.sigma, problem.C) * problem.weights[free]
        if problem.n_rows < problem.dimension:
            direction = directions.direction_from_rows(problem, free, weights, w, gradient, team)
        else:
            G = directions.gram(problem, free, weights, team)
            direction = directions.newton_direction(problem, G, w, gradient, team)
        self._along.w = direction
        self._along.compute(team)
        if problem.m < self._along.values.size:
            self._along.values[problem.signed_weights == 0.0] = 0.0
        step = self._step_along()
        self._products.mix(1.0, step, self._along)
        self._schedule.note_step(step)
        self._evaluate()
        self._complete = True
        return Epoch(
            epochs=self._steps,
            free=int(free.size),
            primal_estimate=self._primal.value,
            finished=self._is_at_the_limit(),
        )

    def _is_at_the_limit(self) -> bool:
        """Whether the gap is closed but for rounding, and does not shrink any more."""
        self._idle += 1
        if self.best.gap < 0.5 * self._gap:
            self._gap, self._idle = self.best.gap, 0
        rounding = self._answer[1].rounding + dual_bound(self._point)[0].rounding
        closed = self.best.gap <= max(self._options.target * self.best.dual, rounding)
        return closed and self._idle >= _MOST_IDLE

    def _begin_problem(self, move: Move) -> None:
        """Begin the next smooth problem at the current w."""
        if move is Move.FROM_ZERO:
            self._alpha_hat[:] = 0.0
        elif move is Move.MULTIPLIERS:
            self._alpha_hat[:] = self._alpha
        dual = self.best.dual
        self._evaluate()
        if self.best.dual > dual:
            # The next step may lead to a worse alpha.
            alpha = self._point.alpha
            self._between = replace(self._point, alpha=None if alpha is None else alpha().copy)

    def _share(self, task: Callable[[int, int], Any]) -> list[Any]:
        """Share a task on rows among threads.

        Tasks pass slices to kernels: a loop over a whole array is vectorised, a loop from a given
        first to a given last element is not.
        """
        n_rows = self._problem.n_rows
        return self._team.share(task, n_rows, _PER_ROW * n_rows)

    def _step_along(self) -> float:
        """The length of the step, given the products of the rows with the direction."""
        problem, along, sigma = self._problem, self._along, self.sigma

        def falls(t: float) -> float:
            def sum_of(first: int, last: int) -> float:
                part = slice(first, last)
                return smoothing.clipped_sum(
                    problem.loss, self._unclipped[part], problem.weights[part], sigma, problem.C,
                    along.values[part], t,
                )  # fmt: skip

            return float(sum(self._share(sum_of)))

        return smoothing.minimum_along(problem, self.w, along.w, falls)

    def candidates(self) -> Iterator[Vector]:
        """The current w."""
        yield self.w

    def primal(self) -> tuple[Vector, Bound] | None:
        """The vector w and J(w), after a complete step."""
        return self._answer if self._complete else None

    def dual(self) -> DualPoint | None:
        """The point alpha(w), or the one from before the step if that is better."""
        if not self._complete:
            return None
        return max(self._between or self._point, self._point, key=lambda p: dual_bound(p)[0].low)

    def warm_start(self) -> Start | None:
        """The vector w with the slope of alpha, and alpha if it is kept."""
        if not self._complete:
            return None
        alpha = self._alpha.copy() if self._options.keep_alpha else None
        return Start(self.w.copy(), self._steps, alpha, self._schedule.sigma)


def run_on_sample(problem: Problem, options: Options) -> NewtonRun | None:
    """A run near the optimum on a sample of the rows, or None if there is no useful sample."""
    size = schedule.sample_size(problem.m, problem.rows.dimension)
    if size is None:
        return None
    which = np.sort(options.rng.choice(problem.active, size, replace=False))
    weight_share = float(problem.weights[which].sum()) / problem.weight_sum
    one_sided = problem.free_intercept and np.unique(problem.labels[which]).size < 2
    if one_sided or not schedule.has_enough_weight(weight_share, size, problem.m):
        return None
    run = NewtonRun(problem.sample(which), replace(options, start=None, keep_alpha=False))
    for _ in range(schedule.SAMPLE_STEPS):
        if run.best.relative_gap <= schedule.SAMPLE_GAP:
            break
        run.epoch()
    return run
