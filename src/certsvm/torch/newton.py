"""Newton on tensors: the second-order method on the device of the data.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k loss(w.y_k)

by the method that ``solvers.second_order.schedule`` explains, as ``solvers.newton`` does in memory.
The time goes elsewhere on a GPU, so the computations differ:

* A step reads the rows for the products with the direction and, as long as many of the alpha
  change, for sum_k alpha_k y_k. Both are in float64, which costs nothing (``kernels``), and give J
  and L with their rounding.
* Gram matrices of free support vectors are computed from rows rounded to bfloat16, on tensor cores.
  If the slopes along a direction show that it was inaccurate, they are computed in float64 from
  then on.
* If the intercept is free, the dual point takes the sums over the rows of either label. One pass
  gives both.
* Several problems are trained together first (``batch``).

Each step waits for the device four times: for the free support vectors, for the slopes along the
direction, for the rows whose alpha has changed, and for the sums of a step together with w.

Given:      C, s, the rows in tensors; at most ``max_size`` columns.
Result:     w, and alpha(w).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import (
    DualPoint,
    RowSums,
    balanced_point,
    dual_bound,
    moved_sum_point,
    sums_in_any_order,
)
from certsvm.certificates.primal import LossSums
from certsvm.certificates.rounding import (
    Bound,
    length,
    product_error,
    rounding_slack,
    scaled_error,
    step_error,
)
from certsvm.kernels.losses import LOSS_TYPES
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start, require
from certsvm.solvers.second_order.directions import (
    gradient_at,
    intercept_ridge,
    require_small_systems,
    squared_gradient,
)
from certsvm.solvers.second_order.schedule import (
    SAMPLE_GAP,
    SAMPLE_STEPS,
    TENSORS,
    Move,
    Schedule,
    has_enough_weight,
    lengthening,
    rules_for,
    sample_size,
    too_rounded,
)
from certsvm.solvers.second_order.smoothing import STEPS, best_step
from certsvm.torch import kernels
from certsvm.torch.batch import BatchRun
from certsvm.torch.problems import TensorProblem
from certsvm.torch.rows import GATHERED

# Up to this share of rows with a changed alpha, sum_k alpha_k y_k is updated, not recomputed.
_FEW_CHANGES = 0.1
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
    losses: ClassVar[tuple[type[Any], ...]] = LOSS_TYPES
    frees_intercept: ClassVar[bool] = True
    ranges: ClassVar = {"max_size": "> 0"}

    max_size: int = 5000
    samples: bool = True

    def start(self, problem: BaseProblem, options: Options) -> Run:
        """Begin a run, alone or with those of other classes."""
        require(isinstance(problem, TensorProblem), self, "it needs rows in tensors")
        require_small_systems(problem, problem.dimension, self.max_size, self)
        problem = cast(TensorProblem, problem)
        if problem.batch is None:
            return self.alone(problem, options)
        problem.batch.begin(options, samples=self.samples)
        alone = lambda start: self.alone(problem, replace(options, start=start))  # noqa: E731
        return BatchRun(problem.batch, problem.number, alone)

    def alone(self, problem: TensorProblem, options: Options) -> Descent:
        """Begin a run of one problem."""
        beginning = Beginning.at(options.start, problem)
        if self.samples and beginning.w is None:
            beginning = from_sample(problem, beginning, int(options.rng.integers(2**62)))
        return Descent(problem, beginning, options.target, keep_alpha=options.keep_alpha)


class Beginning(NamedTuple):
    """Where a descent begins; None means w = 0, and alpha at the centre of smoothing or zero."""

    schedule: Schedule
    w: Tensor | None = None
    alpha: Tensor | None = None

    @classmethod
    def at(cls, start: Start | None, problem: TensorProblem) -> Beginning:
        """Begin at a start, or at zero."""
        rules = rules_for(problem.loss, TENSORS)
        if start is None:
            return cls(Schedule(rules))
        w, alpha = start.w, start.alpha
        like: dict[str, Any] = {"dtype": torch.float64, "device": problem.rows.device}
        return cls(
            Schedule.warm(rules, start.smoothing, smoothing=alpha is None),
            torch.tensor(w, **like),
            None if alpha is None else torch.as_tensor(alpha, **like),
        )


@dataclass(frozen=True)
class Answer:
    """The best J and the best L so far, in one object that an interrupt cannot split."""

    w: Vector
    primal: Bound
    point: DualPoint
    alpha: Tensor


class Directions:
    """The Newton directions of one run; once they are ``exact``, they stay so."""

    def __init__(self, problem: TensorProblem) -> None:
        self._problem = problem
        self.exact = False
        # Consecutive directions that were not finite.
        self._failures = 0

    def find(self, free: Tensor, slope: float, gradient: Tensor, ridge: float = 1.0) -> Tensor:
        """About -(I + slope sum_{k free} s_k y_k y_k')^-1 gradient; NaN if that failed.

        The last entry of I is ``ridge``: less than one if the intercept is free.
        """
        identity = torch.ones_like(gradient)
        identity[-1] = ridge
        if len(free) == 0:
            return -gradient / identity
        H = slope * self._gram(free)
        H.diagonal().add_(identity)
        if self._failures > 1:
            # Even in float64 the matrix is not positive definite: use its diagonal.
            return -gradient / H.diagonal()
        factor, failed = torch.linalg.cholesky_ex(H)
        direction = torch.cholesky_solve(-gradient[:, None], factor)[:, 0]
        # NaN will be noticed; an incomplete factorisation would not be.
        return torch.where(failed == 0, direction, math.nan)

    def _gram(self, free: Tensor) -> Tensor:
        """sum_{k free} s_k y_k y_k'."""
        rows, weights = self._problem.rows, self._problem.row_weights
        scales = None if weights is None else weights[free].sqrt()
        total = torch.zeros(
            (rows.dimension, rows.dimension), dtype=torch.float64, device=rows.device
        )
        for first in range(0, len(free), GATHERED):
            now = slice(first, first + GATHERED)
            of_these = None if scales is None else scales[now]
            total += rows.gram(rows.gathered(free[now]), of_these, exact=self.exact)
        return total

    def judge(self, slopes: Vector, steps: int) -> None:
        """Be exact if the slopes at ``STEPS`` show that the last direction was inaccurate.

        So do many ``steps`` on the same smooth problem.
        """
        self._failures = 0
        # The minimum if the same support vectors stay free: at one for the exact direction.
        minimum = slopes[0] * (STEPS[1] - STEPS[0]) / (slopes[0] - slopes[1] or -math.inf)
        # The slopes do not show all that the direction misses.
        self.exact |= not abs(minimum - 1.0) <= _ACCURATE or steps >= _MANY_STEPS

    def failed(self) -> None:
        """Be exact after a direction that was not finite: the matrix was indefinite."""
        self.exact = True
        self._failures += 1


class Descent(Run):
    """The run of one problem."""

    computes_primal = True
    answer: Answer
    # At the present w: the products with the signed rows, their error, alpha, its sums over rows,
    # the gradient.
    _margins: Tensor
    _error: float
    _unclipped: Tensor
    _alpha: Tensor
    _totals: Tensor
    _gradient: Tensor

    def __init__(
        self, problem: TensorProblem, beginning: Beginning, target: float, *, keep_alpha: bool
    ) -> None:
        self.problem, self.schedule, self.best = problem, beginning.schedule, BestValues()
        self.steps, self.free = 0, 0
        self._target, self._keep_alpha = target, keep_alpha
        self._directions = Directions(problem)
        rows = problem.rows
        like: dict[str, Any] = {"dtype": torch.float64, "device": rows.device}
        self._signs, self._sizes = problem.signs.to(**like), rows.product_roundings
        self._steps_to_try = torch.as_tensor(STEPS, **like)
        formulas: Any = problem.loss
        weights = torch.ones((), **like) if problem.row_weights is None else problem.row_weights
        self._box = formulas.box_end(problem.C, weights)
        # If the intercept is free: which rows are of which label, first those of +1.
        self._sides: Tensor | None = None
        if problem.free_intercept:
            self._sides = torch.stack([self._signs > 0, self._signs < 0])
        self.w = torch.zeros(rows.dimension, **like) if beginning.w is None else beginning.w
        if beginning.alpha is None:
            self._alpha_hat = torch.zeros(problem.n_rows, **like)
            if self.schedule.smoothing:
                self._alpha_hat += formulas.smoothing_centre(problem.C, weights)
        else:
            self._alpha_hat = torch.minimum(beginning.alpha.clamp(min=0.0), self._box)
        # The alpha whose sums over the rows are known, and its dual points: one for all rows or, if
        # the intercept is free, one for those of either label; and what they make.
        self._summed_alpha = self._alpha_hat
        self._points: tuple[DualPoint, ...] = ()
        self._point: DualPoint | None = None
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

    def dual(self) -> DualPoint:
        """The best alpha."""
        return self.answer.point

    def warm_start(self) -> Start:
        """The best w, and the best alpha on its device."""
        return Start(self.answer.w, self.steps, self.answer.alpha, self.schedule.sigma)

    def step(self) -> None:
        """One step of Newton's method, on a new smooth problem if the last one is solved."""
        self.steps += 1
        move = self.schedule.judge(
            squared_gradient(self.problem, self._w_on_host, self._gradient_on_host),
            self.best,
            filled=self.filled,
            free_per_column=self.free / self.problem.dimension,
        )
        if move is not Move.STEP:
            if move is Move.FROM_ZERO:
                self._alpha_hat = torch.zeros_like(self._alpha)
            elif move is Move.MULTIPLIERS:
                self._alpha_hat = self._alpha
            self._evaluate()
        free = ((self._unclipped > 0.0) & (self._unclipped < self._box)).nonzero()[:, 0]
        self.free = len(free)
        problem = self.problem
        slope = problem.loss.response_slope(self.sigma, problem.C)
        ridge = intercept_ridge(problem, self._w_on_host, self._gradient_on_host)
        direction = self._directions.find(free, slope, self._gradient, ridge)
        along = self._signs * problem.rows.products(direction)
        step, direction_length = self._search(direction, along, ridge)
        self.schedule.steps += 1
        if step == 0.0:
            return
        self._error = step_error(self._error, self._length, step, direction_length)
        self._fresh = False
        self.w.add_(direction, alpha=step)
        self._margins.add_(along, alpha=step)
        self._evaluate()

    def _compute_margins(self) -> None:
        self._margins = self._signs * self.problem.rows.products(self.w)
        self._error, self._fresh = product_error(self.w.cpu().numpy()), True

    def _evaluate(self) -> None:
        """Compute alpha(w), its dual point and J, with small enough rounding."""
        self._evaluate_margins()
        if too_rounded(self._primal.rounding, self.best) and not self._fresh:
            # Rounding has accumulated over many steps.
            self._compute_margins()
            self._evaluate_margins()
        factor = lengthening(self._primal, self.best, self._target)
        if factor is not None:
            self._scale(factor)

    def _evaluate_margins(self) -> None:
        """Compute alpha(w), its dual point and J from the present products."""
        self._unclipped, self._alpha, numbers = self._alpha_at(self._margins, self._error)
        change = self._alpha - self._summed_alpha
        which = change.nonzero()[:, 0]
        n_changed: int | None = None
        if self._must_recompute(len(which)):
            self._totals = self.problem.rows.sums(self._of_sides(self._signs * self._alpha))
        else:
            n_changed = len(which)
            moved = self._of_sides(self._signs[which] * change[which], which)
            self._totals = self._totals + self.problem.rows.sums_of(which, moved)
            _of_each_side(numbers)[:, 2] = moved.abs() @ self._sizes[which]
        self._summed_alpha = self._alpha
        total = self._totals.sum(0)
        self._gradient = self.w - total
        if self.problem.free_intercept:
            self._gradient[-1] = -total[-1]
        on_host = torch.cat([numbers, self.w, self._totals.flatten()]).cpu().numpy()
        n = len(numbers)
        self._offer(n_changed, *np.split(on_host, [n, n + self.problem.dimension]))

    def _of_sides(self, values: Tensor, which: Tensor | None = None) -> Tensor:
        """Values of all rows, or those ``which``, in a row for each dual point, else zero."""
        if self._sides is None:
            return values[None]
        sides = self._sides if which is None else self._sides[:, which]
        return torch.where(sides, values, 0.0)

    def _alpha_at(self, margins: Tensor, error: float) -> tuple[Tensor, Tensor, Tensor]:
        problem = self.problem
        return kernels.smoothed_alpha(
            problem.loss, margins, self._alpha_hat, problem.row_weights,
            self._signs if problem.free_intercept else None, self._sizes, self.sigma, problem.C,
            rounding_slack(error, problem.largest_rounding),
        )  # fmt: skip

    def _must_recompute(self, n_changed: int) -> bool:
        """Whether sum_k alpha_k y_k is to be recomputed, not updated."""
        return (
            not self._points
            or n_changed > _FEW_CHANGES * self.problem.m
            or too_rounded(sum(p.w_rounding for p in self._points) * self._length, self.best)
        )

    def _offer(self, n_changed: int | None, numbers: Vector, w: Vector, totals: Vector) -> None:
        """Bounds from the sums of an evaluation.

        The totals sum_k alpha_k y_k are recomputed if ``n_changed`` is None, and otherwise updated
        for so many changed alpha.
        """
        problem = self.problem
        sides = _of_each_side(numbers)
        totals = totals.reshape(len(sides), -1)
        self._w_on_host, self._length = w, length(w)
        self._gradient_on_host = gradient_at(problem, w, totals.sum(0))
        self._primal = _primal(problem, numbers, w, self._error)
        self._points = tuple(
            self._point_of(i, n_changed, side, v)
            for i, (side, v) in enumerate(zip(sides, totals, strict=True))
        )
        point, alpha = self._points[0], self._alpha
        if problem.free_intercept:
            positive, negative = self._points
            point = balanced_point(positive, negative, _balancing(alpha, self._signs))
        else:
            point = replace(point, alpha=lambda: alpha.cpu().numpy())
        if not self._keep_alpha:
            point = replace(point, alpha=None)
        first, self._point = self._point is None, point
        bound = dual_bound(point)[0]
        self.best.offer(self._primal.value, bound.value)
        if first:
            self.answer = Answer(w, self._primal, point, alpha)
        if bound.low > dual_bound(self.answer.point)[0].low:
            self.answer = replace(self.answer, point=point, alpha=alpha)
        self._offer_primal(w, self._primal)

    def _point_of(self, i: int, n_changed: int | None, numbers: Vector, v: Vector) -> DualPoint:
        """The i-th dual point, given the sums over its rows."""
        problem = self.problem
        alpha_sum, penalty, path = numbers.tolist()
        sums = sums_in_any_order(alpha_sum, penalty, kernels.additions_in_parts(problem.n_rows))
        # The sum was weighted by (n_k + 2) |y_k|.
        path /= problem.dimension + 2.0
        if n_changed is None:
            most = problem.loss.largest_multiple
            return RowSums(v, (sums,), path, problem.rows.additions, most).point("multipliers")
        return moved_sum_point(self._points[i], v, sums, 2 * n_changed, path)

    def _offer_primal(self, w: Vector, bound: Bound) -> None:
        if bound.high < self.answer.primal.high:
            self.answer = replace(self.answer, w=w, primal=bound)

    def _scale(self, factor: float) -> None:
        """Evaluate a slightly longer w, which moves rows off the margin."""
        problem, error = self.problem, scaled_error(self._error, self._length, factor)
        numbers = self._alpha_at(factor * self._margins, error)[2].cpu().numpy()
        w = factor * self._w_on_host
        self._offer_primal(w, _primal(problem, numbers, w, error))

    def _search(self, direction: Tensor, along: Tensor, ridge: float) -> tuple[float, float]:
        """The step along a direction, and the length of the direction."""
        unit = 1.0
        while True:
            slopes, square, of_intercept = self._slopes(direction, along, unit)
            if not np.isfinite(slopes).all():
                self._directions.failed()
                return 0.0, 0.0
            if unit == 1.0:
                # The direction is that of a function with the ridge.
                self._directions.judge(slopes + ridge * of_intercept * STEPS, self.schedule.steps)
            step = best_step(slopes)
            if step is None or not 0.0 < step < STEPS[1] or unit < _LEAST_UNIT:
                return unit * (1.0 if step is None else step), math.sqrt(square + of_intercept)
            # Too short to be resolved in this unit.
            unit *= STEPS[1]

    def _slopes(self, direction: Tensor, along: Tensor, unit: float) -> tuple[Vector, float, float]:
        """The slopes of the smooth function at ``unit * STEPS``, and the squared length.

        The latter is that of what the regulariser contains, and that of a free intercept.
        """
        problem = self.problem
        falls = kernels.clipped_sums(
            problem.loss, self._unclipped, along, problem.row_weights, self.sigma, problem.C,
            self._steps_to_try if unit == 1.0 else unit * self._steps_to_try,
        )  # fmt: skip
        last = problem.dimension - problem.free_intercept
        regularised, free = direction[:last], direction[last:]
        of_w = torch.stack([self.w[:last] @ regularised, regularised @ regularised, free @ free])
        on_host = torch.cat([falls, of_w]).cpu().numpy()
        linear, square, of_intercept = on_host[-3:].tolist()
        return linear + unit * STEPS * square - on_host[:-3], square, of_intercept


def _of_each_side(numbers: Any) -> Any:
    """The sums of ``kernels.smoothed_alpha`` that make dual points, in a row for each."""
    return numbers[2:].reshape(-1, 3)


def _balancing(alpha: Tensor, signs: Tensor) -> Callable[[float, float], Vector]:
    """Makes an alpha from the factors of both labels."""

    def balanced(positive: float, negative: float) -> Vector:
        on_host: Vector = torch.where(signs > 0, positive * alpha, negative * alpha).cpu().numpy()
        return on_host

    return balanced


def _primal(problem: TensorProblem, numbers: Vector, w: Vector, error: float) -> Bound:
    """J(w), from the sums of ``kernels.smoothed_alpha``."""
    loss, mass = numbers[:2].tolist()
    sums = LossSums((loss,), (mass,), kernels.additions_in_parts(problem.n_rows))
    return sums.primal(problem.C, w, error, free_intercept=problem.free_intercept)


def primal_bound(problem: TensorProblem, w: Vector) -> Bound:
    """J(w), in one pass over the rows."""
    rows, error = problem.rows, product_error(w)
    like: dict[str, Any] = {"dtype": torch.float64, "device": rows.device}
    products = rows.products(torch.as_tensor(w, **like))
    numbers = kernels.smoothed_alpha(
        problem.loss, problem.signs.to(**like) * products, torch.zeros(problem.n_rows, **like),
        problem.row_weights, None, rows.product_roundings, 1.0, problem.C,
        rounding_slack(error, problem.largest_rounding),
    )[2]  # fmt: skip
    return _primal(problem, numbers.cpu().numpy(), w, error)


def from_sample(problem: TensorProblem, beginning: Beginning, seed: int) -> Beginning:
    """Where to begin: not at zero, but at the solution on a sample of the rows."""
    rows = problem.rows
    size = sample_size(problem.m, rows.dimension, rows.largest_sample)
    if size is None:
        return beginning
    generator = torch.Generator(device=rows.device).manual_seed(seed)
    # With replacement.
    which = torch.randint(rows.n_rows, (size,), generator=generator, device=rows.device)
    which = which.sort().values
    if not _represents(problem, which):
        return beginning
    sample = problem.sample(rows.take(which), which)
    deeper = from_sample(sample, Beginning.at(None, sample), seed + 1)
    descent = Descent(sample, deeper, SAMPLE_GAP, keep_alpha=False)
    while descent.best.relative_gap > SAMPLE_GAP and descent.steps < SAMPLE_STEPS:
        descent.step()
    return Beginning(descent.schedule.on_all_rows(descent.filled), descent.w)


def _represents(problem: TensorProblem, which: Tensor) -> bool:
    """Whether a sample of rows represents the problem."""
    if problem.free_intercept and not problem.has_both_classes(which):
        return False
    if problem.row_weights is None:
        return True
    weight_share = float(problem.row_weights[which].sum()) / problem.weight_sum
    return has_enough_weight(weight_share, len(which), problem.m)
