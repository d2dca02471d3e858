"""Newton on tensors: the second-order method on the device of the data.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k loss(w.y_k)

by the method that ``solvers.schedule`` explains, as ``solvers.newton`` does in memory.
The time goes elsewhere on a GPU, so the computations differ:

* A step reads the rows for the products with the direction and for sum_k alpha_k y_k. Both are in
  float64, which costs nothing (``kernels``), and give J and L with their rounding.
* Gram matrices of free support vectors are computed from rows rounded to bfloat16, on tensor cores.
  If the slopes along a direction show that it was inaccurate, they are computed in float64 from
  then on.
* If the intercept is free, the dual point takes the sums over the rows of either label. One pass
  gives both.
* Several problems are trained together first (``batch``).

Each step waits for the device twice: for the slopes along the direction, and for the sums of a
step. Where rows are many, it also waits for the positions of the free support vectors, to read no
others for the Gram matrix.

Given:      C, s, the rows in tensors; at most ``max_size`` columns.
Result:     w, and alpha(w).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates import dual as duals
from certsvm.certificates import rounding
from certsvm.certificates.best import BestValues
from certsvm.certificates.primal import LossSums
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import BOTH_LOSSES
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector
from certsvm.solvers import directions, schedule
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start, require
from certsvm.solvers.schedule import Move, Schedule
from certsvm.solvers.smoothing import STEPS, best_step
from certsvm.torch import kernels
from certsvm.torch.batch import BatchRun
from certsvm.torch.problems import TensorProblem

# The unit of steps below which the line search ends.
_LEAST_UNIT = 1e-20
# Tolerated distance of the minimum along a direction from a step of one.
_ACCURATE = 0.02
# Steps on one smooth problem that indicate inaccurate directions.
_MANY_STEPS = 8


@dataclass(frozen=True)
class TensorNewton(Solver):
    """Second-order method for few columns, on tensors.

    Parameters
    ----------
    max_size : int, default=5000
        The largest size of the systems to solve: the solver refuses more columns. Memory grows
        with the square of the size, the time of a step with its cube.
    samples : bool, default=True
        Whether to begin on samples of the rows.
    """

    name: ClassVar[str] = "newton"
    problem_type: ClassVar[type[Any]] = TensorProblem
    losses: ClassVar = BOTH_LOSSES
    frees_intercept: ClassVar[bool] = True
    ranges: ClassVar = {"max_size": "> 0"}

    max_size: int = 5000
    samples: bool = True

    def start(self, problem: BaseProblem, options: Options) -> Run:
        """Begin a run, alone or with those of other classes."""
        require(isinstance(problem, TensorProblem), self, "it needs rows in tensors")
        directions.require_small_systems(problem, problem.dimension, self.max_size, self)
        tensors = cast(TensorProblem, problem)
        if tensors.batch is None:
            return self.alone(tensors, options)
        tensors.batch.begin(options, samples=self.samples)

        def alone(start: Start | None) -> Descent:
            return self.alone(tensors, replace(options, start=start))

        return BatchRun(tensors.batch, tensors.number, alone)

    def alone(self, problem: TensorProblem, options: Options) -> Descent:
        """Begin a run of one problem."""
        beginning = Beginning.at(options.start, problem)
        if self.samples and beginning.w is None:
            beginning = from_sample(problem, beginning, int(options.rng.integers(2**62)))
        return Descent(problem, beginning, options.target, keep_alpha=options.keep_alpha)


class Beginning(NamedTuple):
    """Where a descent begins; None means w = 0, and alpha at the centre of smoothing or zero."""

    schedule: Schedule
    w: Vector | None = None
    alpha: Tensor | None = None

    @classmethod
    def at(cls, start: Start | None, problem: TensorProblem) -> Beginning:
        """Begin at a start, or at zero."""
        rules = schedule.rules_for(problem.loss, schedule.TENSORS)
        if start is None:
            return cls(Schedule(rules))
        alpha = start.alpha
        if alpha is not None:
            alpha = torch.as_tensor(alpha, dtype=torch.float64, device=problem.rows.device)
        return cls(Schedule.warm(rules, start.smoothing, smoothing=alpha is None), start.w, alpha)


@dataclass(frozen=True)
class Answer:
    """The best J and the best L so far, in one object that an interrupt cannot split."""

    w: Vector
    primal: Bound
    point: duals.DualPoint
    alpha: Tensor


class Descent(Run):
    """The run of one problem."""

    computes_primal = True
    answer: Answer
    # At the present w: the products with the signed rows, their error, alpha before clipping and
    # after, the gradient.
    _margins: Tensor
    _error: float
    _unclipped: Tensor
    _alpha: Tensor
    _gradient: Vector

    def __init__(
        self, problem: TensorProblem, beginning: Beginning, target: float, *, keep_alpha: bool
    ) -> None:
        self.problem, self.schedule, self.best = problem, beginning.schedule, BestValues()
        self.steps, self.free = 0, 0
        self._target, self._keep_alpha = target, keep_alpha
        # Whether Gram matrices are exact, and consecutive directions that were not finite.
        self._exact, self._failures = False, 0
        rows = problem.rows
        like: dict[str, Any] = {"dtype": torch.float64, "device": rows.device}
        self._signs, self._sizes = problem.signs.to(**like), rows.product_roundings
        self._steps_to_try = torch.as_tensor(STEPS, **like)
        formulas: Any = problem.loss
        weights = torch.ones((), **like) if problem.row_weights is None else problem.row_weights
        self._box = formulas.box_end(problem.C, weights)
        self.w = np.zeros(rows.dimension) if beginning.w is None else beginning.w
        if beginning.alpha is None:
            self._alpha_hat = torch.zeros(problem.n_rows, **like)
            if self.schedule.smoothing:
                self._alpha_hat += formulas.smoothing_centre(problem.C, weights)
        else:
            self._alpha_hat = torch.minimum(beginning.alpha.clamp(min=0.0), self._box)
        self._point: duals.DualPoint | None = None
        self._compute_margins()
        self._evaluate()

    @property
    def sigma(self) -> float:
        """The slope of alpha as a function of the margin."""
        return self.schedule.sigma * self.problem.C

    @property
    def filled(self) -> float:
        """The sum of alpha relative to its largest feasible value."""
        assert self._point is not None
        return self._point.alpha_sum / (self.problem.C * self.problem.weight_sum)

    def epoch(self) -> Epoch:
        """One step."""
        self.step()
        return Epoch(
            epochs=self.steps,
            free=self.free,
            primal_estimate=self.answer.primal.value,
            finished=self.schedule.finished,
        )

    def candidates(self) -> Iterator[Vector]:
        """The best w."""
        yield self.answer.w

    def primal(self) -> tuple[Vector, Bound]:
        """The best w, and J there."""
        return self.answer.w, self.answer.primal

    def dual(self) -> duals.DualPoint:
        """The best alpha."""
        return self.answer.point

    def warm_start(self) -> Start:
        """The best w, and the best alpha on its device."""
        return Start(self.answer.w, self.steps, self.answer.alpha, self.schedule.sigma)

    def step(self) -> None:
        """One step of Newton's method, on a new smooth problem if the last one is solved."""
        self.steps += 1
        problem, w = self.problem, self.w
        move = self.schedule.judge(
            directions.squared_gradient(problem, w, self._gradient), self.best,
            filled=self.filled, free_per_column=self.free / problem.dimension,
        )  # fmt: skip
        if move is not Move.STEP:
            if move is Move.FROM_ZERO:
                self._alpha_hat = torch.zeros_like(self._alpha)
            elif move is Move.MULTIPLIERS:
                self._alpha_hat = self._alpha
            self._evaluate()
        free = (self._unclipped > 0.0) & (self._unclipped < self._box)
        ridge = directions.intercept_ridge(problem, w, self._gradient)
        direction = self._direction(free, ridge)
        along = self._signs * problem.rows.products(direction)
        step, on_host = self._search(direction, along, free, ridge)
        self.schedule.steps += 1
        if step == 0.0:
            return
        lengths = rounding.length(w), step, rounding.length(on_host)
        self._error, self._fresh = rounding.step_error(self._error, *lengths), False
        self.w = w + step * on_host
        self._margins.add_(along, alpha=step)
        self._evaluate()

    def _direction(self, free: Tensor, ridge: float) -> Tensor:
        """About -(I + slope sum_{k free} s_k y_k y_k')^-1 gradient; NaN if that failed.

        The last entry of I is ``ridge``: less than one if the intercept is free.
        """
        problem = self.problem
        gradient = torch.as_tensor(self._gradient, device=free.device)
        identity = torch.ones_like(gradient)
        if ridge != 1.0:
            identity[-1] = ridge
        H = problem.rows.gram(free, problem.row_weights, exact=self._exact)
        H *= problem.loss.response_slope(self.sigma, problem.C)
        H.diagonal().add_(identity)
        if self._failures > 1:
            # Even in float64 the matrix is not positive definite: use its diagonal.
            return -gradient / H.diagonal()
        factor, failed = torch.linalg.cholesky_ex(H)
        direction = torch.cholesky_solve(-gradient[:, None], factor)[:, 0]
        # NaN will be noticed; an incomplete factorisation would not be.
        return torch.where(failed == 0, direction, math.nan)

    def _search(
        self, direction: Tensor, along: Tensor, free: Tensor, ridge: float
    ) -> tuple[float, Vector]:
        """The step along a direction, and the direction on the host."""
        problem, w, unit = self.problem, self.w, 1.0
        last = problem.dimension - problem.free_intercept
        while True:
            falls = kernels.clipped_sums(
                problem.loss, self._unclipped, along, problem.row_weights, self.sigma, problem.C,
                self._steps_to_try if unit == 1.0 else unit * self._steps_to_try,
            )  # fmt: skip
            numbers = torch.cat([falls, free.sum()[None], direction]).cpu().numpy()
            falls_on_host, n_free, on_host = np.split(numbers, [len(STEPS), len(STEPS) + 1])
            self.free = int(n_free[0])
            regularised = on_host[:last]
            square, of_intercept = regularised @ regularised, float(on_host[last:] @ on_host[last:])
            slopes = w[:last] @ regularised + unit * STEPS * square - falls_on_host
            if not np.isfinite(slopes).all():
                # The matrix was indefinite: be exact from now on.
                self._exact, self._failures = True, self._failures + 1
                return 0.0, on_host
            if unit == 1.0:
                # The direction is that of a function with the ridge.
                self._judge(slopes + ridge * of_intercept * STEPS)
            step = best_step(slopes)
            if step is None or not 0.0 < step < STEPS[1] or unit < _LEAST_UNIT:
                return unit * (1.0 if step is None else step), on_host
            # Too short to be resolved in this unit.
            unit *= STEPS[1]

    def _judge(self, slopes: Vector) -> None:
        """Be exact from now on if the slopes at ``STEPS`` show an inaccurate direction.

        So do many steps on the same smooth problem.
        """
        self._failures = 0
        # The minimum if the same support vectors stay free: at one for the exact direction.
        minimum = slopes[0] * (STEPS[1] - STEPS[0]) / (slopes[0] - slopes[1] or -math.inf)
        # The slopes do not show all that the direction misses.
        many = self.schedule.steps >= _MANY_STEPS
        self._exact |= not abs(minimum - 1.0) <= _ACCURATE or many

    def _compute_margins(self) -> None:
        w = torch.as_tensor(self.w, device=self._signs.device)
        self._margins = self._signs * self.problem.rows.products(w)
        self._error, self._fresh = rounding.product_error(self.w), True

    def _evaluate(self) -> None:
        """Compute alpha(w), its dual point and J, with small enough rounding."""
        self._evaluate_margins()
        if schedule.too_rounded(self._primal.rounding, self.best) and not self._fresh:
            # Rounding has accumulated over many steps.
            self._compute_margins()
            self._evaluate_margins()
        factor = schedule.lengthening(self._primal, self.best, self._target)
        if factor is not None:
            # A slightly longer w, which moves rows off the margin.
            error = rounding.scaled_error(self._error, rounding.length(self.w), factor)
            numbers = self._alpha_at(factor * self._margins, error)[2].cpu().numpy()
            w = factor * self.w
            self._offer_primal(w, _primal(self.problem, numbers, w, error))

    def _evaluate_margins(self) -> None:
        """Compute alpha(w), its dual point and J from the present products."""
        self._unclipped, self._alpha, numbers = self._alpha_at(self._margins, self._error)
        signed = self._signs * self._alpha
        of_sides = signed[None]
        if self.problem.free_intercept:
            # A row for each dual point: those of the rows of either label, +1 first.
            of_sides = torch.stack([signed.clamp(min=0.0), signed.clamp(max=0.0)])
        totals = self.problem.rows.sums(of_sides)
        on_host = torch.cat([numbers, totals.flatten()]).cpu().numpy()
        self._offer(*np.split(on_host, [len(numbers)]))

    def _alpha_at(self, margins: Tensor, error: float) -> tuple[Tensor, Tensor, Tensor]:
        problem = self.problem
        return kernels.smoothed_alpha(
            problem.loss, margins, self._alpha_hat, problem.row_weights,
            self._signs if problem.free_intercept else None, self._sizes, self.sigma, problem.C,
            rounding.rounding_slack(error, problem.largest_rounding),
        )  # fmt: skip

    def _offer(self, numbers: Vector, totals: Vector) -> None:
        """Bounds from the sums of an evaluation."""
        problem, w, alpha, signs = self.problem, self.w, self._alpha, self._signs
        sides = numbers[2:].reshape(-1, 3)
        totals = totals.reshape(len(sides), -1)
        self._gradient = directions.gradient_at(problem, w, totals.sum(0))
        self._primal = _primal(problem, numbers, w, self._error)
        points = [self._point_of(*of_side) for of_side in zip(sides, totals, strict=True)]

        def kept_alpha(positive: float = 1.0, negative: float = 1.0) -> Vector:
            factors = torch.where(signs > 0, alpha.new_tensor(positive), negative)
            on_host: Vector = (factors * alpha).cpu().numpy()
            return on_host

        if problem.free_intercept:
            point = duals.balanced_point(points[0], points[1], kept_alpha)
        else:
            point = replace(points[0], alpha=kept_alpha)
        if not self._keep_alpha:
            point = replace(point, alpha=None)
        first, self._point = self._point is None, point
        bound = duals.dual_bound(point)[0]
        self.best.offer(self._primal.value, bound.value)
        if first:
            self.answer = Answer(w, self._primal, point, alpha)
        if bound.low > duals.dual_bound(self.answer.point)[0].low:
            self.answer = replace(self.answer, point=point, alpha=alpha)
        self._offer_primal(w, self._primal)

    def _point_of(self, numbers: Vector, v: Vector) -> duals.DualPoint:
        """The dual point of some rows, given the sums over them."""
        problem = self.problem
        alpha_sum, penalty, path = numbers.tolist()
        additions = kernels.additions_in_parts(problem.n_rows)
        sums = duals.sums_in_any_order(alpha_sum, penalty, additions)
        # The path was weighted by (n_k + 2) |y_k|.
        path /= problem.dimension + 2.0
        most, additions = problem.loss.largest_multiple, problem.rows.additions
        return duals.RowSums(v, (sums,), path, additions, most).point("multipliers")

    def _offer_primal(self, w: Vector, bound: Bound) -> None:
        if bound.high < self.answer.primal.high:
            self.answer = replace(self.answer, w=w, primal=bound)


def _primal(problem: TensorProblem, numbers: Vector, w: Vector, error: float) -> Bound:
    """J(w), from the sums of ``kernels.smoothed_alpha``."""
    loss, mass = numbers[:2].tolist()
    sums = LossSums((loss,), (mass,), kernels.additions_in_parts(problem.n_rows))
    return sums.primal(problem.C, w, error, free_intercept=problem.free_intercept)


def primal_bound(problem: TensorProblem, w: Vector) -> Bound:
    """J(w), in one pass over the rows."""
    rows, error = problem.rows, rounding.product_error(w)
    margins = problem.signs.double() * rows.products(torch.as_tensor(w, device=rows.device))
    numbers = kernels.smoothed_alpha(
        problem.loss, margins, torch.zeros_like(margins), problem.row_weights, None,
        rows.product_roundings, 1.0, problem.C,
        rounding.rounding_slack(error, problem.largest_rounding),
    )[2]  # fmt: skip
    return _primal(problem, numbers.cpu().numpy(), w, error)


def from_sample(problem: TensorProblem, beginning: Beginning, seed: int) -> Beginning:
    """Where to begin: not at zero, but at the solution on a sample of the rows."""
    rows = problem.rows
    size = schedule.sample_size(problem.m, rows.dimension, rows.largest_sample)
    if size is None or rows.is_small:
        return beginning
    generator = torch.Generator(device=rows.device).manual_seed(seed)
    # With replacement.
    which = torch.randint(rows.n_rows, (size,), generator=generator, device=rows.device)
    which = which.sort().values
    if not _represents(problem, which):
        return beginning
    sample = problem.sample(rows.take(which), which)
    deeper = from_sample(sample, Beginning.at(None, sample), seed + 1)
    descent = Descent(sample, deeper, schedule.SAMPLE_GAP, keep_alpha=False)
    best = descent.best
    while best.relative_gap > schedule.SAMPLE_GAP and descent.steps < schedule.SAMPLE_STEPS:
        descent.step()
    return Beginning(descent.schedule.on_all_rows(descent.filled), descent.w)


def _represents(problem: TensorProblem, which: Tensor) -> bool:
    """Whether a sample of rows represents the problem."""
    if problem.free_intercept and not problem.has_both_classes(which):
        return False
    if problem.row_weights is None:
        return True
    weight_share = float(problem.row_weights[which].sum()) / problem.weight_sum
    return schedule.has_enough_weight(weight_share, len(which), problem.m)
