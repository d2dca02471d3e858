"""Newton on tensors: the second-order method on the device of the data.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k loss(w.y_k)

by the method that ``solvers.schedule`` explains, as ``solvers.newton`` does in memory. The time
goes elsewhere on a GPU, so the computations differ:

* A step reads the rows for the products with the direction and for sum_k alpha_k y_k. Both are in
  float64, which costs nothing (``kernels``), and give J and L with their rounding.
* Gram matrices of free support vectors are computed from rows in half precision, on tensor cores.
  If the curvature along a direction shows that it was inaccurate, they are computed in float64 from
  then on.
* If the intercept is free, the dual point takes the sums over the rows of either label. One pass
  gives both.
* Several problems are trained together first (``batch``).

Given:      C, s, the rows in tensors; at most ``max_size`` columns.
Result:     w, and alpha(w).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates import rounding
from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import ClassSums, DualPoint, dual_bound
from certsvm.certificates.primal import LossSums
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import BOTH_LOSSES
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector
from certsvm.solvers import directions, schedule
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start, require
from certsvm.solvers.schedule import Move, Schedule
from certsvm.solvers.smoothing import minimum_along
from certsvm.torch import kernels
from certsvm.torch.batch import BatchRun
from certsvm.torch.problems import TensorProblem

# Tolerated distance of the minimum along a direction, if no row ceases to be free, from one.
_ACCURATE = 0.02
# Steps on one smooth problem that indicate inaccurate directions.
_MANY_STEPS = 8
# Numbers of rows on a GPU that are read in the time of a wait for it: samples do not pay.
_SMALL = 1e8


@dataclass(frozen=True)
class TensorNewton(Solver, max_size="> 0"):
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

    max_size: int = 5000
    samples: bool = True

    def start(self, problem: BaseProblem, options: Options) -> Run:
        """Begin a run, alone or with those of other classes."""
        require(isinstance(problem, TensorProblem), self, "it needs rows in tensors")
        assert isinstance(problem, TensorProblem)
        directions.require_small_systems(problem, problem.dimension, self.max_size, self)

        def alone(start: Start | None) -> Descent:
            return Descent(problem, replace(options, start=start), samples=self.samples)

        if problem.batch is None:
            return alone(options.start)
        problem.batch.begin(options, samples=self.samples)
        return BatchRun(problem.batch, problem.number, alone)


class Descent(Run):
    """The run of one problem.

    The best J and the best L so far are each in one object that an interrupt cannot split.
    """

    computes_primal = True
    # At the present w: the products with the signed rows and their error, alpha before clipping and
    # after, the free support vectors and their number, the dual point, the gradient.
    _margins: Tensor
    _error: float
    _unclipped: Tensor
    _alpha: Tensor
    _free: Tensor
    free: int
    _point: DualPoint
    _gradient: Vector
    _best_primal: tuple[Vector, Bound] | None = None
    _best_dual: tuple[DualPoint, Tensor] | None = None

    def __init__(self, problem: TensorProblem, options: Options, *, samples: bool = True) -> None:
        self.problem, self._options, self.best = problem, options, BestValues()
        self.steps, self._exact = 0, False
        start, rules = options.start, schedule.rules_for(problem.loss, schedule.TENSORS)
        self.w, self.schedule = options.first_w(problem), Schedule(rules)
        # Methods of losses take tensors, too.
        self._loss: Any = problem.loss
        self._signs, self._weights = problem.signs, problem.row_weights
        self._box = self._loss.box_end(problem.C, self._weights)
        self._alpha_hat = torch.zeros_like(self._signs)
        if start is not None:
            smoothing = start.alpha is None
            self.schedule = Schedule.warm(rules, start.smoothing, smoothing=smoothing)
            if not smoothing:
                self._alpha_hat += torch.as_tensor(start.alpha, device=self._signs.device)
                self._alpha_hat = torch.minimum(self._alpha_hat.clamp_(min=0.0), self._box)
        elif samples and (run := run_on_sample(problem, options)) is not None:
            self.w, self.schedule = run.w, run.schedule.on_all_rows(run.filled)
        if self.schedule.smoothing:
            self._alpha_hat += self._loss.smoothing_centre(problem.C, self._weights)
        self._compute_margins()
        self._evaluate()

    @property
    def sigma(self) -> float:
        """The slope of alpha as a function of the margin."""
        return self.schedule.sigma * self.problem.C

    @property
    def filled(self) -> float:
        """The sum of alpha relative to its largest feasible value."""
        return self._point.alpha_sum / (self.problem.C * self.problem.weight_sum)

    def epoch(self) -> Epoch:
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
        direction, along = self._direction()
        step = self._step_along(direction, along)
        self.schedule.steps += 1
        if step > 0.0:
            lengths = rounding.length(w), step, rounding.length(direction)
            self._error, self._fresh = rounding.step_error(self._error, *lengths), False
            self.w = w + step * direction
            self._margins.add_(along, alpha=step)
            self._evaluate()
        return Epoch(
            epochs=self.steps, free=self.free, primal_estimate=self.primal()[1].value,
            finished=self.schedule.finished,
        )  # fmt: skip

    def candidates(self) -> Iterator[Vector]:
        """The best w."""
        yield self.primal()[0]

    def primal(self) -> tuple[Vector, Bound]:
        """The best w, and J there."""
        assert self._best_primal is not None
        return self._best_primal

    def dual(self) -> DualPoint:
        """The best alpha."""
        assert self._best_dual is not None
        return self._best_dual[0]

    def warm_start(self) -> Start:
        """The best w, and the best alpha on its device."""
        assert self._best_dual is not None
        return Start(self.primal()[0], self.steps, self._best_dual[1], self.schedule.sigma)

    def _direction(self) -> tuple[Vector, Tensor]:
        """About -(I + slope sum_{k free} s_k y_k y_k')^-1 gradient, and its products with the rows.

        The last entry of I is a ridge of less than one if the intercept is free.
        """
        problem, slope = self.problem, self._loss.response_slope(self.sigma, self.problem.C)
        gradient = torch.as_tensor(self._gradient, device=self._free.device)
        identity = np.ones(problem.dimension)
        identity[-1] = directions.intercept_ridge(problem, self.w, self._gradient)
        H = slope * problem.rows.gram(self._free, self._weights, exact=self._exact)
        H.diagonal().add_(torch.as_tensor(identity, device=H.device))
        factor, failed = torch.linalg.cholesky_ex(H)
        solution = torch.cholesky_solve(gradient[:, None], factor)[:, 0]
        # If rounding made the matrix indefinite, its diagonal gives a direction of descent.
        direction = -torch.where(failed == 0, solution, gradient / H.diagonal())
        along = self._signs * problem.rows.products(direction)
        of_rows = slope * float((self._free * self._weights * along * along).sum())
        on_host = direction.cpu().numpy()
        # If the same rows stay free, the minimum along the exact direction is at one (and there is
        # none along zero). This does not show all that a direction misses; many steps do.
        fall, curvature = -float(self._gradient @ on_host), float(identity @ on_host**2) + of_rows
        self._exact |= not abs(fall - curvature) < _ACCURATE * curvature
        self._exact |= self.schedule.steps >= _MANY_STEPS
        return on_host, along

    def _step_along(self, direction: Vector, along: Tensor) -> float:
        """The length of the step; none along a direction that is not finite."""
        if not np.isfinite(direction).all():
            return 0.0
        slope = self._loss.response_slope(self.sigma, self.problem.C)
        change = slope * self._weights * along

        def falls(t: float) -> float:
            alpha = torch.sub(self._unclipped, change, alpha=t).clamp_(min=0.0)
            return float(torch.minimum(alpha, self._box) @ along)

        return minimum_along(self.problem, self.w, direction, falls)

    def _compute_margins(self) -> None:
        w = torch.as_tensor(self.w, device=self._signs.device)
        self._margins = self._signs * self.problem.rows.products(w)
        self._error, self._fresh = rounding.product_error(self.w), True

    def _evaluate(self) -> None:
        """Compute alpha(w), its dual point and J, with small enough rounding."""
        bound = self._evaluate_margins()
        if schedule.too_rounded(bound.rounding, self.best) and not self._fresh:
            # Rounding has accumulated over many steps.
            self._compute_margins()
            bound = self._evaluate_margins()
        factor = schedule.lengthening(bound, self.best, self._options.target)
        if factor is not None:
            # A slightly longer w, which moves rows off the margin.
            error = rounding.scaled_error(self._error, rounding.length(self.w), factor)
            w, margins = factor * self.w, factor * self._margins
            self._offer_primal(w, loss_at(self.problem, w, margins, error))

    def _evaluate_margins(self) -> Bound:
        """Compute alpha(w), its dual point and J from the present products; return J."""
        problem, signs = self.problem, self._signs
        sides = (signs > 0.0, signs < 0.0) if problem.free_intercept else ()
        self._unclipped, alpha, numbers = smoothed(
            problem, self._margins, self._error, self._alpha_hat, self.sigma, sides
        )
        self._alpha, signed = alpha, signs * alpha
        self._free = (self._unclipped > 0.0) & (self._unclipped < self._box)
        vectors = [torch.where(side, signed, 0.0) for side in sides] or [signed]
        v = problem.rows.sums(torch.stack(vectors))
        free = self._free.sum(dtype=v.dtype)
        # One wait for the device.
        on_host = torch.cat([free[None], numbers, v.flatten()]).cpu().numpy()
        self.free, of_primal, rest = int(on_host[0]), on_host[1:3], on_host[3:]
        of_sides, v = np.split(rest, [3 * len(vectors)])
        of_sides, v = of_sides.reshape(-1, 3), v.reshape(len(vectors), -1)
        self._gradient = directions.gradient_at(problem, self.w, v.sum(0))
        in_parts = kernels.additions_in_parts(problem.n_rows)
        sums = [
            kernels.row_sums(problem.loss, of_side.tolist(), of_v, problem.rows.additions, in_parts)
            for of_side, of_v in zip(of_sides, v, strict=True)
        ]

        def kept_alpha(positive: float = 1.0, negative: float = 1.0) -> Vector:
            factors = torch.where(signs > 0.0, alpha.new_tensor(positive), negative)
            on_host: Vector = (factors * alpha).cpu().numpy()
            return on_host

        kept = kept_alpha if self._options.keep_alpha else None
        both = ClassSums(*sums) if problem.free_intercept else sums[0]
        self._point = both.point("multipliers", kept)
        dual, bound = dual_bound(self._point)[0], _primal(problem, self.w, of_primal, self._error)
        self.best.offer(bound.value, dual.value)
        if self._best_dual is None or dual.low > dual_bound(self._best_dual[0])[0].low:
            self._best_dual = self._point, alpha
        self._offer_primal(self.w, bound)
        return bound

    def _offer_primal(self, w: Vector, bound: Bound) -> None:
        if self._best_primal is None or bound.high < self._best_primal[1].high:
            self._best_primal = w, bound


def smoothed(
    problem: TensorProblem, margins: Tensor, error: float, alpha_hat: Tensor, sigma: float = 1.0,
    sides: tuple[Tensor, ...] = (),
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The ``kernels.smoothed_alpha`` of a problem, given the ``error`` of its margins."""
    slack = rounding.rounding_slack(error, problem.largest_rounding)
    return kernels.smoothed_alpha(
        problem.loss, margins, alpha_hat, problem.row_weights, problem.rows.product_roundings,
        sigma, problem.C, slack, sides,
    )  # fmt: skip


def _primal(problem: TensorProblem, w: Vector, numbers: Tensor, error: float) -> Bound:
    loss, mass = numbers.tolist()
    sums = LossSums((loss,), (mass,), kernels.additions_in_parts(problem.n_rows))
    return sums.primal(problem.C, w, error, free_intercept=problem.free_intercept)


def loss_at(problem: TensorProblem, w: Vector, margins: Tensor, error: float) -> Bound:
    """J(w), given the margins and their error."""
    numbers = smoothed(problem, margins, error, torch.zeros_like(margins))[2]
    return _primal(problem, w, numbers[:2], error)


def primal_bound(problem: TensorProblem, w: Vector) -> Bound:
    """J(w), in one pass over the rows."""
    margins = problem.signs * problem.rows.products(torch.as_tensor(w, device=problem.rows.device))
    return loss_at(problem, w, margins, rounding.product_error(w))


def run_on_sample(problem: TensorProblem, options: Options) -> Descent | None:
    """A run near the optimum on a sample of the rows, or None if there is no useful sample."""
    rows = problem.rows
    size = schedule.sample_size(problem.m, rows.dimension, rows.largest_sample)
    if size is None or (rows.X.is_cuda and rows.X.numel() <= _SMALL):
        return None
    seed = int(options.rng.integers(2**62))
    generator = torch.Generator(device=rows.device).manual_seed(seed)
    # With replacement.
    which = torch.randint(rows.n_rows, (size,), generator=generator, device=rows.device)
    which = which.sort().values
    signs, weights = problem.signs[which], problem.row_weights[which]
    share = float(weights.sum()) / problem.weight_sum
    least, most = torch.stack((signs * weights).aminmax()).tolist()
    one_sided = problem.free_intercept and not least < 0.0 < most
    if one_sided or not schedule.has_enough_weight(share, size, problem.m):
        return None
    objective = problem.objective.at(problem.C / share)
    sample = TensorProblem(rows.take(which), signs, row_weights=weights, **objective.keywords)
    of_sample = replace(options, start=None, target=schedule.SAMPLE_GAP, keep_alpha=False)
    run = Descent(sample, of_sample)
    for _ in range(schedule.SAMPLE_STEPS):
        if run.best.relative_gap <= schedule.SAMPLE_GAP:
            break
        run.epoch()
    return run
