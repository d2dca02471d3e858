"""Smoothed Newton: second order without a number per row, for streams and clusters.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by the method that ``second_order.schedule`` explains, in its form without multipliers: alpha_hat
stays in the middle of the box, and sigma grows as far as the accuracy asks for.

    alpha_k(w) = clip(C s_k / 2 + sigma s_k (1 - w.y_k), 0, C s_k)

is a function of w and sigma, so nothing is kept for the rows: one pass gives J and L, the
gradient and the Hessian at w, as sums over the parts of the rows, and the memory is that of a
square matrix as large as the number of columns. And w with sigma is all there is to the proof:
whoever has the data can check it.

A step of Newton's method leads to the next point to read at. The same pass gives the slopes along
the whole direction; if the minimum is elsewhere on it, the next point is there.

When a smooth problem is solved, the next one begins with a step to where its minimum would be if
the same support vectors stayed free: the same pass gives that, too. (From the same point instead, a
step of Newton's method would see only the few rows that are free at the larger sigma, and go
astray.)

The first part of the rows serves as a sample. Where rows are in no particular order, most of the
way is made there.

Given:      C, s, the rows in parts; at most ``max_columns`` columns.
Result:     w, and sigma, hence alpha.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import DualPoint, Response, RowSums, dual_bound
from certsvm.certificates.primal import LossSums, losses_of, multiply, multiply_two
from certsvm.certificates.rounding import Bound, product_error
from certsvm.kernels.losses import Loss, smoothing_centre
from certsvm.parallel import Team
from certsvm.problem.base import SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.second_order.hessian import (
    gram,
    newton_direction,
    require_few_columns,
    sum_of_rows,
    symmetric_product,
)
from certsvm.solvers.second_order.line_search import STEPS, best_step
from certsvm.solvers.second_order.sample import (
    FIRST_ROWS_GAP,
    FIRST_ROWS_STEPS,
    first_rows,
    first_rows_suffice,
)
from certsvm.solvers.second_order.schedule import PARTS, Move, Schedule
from certsvm.solvers.second_order.smoothing import (
    clipped_sums,
    free_support_vectors,
    smoothed_alpha,
)
from certsvm.storage.fields import array, count, flag, maybe, nested, number, record
from certsvm.storage.state import State


@dataclass(frozen=True)
class SmoothedNewton(Solver):
    """Second-order method for few columns and any number of rows.

    Parameters
    ----------
    max_columns : int, default=5000
        With more columns than this, refuse: the memory grows with their square, the time of a
        step with their cube.
    samples : bool, default=True
        Whether to begin on the first part of the rows, if there are others.

    Examples
    --------
    >>> SmoothedNewton().name
    'smoothed-newton'
    """

    name: ClassVar[str] = "smoothed-newton"
    problem_type: ClassVar[type[Any]] = SummableProblem

    max_columns: int = 5000
    samples: bool = True

    def __post_init__(self) -> None:
        require(self.max_columns > 0, self, f"max_columns must be > 0, got {self.max_columns}")

    def start(self, problem: SummableProblem, options: Options) -> SmoothedNewtonRun:
        """Begin a run; keeping alpha costs a number per row, and a pass for each better bound."""
        require_few_columns(problem, self.max_columns, self)
        return SmoothedNewtonRun(problem, options, samples=self.samples)


@dataclass(frozen=True)
class Reading:
    """What one pass at a weight vector gives."""

    w: Vector
    primal: Bound
    point: DualPoint
    gradient: Vector
    gram: NDArray[np.float64]
    free_sum: Vector
    free: int
    slopes: Vector | None


@dataclass(frozen=True)
class Line:
    """From where, in which direction and how far the next reading is."""

    begin: Vector
    direction: Vector | None = None
    step: float = 1.0
    searched: bool = False

    @property
    def w(self) -> Vector:
        """The point to read at."""
        return self.begin if self.direction is None else self.begin + self.step * self.direction


class SmoothedNewtonRun(Run):
    """The smoothed method on one problem."""

    STATE = State(
        passes=count(),
        schedule=nested(),
        best=nested(),
        w=array("dimension"),
        solved_w=array("dimension"),
        line=maybe(
            record(
                Line,
                begin=array("dimension"),
                direction=maybe(array("dimension")),
                step=number(low=0.0, high=float(STEPS[-1])),
                searched=flag(),
            )
        ),
    )

    solver_name = "smoothed-newton"
    computes_primal = True

    def __init__(self, problem: SummableProblem, options: Options, *, samples: bool = True) -> None:
        self._problem = problem
        self._options = options
        self._schedule = Schedule(PARTS)
        self._best = BestValues()
        self._passes = 0
        # The point that steps start from, and where the next pass goes.
        self._w = np.zeros(problem.dimension)
        self._line: Line | None = None
        self._latest: Reading | None = None
        if options.start is not None:
            self._w = options.start.w.copy()
        elif samples and not options.resumed and not isinstance(problem, Problem):
            self._begin_on_first_rows()
        self._solved_w = self._w

    @property
    def sigma(self) -> float:
        """The slope of alpha."""
        return self._schedule.sigma * self._problem.C

    def _begin_on_first_rows(self) -> None:
        problem = self._problem
        part = problem.some_rows(first_rows(problem.n_rows, problem.dimension))
        weight = float(part.weights.sum())
        if weight == 0.0 or not first_rows_suffice(part.active.size, problem.dimension):
            return
        C = problem.C * problem.weight_sum / weight
        labels = np.where(part.signed_weights < 0.0, -1.0, 1.0)
        sample = Problem(part.rows, labels, C=C, weights=part.weights, loss=self._problem.loss)
        run = SmoothedNewtonRun(sample, replace(self._options, keep_alpha=False))
        for _ in range(FIRST_ROWS_STEPS):
            run.epoch()
            if run._best.relative_gap <= FIRST_ROWS_GAP:
                break
        self._w = run._w
        self._schedule = Schedule(PARTS, sigma=run._schedule.sigma, sample_primal=run._best.primal)

    def epoch(self) -> Epoch:
        """One pass, at the point where the last one pointed to."""
        self._latest = None
        line = self._line or Line(self._w)
        reading = read(self._problem, line, self.sigma, self._options)
        self._passes += 1
        self._best.offer(reading.primal.value, dual_bound(reading.point)[0].value)
        step = None if reading.slopes is None else best_step(reading.slopes)
        if step is None:
            self._take(reading)
        else:
            self._line = replace(line, step=step, searched=True)
        self._latest = reading
        return Epoch(
            epochs=self._passes,
            free=reading.free,
            primal_estimate=reading.primal.value,
            finished=self._schedule.finished,
        )

    def _take(self, reading: Reading) -> None:
        """Step from this point: on the same smooth problem, or on the next."""
        self._w = reading.w
        self._schedule.steps += 1
        sigma = self.sigma
        move = self._schedule.judge(float(reading.gradient @ reading.gradient), self._best)
        if move is Move.STEP:
            self._line = Line(reading.w, newton_direction(reading.gram, reading.gradient))
        elif move is Move.STEEPER:
            self._solved_w = reading.w
            self._line = Line(reading.w, direction_to_steeper(reading, sigma, self.sigma))
        else:
            self._line = None
            if move is Move.BACK:
                self._w = self._solved_w
            elif self._best.primal > self._problem.C * self._problem.weight_sum:
                # What a sample led to is worse than zero.
                self._w = np.zeros(self._problem.dimension)

    def candidates(self) -> Iterator[Vector]:
        """The point that was read at last."""
        if self._latest is not None:
            yield self._latest.w

    def primal(self) -> tuple[Vector, Bound] | None:
        """W and J(w) of the last reading."""
        return None if self._latest is None else (self._latest.w, self._latest.primal)

    def dual(self) -> DualPoint | None:
        """alpha(w) of the last reading."""
        return None if self._latest is None else self._latest.point


def direction_to_steeper(reading: Reading, sigma: float, steeper: float) -> Vector:
    """Newton's direction for a larger sigma, if the same support vectors stay free."""
    growth = steeper / sigma
    pull = symmetric_product(reading.gram, reading.w)
    gradient = reading.gradient - (growth - 1.0) * (sigma * reading.free_sum - pull)
    return newton_direction(growth * reading.gram, gradient)


@dataclass
class ReadingSums:
    """What a part gives to a reading; those of parts are added."""

    losses: LossSums
    rows: RowSums
    gram: NDArray[np.float64]
    free_sum: Vector
    free: int
    slopes: Vector

    def __iadd__(self, other: ReadingSums) -> ReadingSums:
        self.losses += other.losses
        self.rows += other.rows
        # In place: it is as large as the square of the columns.
        self.gram += other.gram
        self.free_sum += other.free_sum
        self.free += other.free
        self.slopes += other.slopes
        return self


def read(problem: SummableProblem, line: Line, sigma: float, options: Options) -> Reading:
    """One pass: J, L, the gradient and the Hessian's sum at w, and the slopes on the line."""
    w, team = line.w, options.team
    along = None if line.searched else line.direction
    sums: ReadingSums = problem.total(
        read_part, w, along, STEPS - line.step, sigma, problem.loss, problem.C, team=team
    )

    def all_alpha() -> Vector:
        return alpha_of(problem, Response(w, sigma), team)

    point = sums.rows.point(
        "smoothed hinge", all_alpha if options.keep_alpha else None, Response(w, sigma)
    )
    slopes = None
    if along is not None:
        slopes = line.begin @ along + STEPS * (along @ along) + sums.slopes
    return Reading(
        w,
        sums.losses.primal(problem.C, w, product_error(w)),
        point,
        w - point.w,
        sums.gram,
        sums.free_sum,
        sums.free,
        slopes,
    )


def read_part(
    part: Part,
    team: Team,
    w: Vector,
    along: Vector | None,
    steps: Vector,
    sigma: float,
    loss: Loss,
    C: float,
) -> ReadingSums:
    """What a part gives; the slopes are those of its losses at w + ``steps`` times ``along``."""
    products = np.empty(part.rows.n_rows)
    if along is None:
        multiply(part, w, products, team)
    else:
        products_along = np.empty(part.rows.n_rows)
        multiply_two(part, w, along, products, products_along, team)
    losses = losses_of(part, team, loss, products, product_error(w))
    unclipped, alpha, free = alpha_and_free(part, products, sigma, loss, C)
    rows = RowSums.of(part, alpha, loss, C, team)
    G = gram(part, free, sigma * part.weights[free], team)
    free_sum = sum_of_rows(part, free, team)
    slopes = np.zeros(steps.size)
    if along is not None:
        clipped_sums(loss, unclipped, part.weights, sigma, C, products_along, steps, slopes)
        slopes *= -1.0
    return ReadingSums(losses, rows, G, free_sum, free.size, slopes)


def alpha_and_free(
    part: Part, products: Vector, sigma: float, loss: Loss, C: float
) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """The alpha of a part's rows, before it is clipped and after, and the free support vectors."""
    n = products.size
    unclipped, alpha, rows = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    centre = smoothing_centre(loss, C, part.weights)
    smoothed_alpha(loss, products, part.weights, centre, sigma, C, unclipped, alpha)
    free = rows[: free_support_vectors(loss, unclipped, part.weights, C, rows)]
    return unclipped, alpha, free


def alpha_of(problem: SummableProblem, response: Response, team: Team) -> Vector:
    """A response's alpha: a pass, and a number for each row."""
    return np.concatenate(
        problem.of_each(_alpha_of_part, response, problem.loss, problem.C, team=team)
    )


def _alpha_of_part(part: Part, team: Team, response: Response, loss: Loss, C: float) -> Vector:
    products = np.empty(part.rows.n_rows)
    multiply(part, response.w, products, team)
    return alpha_and_free(part, products, response.sigma, loss, C)[1]
