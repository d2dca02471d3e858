"""Smoothed Newton: second order without a number per row, for streams.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

through smooth problems, as ``newton`` does at first: with sigma > 0,

    alpha_k(w) = clip(C s_k / 2 + sigma s_k (1 - w.y_k), 0, C s_k),        feasible for any w,

grad(w) = w - sum_k alpha_k(w) y_k is the gradient of a smooth convex function, whose Hessian is
I + sigma sum_{k in band} s_k y_k y_k'; the band holds the rows with alpha_k strictly inside the
box. The hinge's kink is rounded off over C / (2 sigma) to both sides, and sigma grows as far as the
accuracy asks for.

alpha is a function of w and sigma, so nothing is kept for the rows: one reading gives J and L, the
gradient and the Hessian at w, and the memory is that of a square matrix as large as the number of
columns. And w with sigma is all there is to the proof: whoever has the data can check it.

A step of Newton's method leads to the next point to read at. The same reading tells how the
function falls and rises along the whole direction; if the minimum is elsewhere on it, the next
point is there.

When a smooth problem is solved, the next one begins with a step to where its minimum would be if
the band stayed as it is: the same reading gives that, too. (From the same point instead, a step
of Newton's method would see the few rows of the narrower band only, and go astray.)

The first part of the rows serves as a sample to start from: the same is done on it until it is
nearly solved. Where rows are in no particular order, most of the way is made there.

Given:      C, s, the rows in parts; at most ``max_columns`` columns.
Result:     w, and sigma, hence alpha.

Reference: O. Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19
(2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, Response, RowSums, dual_bound
from certsvm.certificates.primal import LossSums, losses_of, multiply, multiply_two
from certsvm.certificates.rounding import Bound, product_error
from certsvm.parallel import Team
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.second_order.hessian import (
    gram,
    newton_direction,
    sum_of_rows,
    symmetric_product,
)
from certsvm.solvers.second_order.response import clipped_sums, inside, respond
from certsvm.storage.fields import array, count, flag, maybe, number, positive, record
from certsvm.storage.state import State

# The smooth problem is solved well enough when |grad|^2 / 2 is this fraction of the gap.
_INNER = 0.2
_FIRST_SIGMA, _LARGEST_SIGMA = 0.45, 1e12
# By how much sigma grows from one problem to the next: more if so few steps were enough, less if
# there were many.
_GROWTH = 2.0, 16.0
_FEW, _MANY = 2, 6
# It has come to its end when sigma can grow by no more than this.
_LEAST_GROWTH = 1.01
# Steps after which a smooth problem counts as too steep, and after which a sample's does.
_MOST_INNER, _MOST_FROM_SAMPLE = 30, 12
# A point is taken if the slope there, relative to that at the beginning, is at most this.
_FLAT = 0.3
# Steps at which the slope is looked at; where the band changes much, the best may be tiny.
STEPS = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 21), [1.5, 2.5, 5.0, 10.0]])
# A sample must have so many rows for each column; it is left at this gap, or after so many steps.
_SAMPLE_PER_COLUMN, _SAMPLE_GAP, _SAMPLE_STEPS = 10, 0.01, 60
# It is this share of the rows where that is possible, within limits of rows for each column.
_SAMPLE_SHARE, _SAMPLE_LIMITS = 1 / 64, (100, 1000)
# J on all rows, relative to that on the sample, from which on its answer is no good start.
_BAD_SAMPLE = 1.5


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


def require_few_columns(problem: BaseProblem, most: int, solver: Solver) -> None:
    """Raise if a square matrix of the problem's dimension would be too dear."""
    require(
        problem.dimension <= most,
        solver,
        f"X has {problem.dimension} columns (the intercept included), more than "
        f"max_columns = {most}: a square matrix of that size would be too dear. "
        "Use another solver, such as 'working-set' (or 'sgd-s' from a stream), or raise "
        "max_columns.",
    )


@dataclass(frozen=True)
class Reading:
    """What one pass at a weight vector gives."""

    w: Vector
    primal: Bound
    point: DualPoint
    gradient: Vector
    gram: NDArray[np.float64]
    band_sum: Vector
    band: int
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


class Solved(NamedTuple):
    """Where a smooth problem was solved, and which: sigma / C."""

    w: Vector
    share: float


class SmoothedNewtonRun(Run):
    """The smoothed method on one problem."""

    STATE = State(
        passes=count(),
        inner=count(),
        w=array("dimension"),
        share=positive(),
        from_sample=flag(),
        expected=number(low=0.0, infinite=True),
        base=maybe(array("dimension")),
        line=maybe(
            record(
                Line,
                begin=array("dimension"),
                direction=maybe(array("dimension")),
                step=number(low=0.0, high=float(STEPS[-1])),
                searched=flag(),
            )
        ),
        best_primal=number(low=0.0, infinite=True),
        best_dual=number(low=0.0),
        growth=number(low=1.0, high=_GROWTH[1]),
        solved=record(Solved, w=array("dimension"), share=positive()),
    )

    solver_name = "smoothed-newton"
    computes_primal = True

    def __init__(self, problem: SummableProblem, options: Options, *, samples: bool = True) -> None:
        self._problem = problem
        self._options = options
        self._w = np.zeros(problem.dimension)
        self._share = _FIRST_SIGMA
        self._from_sample = False
        self._expected = math.inf
        if options.start is not None:
            self._w = options.start.w.copy()
        elif samples and not options.resumed and not isinstance(problem, Problem):
            self._begin_on_a_sample()
        # The point that steps start from, and where the next reading goes.
        self._base: Vector | None = None
        self._line: Line | None = None
        self._best_primal, self._best_dual = math.inf, 0.0
        self._passes = 0
        self._inner = 0
        self._growth = 4.0
        self._solved = Solved(self._w, self._share)
        self._latest: Reading | None = None

    @property
    def sigma(self) -> float:
        """The slope of alpha."""
        return self._share * self._problem.C

    @property
    def relative_gap(self) -> float:
        """Between the best values so far."""
        return self._best_primal / self._best_dual - 1.0 if self._best_dual > 0.0 else math.inf

    def _begin_on_a_sample(self) -> None:
        least, most = (limit * self._problem.dimension for limit in _SAMPLE_LIMITS)
        part = self._problem.some_rows(
            int(min(max(_SAMPLE_SHARE * self._problem.n_rows, least), most))
        )
        weight = float(part.weights.sum())
        if part.active.size < _SAMPLE_PER_COLUMN * self._problem.dimension or weight == 0.0:
            return
        C = self._problem.C * self._problem.weight_sum / weight
        labels = np.where(part.signed_weights < 0.0, -1.0, 1.0)
        sample = Problem(part.rows, labels, C=C, weights=part.weights)
        run = SmoothedNewtonRun(sample, replace(self._options, keep_alpha=False))
        for _ in range(_SAMPLE_STEPS):
            run.epoch()
            if run.relative_gap <= _SAMPLE_GAP:
                break
        self._w, self._share, self._from_sample = run.best_w, run._share, True
        self._expected = run._best_primal

    @property
    def best_w(self) -> Vector:
        """The point that steps start from."""
        return self._w if self._base is None else self._base

    def epoch(self) -> Epoch:
        """One reading, at the point where the last one pointed to."""
        self._latest = None
        line = self._line or Line(self.best_w)
        reading = read(self._problem, line, self.sigma, self._options)
        self._passes += 1
        self._best_primal = min(self._best_primal, reading.primal.value)
        self._best_dual = max(self._best_dual, dual_bound(reading.point)[0].value)
        self._judge(reading)
        self._latest = reading
        return Epoch(
            epochs=self._passes,
            free=reading.band,
            primal_estimate=reading.primal.value,
            finished=self._growth < _LEAST_GROWTH,
        )

    def _judge(self, reading: Reading) -> None:
        """Take the point and go on from it, or go to the minimum along the direction first."""
        if self._line is not None and reading.slopes is not None:
            step = best_step(reading.slopes)
            if step is not None:
                self._line = replace(self._line, step=step, searched=True)
                return
        self._inner += 1
        self._base = reading.w
        gap = max(self._best_primal - self._best_dual, 0.0)
        solved = 0.5 * float(reading.gradient @ reading.gradient) <= _INNER * gap
        if self._from_sample and self._misled(solved):
            self._share, self._from_sample, self._inner = _FIRST_SIGMA, False, 0
            self._line = None
        elif solved:
            self._next_stage(reading)
        elif self._inner >= _MOST_INNER:
            self._step_back()
        else:
            direction = newton_direction(reading.gram, reading.gradient)
            self._line = Line(reading.w, direction)

    def _misled(self, solved: bool) -> bool:
        """Whether what the sample said was wrong; then back to zero, if that is better."""
        if self._passes == 1 and self._best_primal > _BAD_SAMPLE * self._expected:
            zero = self._problem.C * self._problem.weight_sum
            if self._best_primal > zero:
                self._w, self._base = np.zeros(self._problem.dimension), None
            return True
        return not solved and self._inner >= _MOST_FROM_SAMPLE

    def _step_back(self) -> None:
        """Go back to the last problem that was solved, and on from it in smaller steps."""
        self._growth = math.sqrt(self._growth)
        self._w, share = self._solved
        self._share = share * self._growth
        self._base, self._line = None, None
        self._inner = 0

    def _next_stage(self, reading: Reading) -> None:
        """Go on to a steeper problem, towards where its minimum would be if the band stayed."""
        self._solved = Solved(reading.w, self._share)
        if self._inner <= _FEW:
            self._growth = min(2.0 * self._growth, _GROWTH[1])
        elif self._inner > _MANY:
            self._growth = min(self._growth, max(0.5 * self._growth, _GROWTH[0]))
        sigma = self.sigma
        self._share = min(self._share * self._growth, _LARGEST_SIGMA)
        self._inner = 0
        more = self.sigma / sigma - 1.0
        # The gradient of the new problem, and its Hessian.
        pull = symmetric_product(reading.gram, reading.w)
        gradient = reading.gradient - more * (sigma * reading.band_sum - pull)
        self._line = Line(reading.w, newton_direction((1.0 + more) * reading.gram, gradient))

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


@dataclass
class ReadingSums:
    """What a part gives to a reading; those of parts are added."""

    losses: LossSums
    rows: RowSums
    gram: NDArray[np.float64]
    band_sum: Vector
    band: int
    slopes: Vector

    def __iadd__(self, other: ReadingSums) -> ReadingSums:
        self.losses += other.losses
        self.rows += other.rows
        # In place: it is as large as the square of the columns.
        self.gram += other.gram
        self.band_sum += other.band_sum
        self.band += other.band
        self.slopes += other.slopes
        return self


def read(problem: SummableProblem, line: Line, sigma: float, options: Options) -> Reading:
    """One pass: J, L, the gradient and the Hessian's sum at w, and the slopes on the line."""
    w, team = line.w, options.team
    along = None if line.searched else line.direction
    sums: ReadingSums = problem.total(
        read_part, w, along, STEPS - line.step, sigma, problem.C, team=team
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
        sums.band_sum,
        sums.band,
        slopes,
    )


def read_part(
    part: Part,
    team: Team,
    w: Vector,
    along: Vector | None,
    steps: Vector,
    sigma: float,
    C: float,
) -> ReadingSums:
    """What a part gives; the slopes are those of its losses at w + ``steps`` times ``along``."""
    products = np.empty(part.rows.n_rows)
    if along is None:
        multiply(part, w, products, team)
    else:
        products_along = np.empty(part.rows.n_rows)
        multiply_two(part, w, along, products, products_along, team)
    losses = losses_of(part, team, products, product_error(w))
    unclipped, alpha, band = responses(part, products, sigma, C)
    rows = RowSums.of(part, alpha, team)
    G = gram(part, band, sigma * part.weights[band], team)
    band_sum = sum_of_rows(part, band, team)
    slopes = np.zeros(steps.size)
    if along is not None:
        clipped_sums(unclipped, part.weights, sigma, C, products_along, steps, slopes)
        slopes *= -1.0
    return ReadingSums(losses, rows, G, band_sum, band.size, slopes)


def best_step(slopes: Vector) -> float | None:
    """Where the slope becomes zero, given at ``STEPS``; None if a step of one is as good.

    Zero if it is not negative at the beginning.

    Examples
    --------
    >>> best_step(STEPS - 1.0) is None, best_step(2.0 * STEPS - 1.0), best_step(STEPS)
    (True, 0.5, 0.0)
    """
    if not slopes[0] < 0.0:
        return 0.0
    if abs(slopes[STEPS == 1.0][0]) <= _FLAT * abs(slopes[0]):
        return None
    if slopes[-1] <= 0.0:
        return float(STEPS[-1])
    after = int(np.argmax(slopes > 0.0))
    share = -slopes[after - 1] / (slopes[after] - slopes[after - 1])
    return float(STEPS[after - 1] + share * (STEPS[after] - STEPS[after - 1]))


def responses(
    part: Part, products: Vector, sigma: float, C: float
) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """What is to be clipped, the alpha of a part's rows, and the rows in the band."""
    n = products.size
    unclipped, alpha, rows = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    respond(products, part.weights, 0.5 * C * part.weights, sigma, C, unclipped, alpha)
    return unclipped, alpha, rows[: inside(unclipped, part.weights, C, rows)]


def alpha_of(problem: SummableProblem, response: Response, team: Team) -> Vector:
    """A response's alpha: a pass, and a number for each row."""
    return np.concatenate(problem.of_each(_alpha_of_part, response, problem.C, team=team))


def _alpha_of_part(part: Part, team: Team, response: Response, C: float) -> Vector:
    products = np.empty(part.rows.n_rows)
    multiply(part, response.w, products, team)
    return responses(part, products, response.sigma, C)[1]
