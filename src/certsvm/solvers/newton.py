"""Newton: a second-order method for few columns or few rows.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by the method of ``schedule``, in the form for rows in memory, with a multiplier per row. If the
loss is the squared hinge, J itself is smooth, and there are no multipliers.

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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import DualPoint, balancing, dual_bound, dual_sums
from certsvm.certificates.primal import Products
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import BOTH_LOSSES, response_slope, smoothing_centre
from certsvm.kernels.rows import Vector
from certsvm.problem.base import SummableProblem
from certsvm.problem.problems import Problem
from certsvm.solvers import directions, schedule, smoothing
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.dual_coordinates import starting_alpha
from certsvm.solvers.schedule import Move, Schedule
from certsvm.solvers.smoothed_newton import SmoothedNewton


@dataclass(frozen=True)
class Newton(Solver, max_size="> 0"):
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
    _best_point: DualPoint

    def __init__(self, problem: Problem, options: Options, *, samples: bool = True) -> None:
        self._problem, self._options = problem, options
        # The last is sum_k alpha_k / (C sum_k s_k).
        self.best, self._steps, self._filled = BestValues(), 0, 0.0
        start, rules = options.start, schedule.rules_for(problem.loss, schedule.MEMORY)
        w, self._alpha_hat = options.first_w(problem), np.zeros(problem.n_rows)
        self._schedule = Schedule(rules)
        if start is not None:
            self._alpha_hat = starting_alpha(problem, start)
            self._schedule = Schedule.warm(
                rules, start.smoothing, smoothing=False, same=options.resumed
            )
        elif samples and (sample := from_sample(problem, options)) is not None:
            w, self._schedule = sample
        if self._schedule.smoothing:
            self._alpha_hat = smoothing_centre(problem.loss, problem.C, problem.weights)
        # Arrays with an entry per row are reused: allocating them costs as much as filling them.
        self._rows = np.empty(problem.n_rows, dtype=np.int64)
        self._unclipped, self._alpha = np.empty((2, problem.n_rows))
        self._w, self._products = w, Products(problem, w, options.team)
        self._along = self._products.copy()
        # The best alpha(w) so far and its bound: that after a step need not be the best, since a
        # new problem has another alpha at the same w.
        self._best_dual = Bound(-math.inf, 0.0)
        self._compute_alpha()
        self._compute_primal()

    @property
    def sigma(self) -> float:
        """The slope of alpha as a function of the margin."""
        return float(self._schedule.sigma * self._problem.C)

    def _compute_alpha(self) -> None:
        """Compute alpha(w), its dual point and the gradient from the products of w."""
        problem, options, products = self._problem, self._options, self._products
        n_free = smoothing.smoothed_alpha(
            problem.loss, products.values, problem.weights, self._alpha_hat, self.sigma,
            problem.C, self._unclipped, self._alpha, self._rows,
        )  # fmt: skip
        self._free = self._rows[:n_free]
        sums = dual_sums(problem, self._alpha, options.team, balanced=problem.free_intercept)
        self._gradient = directions.gradient_at(problem, products.w, sums.w)
        # The next step overwrites alpha.
        kept = balancing(problem, self._alpha.copy()) if options.keep_alpha else None
        point = sums.point("multipliers", kept)
        self._filled = point.alpha_sum / (problem.C * problem.weight_sum)
        bound = dual_bound(point)[0]
        if not bound.low <= self._best_dual.low:
            self._best_dual, self._best_point = bound, point
        self.best.offer(dual=bound.value)

    def _compute_primal(self) -> None:
        """Compute J(w), or J at a slightly longer w, from the products of w."""
        options, products = self._options, self._products
        primal = products.primal_bound(options.team)
        self.best.offer(primal.value)
        if schedule.too_rounded(primal.rounding, self.best):
            products.compute(options.team)
            primal = products.primal_bound(options.team)
        self._answer = products.w, primal
        factor = schedule.lengthening(primal, self.best, options.target, products.slack)
        if factor is not None:
            longer = products.copy()
            longer.mix(factor, 0.0, self._along)
            of_longer = longer.primal_bound(options.team)
            if of_longer.high < primal.high:
                self._answer = longer.w, of_longer

    def epoch(self) -> Epoch:
        """Make one Newton step, on a new smooth problem if the last one is solved."""
        problem, options, loss = self._problem, self._options, self._problem.loss
        products, along, weights = self._products, self._along, problem.weights
        self._steps += 1
        self._evaluated = self._dual_point = None
        square = directions.squared_gradient(problem, products.w, self._gradient)
        rounding = self._answer[1].rounding + self._best_dual.rounding
        move = self._schedule.judge(
            square, self.best, filled=self._filled,
            closed=max(options.target * self.best.dual, rounding),
        )  # fmt: skip
        if move in (Move.FROM_ZERO, Move.MULTIPLIERS):
            self._alpha_hat[:] = self._alpha if move is Move.MULTIPLIERS else 0.0
        if move is not Move.STEP:
            self._compute_alpha()
        free, w, gradient = self._free, products.w, self._gradient
        slopes = response_slope(loss, self.sigma, problem.C) * weights[free]
        along.w = directions.direction(problem, free, slopes, w, gradient, options.team)
        along.compute(options.team)
        arguments = loss, self._unclipped, weights, self.sigma, problem.C, along.values
        falls = partial(smoothing.clipped_sum, *arguments)
        step = smoothing.minimum_along(problem, w, along.w, falls)
        self._schedule.note_step(step)
        products.mix(1.0, step, along)
        self._compute_alpha()
        self._compute_primal()
        point, self._evaluated = self._best_point, self._answer
        self._dual_point, self._w = lambda: point, self._answer[0]
        return Epoch(
            epochs=self._steps, free=free.size, primal_estimate=self._answer[1].value,
            finished=self._schedule.finished,
        )  # fmt: skip

    def warm_start(self) -> Start | None:
        """The vector w with the slope of alpha, and alpha if it is kept."""
        if self._dual_point is None:
            return None
        alpha = self._alpha.copy() if self._options.keep_alpha else None
        return Start(self._products.w.copy(), self._steps, alpha, self._schedule.sigma)


def from_sample(problem: Problem, options: Options) -> tuple[Vector, Schedule] | None:
    """Where to begin, found on a sample of the rows; None if there is no useful sample."""
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
    return run._products.w, run._schedule.on_all_rows(run._filled)
