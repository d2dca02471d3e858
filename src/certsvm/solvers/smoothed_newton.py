"""Smoothed Newton: a second-order method that stores nothing per row, for streams and clusters.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by the method of ``schedule``, in the form without multipliers: alpha_hat stays in the middle of the
box, and sigma grows as far as the accuracy requires. Since

    alpha_k(w) = clip(C s_k / 2 + sigma s_k (1 - w.y_k), 0, C s_k)

is a function of w and sigma, nothing is stored per row. (For the squared hinge, which is smooth, it
is 2 C s_k max(0, 1 - w.y_k), and sigma plays no part.) One pass gives J and L, the gradient and
the Hessian at w, as sums over the parts of the rows; the memory is that of a square matrix of the
columns. The pair of w and sigma is a complete proof: anyone with the data can check it.

A Newton step leads to the point of the next pass. That pass also gives the slopes along the whole
direction; if the minimum is elsewhere on it, the next pass is there.

When a smooth problem is solved, the next one begins with a step to where its minimum would be if
the same support vectors stayed free, which the same pass gives, too. (A Newton step at the larger
sigma from the same point would use only the few rows that are free there, and mislead.)

The first part of the rows serves as a sample. If the rows are in no particular order, most steps
are made there.

Given:      C, s, the rows in parts; at most ``max_size`` columns.
Result:     w, and sigma, hence alpha.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates import dual
from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import ClassSums, DualPoint, Response, RowSums
from certsvm.certificates.primal import LossSums, losses_of, multiply
from certsvm.certificates.rounding import product_error
from certsvm.kernels.losses import BOTH_LOSSES, Loss, response_slope, smoothing_centre
from certsvm.kernels.vectors import inner
from certsvm.problem.base import SummableProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Vector
from certsvm.resources import Team
from certsvm.solvers import directions, schedule
from certsvm.solvers.base import Epoch, Options, Run, Solver
from certsvm.solvers.schedule import Move, Schedule
from certsvm.solvers.smoothing import STEPS, best_step, clipped_sum, smoothed_alpha

# The first rows are a sample: this share of the rows, within limits per column. With fewer rows per
# column than the last number, it is not worthwhile.
_FIRST_SHARE, _FEWEST_FIRST, _MOST_FIRST, _PER_COLUMN = 1 / 64, 100, 1000, 10
# The run on these ends at this relative gap, or after so many steps.
_FIRST_GAP, _FIRST_STEPS = 0.01, 60


@dataclass(frozen=True)
class SmoothedNewton(Solver, max_size="> 0"):
    """Second-order method for few columns and any number of rows.

    Parameters
    ----------
    max_size : int, default=5000
        The largest size of the systems to solve: raise an error if there are more columns. The
        memory grows with the square of the size, the time of a step with its cube.
    samples : bool, default=True
        Whether to begin on the first part of the rows, if there are more.

    Examples
    --------
    >>> SmoothedNewton().name
    'smoothed-newton'
    """

    name: ClassVar[str] = "smoothed-newton"
    problem_type: ClassVar[type[Any]] = SummableProblem
    losses: ClassVar = BOTH_LOSSES
    frees_intercept: ClassVar[bool] = True

    max_size: int = 5000
    samples: bool = True

    def start(self, problem: SummableProblem, options: Options) -> SmoothedNewtonRun:
        """Begin a run; keeping alpha costs a number per row, and a pass for each better bound."""
        directions.require_small_systems(problem, problem.dimension, self.max_size, self)
        return SmoothedNewtonRun(problem, options, samples=self.samples)


class SmoothedNewtonRun(Run):
    """The smoothed method on one problem."""

    solver_name = "smoothed-newton"
    why_finished = "no further progress is possible"
    computes_primal = True

    def __init__(self, problem: SummableProblem, options: Options, *, samples: bool = True) -> None:
        self._problem, self._options = problem, options
        start, rules = options.start, schedule.rules_for(problem.loss, schedule.PARTS)
        sigma = start.smoothing if start is not None and options.resumed else None
        self._schedule = Schedule.warm(rules, sigma, smoothing=True, same=options.resumed)
        self.best, self._passes = BestValues(), 0
        # Where the dual bound was best.
        self.best_response = Response(np.zeros(problem.dimension), self.sigma)
        # The last solution of a smooth problem.
        self._w = self._solved_w = options.first_w(problem)
        if samples and start is None and not isinstance(problem, Problem):
            self._begin_on_first_rows(rules)
        # The point of the next pass, and the step that leads there.
        self._next: tuple[Vector, Vector | None] = self._solved_w, None

    @property
    def sigma(self) -> float:
        """The slope of alpha as a function of the margin."""
        return float(self._schedule.sigma * self._problem.C)

    def _begin_on_first_rows(self, rules: schedule.Rules) -> None:
        problem, d = self._problem, self._problem.dimension
        n_first = min(max(int(_FIRST_SHARE * problem.n_rows), _FEWEST_FIRST * d), _MOST_FIRST * d)
        part = problem.some_rows(n_first)
        weight, labels = float(part.weights.sum()), np.where(part.signed_weights < 0.0, -1.0, 1.0)
        # Rows of one side only say nothing of a free intercept.
        one_sided = problem.free_intercept and abs(part.labels.sum()) == part.active.size
        if part.active.size < _PER_COLUMN * d or one_sided:
            return
        objective = problem.objective.at(problem.C * problem.weight_sum / weight)
        sample = Problem(part.rows, labels, weights=part.weights, **objective.keywords)
        run = SmoothedNewtonRun(sample, replace(self._options, keep_alpha=False))
        for _ in range(_FIRST_STEPS):
            run.epoch()
            if run.best.relative_gap <= _FIRST_GAP:
                break
        self._solved_w, sigma = run._w, run._schedule.sigma
        self._schedule = Schedule(rules, sigma=sigma, sample_primal=run.best.primal)

    def epoch(self) -> Epoch:
        """Make one pass, at the point chosen after the last one."""
        problem, (w, along) = self._problem, self._next
        self._evaluated = self._dual_point = None
        response = Response(w, self.sigma)
        sums, point = read(problem, response, along, self._options)
        gradient = directions.gradient_at(problem, w, sums.rows.w)
        primal = sums.losses.primal(
            problem.C, w, product_error(w), free_intercept=problem.free_intercept
        )
        self._passes += 1
        bound = dual.dual_bound(point)[0].value
        if bound >= self.best.dual:
            self.best_response = response
        self.best.offer(primal.value, bound)
        step = None
        if along is not None:
            begin, direction = problem.regularised(w - along), problem.regularised(along)
            slopes = inner(begin, direction) + STEPS * inner(direction, direction) - sums.falls
            step = best_step(slopes)
        if along is None or step is None:
            self._choose(w, gradient, sums)
        else:
            self._next = w + (step - 1.0) * along, None
        self._w, self._evaluated, self._dual_point = w, (w, primal), lambda: point
        return Epoch(
            epochs=self._passes, free=sums.free, primal_estimate=primal.value,
            finished=self._schedule.finished,
        )  # fmt: skip

    def _choose(self, w: Vector, gradient: Vector, sums: Sums) -> None:
        """Choose the next step from this point, on the same smooth problem or the next."""
        problem, sigma = self._problem, self.sigma
        self._schedule.steps += 1
        move = self._schedule.judge(directions.squared_gradient(problem, w, gradient), self.best)
        if move in (Move.STEP, Move.STEEPER):
            if move is Move.STEEPER:
                self._solved_w = w
                # The gradient and the matrix for the larger sigma, if the same rows stay free.
                growth = self.sigma / sigma
                gradient = gradient - (growth - 1.0) * sums.pull
                sums.gram *= growth
            direction = directions.newton_direction(problem, sums.gram, w, gradient)
            self._next = w + direction, direction
        elif move is Move.BACK:
            self._next = self._solved_w, None
        else:
            # The w from the sample may be worse than zero.
            worse = self.best.primal > problem.C * problem.weight_sum
            self._next = np.zeros(problem.dimension) if worse else w, None


@dataclass
class Sums:
    """Sums over the rows of a part; those of several parts are added."""

    losses: LossSums
    rows: RowSums | ClassSums
    gram: NDArray[np.float64]
    pull: Vector
    """sum_k (alpha_k - alpha_hat_k) y_k over the free support vectors."""
    free: int
    falls: Vector
    """The sums of alpha times the products with the step, at each of ``STEPS``."""

    def __iadd__(self, other: Sums) -> Sums:
        for name, value in vars(other).items():
            # The matrix, which is large, in place.
            vars(self)[name] += value
        return self


def read(
    problem: SummableProblem, response: Response, along: Vector | None, options: Options
) -> tuple[Sums, DualPoint]:
    """Make one pass: the sums and the dual point, given the step ``along`` that led there."""
    loss, C, team = problem.loss, problem.C, options.team
    about = response, along, loss, C, problem.free_intercept
    sums: Sums = problem.total(sums_of_part, *about, team=team)
    name = "squared hinge" if loss.is_smooth else "smoothed hinge"
    kept = partial(alpha_of, problem, response, team) if options.keep_alpha else None
    return sums, sums.rows.point(name, kept, response)


def sums_of_part(
    part: Part, team: Team, response: Response, along: Vector | None, loss: Loss, C: float,
    free_intercept: bool,
) -> Sums:  # fmt: skip
    """The sums over a part."""
    (w, sigma), weights, falls = response, part.weights, np.zeros(STEPS.size)
    products = np.empty(part.rows.n_rows)
    multiply(part, w, products, team)
    unclipped, alpha, free = alpha_and_free(part, products, sigma, loss, C)
    losses = losses_of(part, team, loss, products, product_error(w))
    rows = (ClassSums if free_intercept else RowSums).of(part, alpha, loss, C, team)
    if along is not None:
        multiply(part, along, products, team)
        about = loss, unclipped, weights, sigma, C, products
        falls[:] = [clipped_sum(*about, t) for t in STEPS - 1.0]
    above, slopes = np.zeros(alpha.size), response_slope(loss, sigma, C) * weights[free]
    above[free] = alpha[free] - smoothing_centre(loss, C, weights[free])
    pull, gram = dual.sum_of_part(part, above, team)[0], directions.gram(part, free, slopes, team)
    return Sums(losses, rows, gram, pull, free.size, falls)


def alpha_and_free(
    part: Part, products: Vector, sigma: float, loss: Loss, C: float
) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """The alpha of a part's rows, before and after clipping, and the free support vectors."""
    centre = smoothing_centre(loss, C, part.weights)
    rows, (unclipped, alpha) = np.empty(centre.size, dtype=np.int64), np.empty((2, centre.size))
    n_free = smoothed_alpha(loss, products, part.weights, centre, sigma, C, unclipped, alpha, rows)
    return unclipped, alpha, rows[:n_free]


def alpha_of(problem: SummableProblem, response: Response, team: Team, *factors: float) -> Vector:
    """The alpha of a response, times a factor for each label: one pass, and a number per row."""
    about = response, problem.loss, problem.C, *factors
    return np.concatenate(problem.of_each(alpha_of_part, *about, team=team))


def alpha_of_part(
    part: Part, team: Team, response: Response, loss: Loss, C: float, *factors: float
) -> Vector:
    """The alpha of a part's rows, times a factor for each label."""
    products = np.empty(part.rows.n_rows)
    multiply(part, response.w, products, team)
    alpha = alpha_and_free(part, products, response.sigma, loss, C)[1]
    return dual.balanced_alpha(part, alpha, *factors) if factors else alpha


def point_of_response(
    problem: SummableProblem, response: Response, source: str, options: Options
) -> DualPoint:
    """The dual point of a response, in one pass."""
    return replace(read(problem, response, None, options)[1], source=source)
