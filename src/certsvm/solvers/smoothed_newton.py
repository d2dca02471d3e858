"""Smoothed Newton: a second-order method that stores nothing per row, for streams and clusters.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by the method of ``schedule``, in the form without multipliers: alpha_hat stays in the
middle of the box, and sigma grows as far as the accuracy requires. Since

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

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates import dual
from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import ClassSums, DualPoint, Response, RowSums
from certsvm.certificates.primal import LossSums, losses_of, multiply
from certsvm.certificates.rounding import Bound, product_error
from certsvm.kernels.losses import BOTH_LOSSES, Loss, response_slope, smoothing_centre
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Vector
from certsvm.resources import Team
from certsvm.solvers import directions, schedule
from certsvm.solvers.base import Epoch, Options, Run, Solver
from certsvm.solvers.schedule import Move, Schedule
from certsvm.solvers.smoothing import STEPS, best_step, clipped_sums, smoothed_alpha

# The first rows are a sample: this share of the rows, within limits per column. With fewer rows per
# column than the last number, it is not worthwhile.
_FIRST_SHARE, _FEWEST_FIRST, _MOST_FIRST, _PER_COLUMN = 1 / 64, 100, 1000, 10
# The run on these ends at this relative gap, or after so many steps.
_FIRST_GAP, _FIRST_STEPS = 0.01, 60


@dataclass(frozen=True)
class SmoothedNewton(Solver):
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
    ranges: ClassVar = {"max_size": "> 0"}

    max_size: int = 5000
    samples: bool = True

    def saves_alpha(self, problem: BaseProblem) -> bool:
        """Never: it follows from w."""
        return False

    def start(self, problem: SummableProblem, options: Options) -> SmoothedNewtonRun:
        """Begin a run; keeping alpha costs a number per row, and a pass for each better bound."""
        directions.require_small_systems(problem, problem.dimension, self.max_size, self)
        return SmoothedNewtonRun(problem, options, samples=self.samples)


@dataclass(frozen=True)
class Reading:
    """The results of one pass at w: J, the dual point, the gradient, and sums over the rows."""

    w: Vector
    primal: Bound
    point: DualPoint
    gradient: Vector
    sums: ReadingSums
    slopes: Vector | None


class SmoothedNewtonRun(Run):
    """The smoothed method on one problem."""

    solver_name = "smoothed-newton"
    why_finished = "no further progress is possible"
    computes_primal = True

    def __init__(self, problem: SummableProblem, options: Options, *, samples: bool = True) -> None:
        self._problem, self._options = problem, options
        self._rules = schedule.rules_for(problem.loss, schedule.PARTS)
        start = options.start
        sigma = start.smoothing if start is not None and options.resumed else None
        self._schedule = Schedule.warm(self._rules, sigma, smoothing=True, same=options.resumed)
        self.best = BestValues()
        # Where the dual bound was best.
        self.best_response = Response(np.zeros(problem.dimension), self.sigma)
        self._passes = 0
        # The point that steps start from; that of the next pass, and the step that leads there.
        self._w = options.first_w(problem)
        self._latest: Reading | None = None
        if samples and start is None and not isinstance(problem, Problem):
            self._begin_on_first_rows()
        self._solved_w = self._w
        self._next: tuple[Vector, Vector | None] = self._w, None

    @property
    def sigma(self) -> float:
        """The slope of alpha as a function of the margin."""
        return float(self._schedule.sigma * self._problem.C)

    def _begin_on_first_rows(self) -> None:
        problem = self._problem
        d = problem.dimension
        n_first = min(max(int(_FIRST_SHARE * problem.n_rows), _FEWEST_FIRST * d), _MOST_FIRST * d)
        part = problem.some_rows(n_first)
        weight = float(part.weights.sum())
        # Rows of one side only say nothing of a free intercept.
        one_sided = problem.free_intercept and abs(part.labels.sum()) == part.active.size
        few = part.active.size < _PER_COLUMN * d
        if weight == 0.0 or few or one_sided:
            return
        labels = np.where(part.signed_weights < 0.0, -1.0, 1.0)
        objective = problem.objective.at(problem.C * problem.weight_sum / weight)
        sample = Problem(part.rows, labels, weights=part.weights, **objective.keywords)
        run = SmoothedNewtonRun(sample, replace(self._options, keep_alpha=False))
        for _ in range(_FIRST_STEPS):
            run.epoch()
            if run.best.relative_gap <= _FIRST_GAP:
                break
        self._w = run._w
        self._schedule = Schedule(
            self._rules, sigma=run._schedule.sigma, sample_primal=run.best.primal
        )

    def epoch(self) -> Epoch:
        """Make one pass, at the point chosen after the last one."""
        self._latest = None
        w, along = self._next
        reading = read(self._problem, w, along, self.sigma, self._options)
        self._passes += 1
        bound = dual.dual_bound(reading.point)[0].value
        if bound >= self.best.dual:
            self.best_response = Response(w, self.sigma)
        self.best.offer(reading.primal.value, bound)
        step = None if reading.slopes is None else best_step(reading.slopes)
        if along is None or step is None:
            self._take(reading)
        else:
            self._next = w + (step - 1.0) * along, None
        self._latest = reading
        return Epoch(
            epochs=self._passes,
            free=reading.sums.free,
            primal_estimate=reading.primal.value,
            finished=self._schedule.finished,
        )

    def _take(self, reading: Reading) -> None:
        """Choose the next step from this point, on the same smooth problem or the next."""
        problem, sigma = self._problem, self.sigma
        w, G, gradient = reading.w, reading.sums.gram, reading.gradient
        self._schedule.steps += 1
        move = self._schedule.judge(directions.squared_gradient(problem, w, gradient), self.best)
        if move in (Move.STEP, Move.STEEPER):
            self._w = w
            if move is Move.STEEPER:
                self._solved_w = w
                # The gradient and the matrix for the larger sigma, if the same rows stay free.
                growth = self.sigma / sigma
                gradient = gradient - (growth - 1.0) * reading.sums.pull
                G *= growth
            direction = directions.newton_direction(problem, G, w, gradient, self._options.team)
            self._next = w + direction, direction
            return
        if move is Move.BACK:
            w = self._solved_w
        elif self.best.primal > problem.C * problem.weight_sum:
            # The w from the sample is worse than zero.
            w = np.zeros(problem.dimension)
        self._w = w
        self._next = w, None

    def candidates(self) -> Iterator[Vector]:
        """The point of the last pass."""
        if self._latest is not None:
            yield self._latest.w

    def primal(self) -> tuple[Vector, Bound] | None:
        """The point of the last pass, and J there."""
        return None if self._latest is None else (self._latest.w, self._latest.primal)

    def dual(self) -> DualPoint | None:
        """The dual point alpha(w) of the last pass."""
        return None if self._latest is None else self._latest.point


@dataclass
class ReadingSums:
    """Sums over the rows of a part; those of several parts are added."""

    losses: LossSums
    rows: RowSums | ClassSums
    gram: NDArray[np.float64]
    pull: Vector
    """sum_k (alpha_k - alpha_hat_k) y_k over the free support vectors."""
    free: int
    falls: Vector
    """The sums of alpha times the products with the step, at each of ``STEPS``."""

    def __iadd__(self, other: ReadingSums) -> ReadingSums:
        for field in fields(self):
            # The matrix, which is large, in place.
            total = getattr(self, field.name)
            total += getattr(other, field.name)
            setattr(self, field.name, total)
        return self


def read(
    problem: SummableProblem, w: Vector, along: Vector | None, sigma: float, options: Options
) -> Reading:
    """Make one pass: J, L, the gradient and the Hessian at w.

    Given the step ``along`` that led to w, also the slopes on its line, at ``STEPS`` of it.
    """
    team = options.team
    sums: ReadingSums = problem.total(
        read_part, w, along, sigma, problem.loss, problem.C, problem.free_intercept, team=team
    )

    def all_alpha(*factors: float) -> Vector:
        return alpha_of(problem, Response(w, sigma), team, *factors)

    name = "squared hinge" if problem.loss.is_smooth else "smoothed hinge"
    point = sums.rows.point(name, all_alpha if options.keep_alpha else None, Response(w, sigma))
    gradient = directions.gradient_at(problem, w, sums.rows.w)
    slopes = None
    if along is not None:
        begin, direction = problem.regularised(w - along), problem.regularised(along)
        slopes = inner(begin, direction) + STEPS * inner(direction, direction) - sums.falls
    primal = sums.losses.primal(
        problem.C, w, product_error(w), free_intercept=problem.free_intercept
    )
    return Reading(w, primal, point, gradient, sums, slopes)


def read_part(
    part: Part, team: Team, w: Vector, along: Vector | None, sigma: float, loss: Loss, C: float,
    free_intercept: bool,
) -> ReadingSums:  # fmt: skip
    """The sums of a part."""
    products, products_along = np.empty((2, part.rows.n_rows))
    multiply(part, w, products, team)
    unclipped, alpha, free = alpha_and_free(part, products, sigma, loss, C)
    above = np.zeros(products.size)
    above[free] = alpha[free] - smoothing_centre(loss, C, part.weights[free])
    falls = np.zeros(STEPS.size)
    if along is not None:
        multiply(part, along, products_along, team)
        weights, steps = part.weights, STEPS - 1.0
        clipped_sums(loss, unclipped, weights, sigma, C, products_along, steps, falls)
    return ReadingSums(
        losses_of(part, team, loss, products, product_error(w)),
        (ClassSums if free_intercept else RowSums).of(part, alpha, loss, C, team),
        directions.gram(part, free, response_slope(loss, sigma, C) * part.weights[free], team),
        dual.sum_of_part(part, above, team)[0],
        free.size,
        falls,
    )


def alpha_and_free(
    part: Part, products: Vector, sigma: float, loss: Loss, C: float
) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """The alpha of a part's rows, before and after clipping, and the free support vectors."""
    n, centre = products.size, smoothing_centre(loss, C, part.weights)
    unclipped, rows, (alpha, change) = np.empty(n), np.empty(n, dtype=np.int64), np.zeros((2, n))
    n_free = smoothed_alpha(
        loss, products, part.weights, centre, sigma, C, unclipped, alpha, change, rows
    )[1]
    return unclipped, alpha, rows[:n_free]


def alpha_of(problem: SummableProblem, response: Response, team: Team, *factors: float) -> Vector:
    """The alpha of a response, times a factor for each label: one pass, and a number per row."""
    loss, C = problem.loss, problem.C
    parts = problem.of_each(alpha_of_part, response, loss, C, *factors, team=team)
    return np.concatenate(parts)


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
    return replace(read(problem, response.w, None, response.sigma, options).point, source=source)
