"""Newton: second order, for few columns.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

through a sequence of smooth problems. With a point alpha_hat in the box and sigma > 0, let

    alpha_k(w) = clip(alpha_hat_k + sigma s_k (1 - w.y_k), 0, C s_k),       feasible for any w.

grad(w) = w - sum_k alpha_k(w) y_k is the gradient of a convex, piecewise quadratic function, the
augmented Lagrangian of the dual problem. Its Hessian is I + sigma sum_{k in band} s_k y_k y_k',
where the band holds the rows with alpha_k strictly inside the box. A step of Newton's method solves
with it, then goes to the minimum along the direction, which one product with the rows gives.

When |grad|^2 / 2 is small against the gap J - L, the smooth problem is solved well enough:

* at first alpha_hat stays in the middle of the box and sigma grows (the hinge's kink is rounded off
  less and less), which leads near the optimum in a few steps from anywhere;
* then alpha_hat <- alpha(w), the method of multipliers, in which sigma need not grow without bound:
  this goes on to high accuracy.

If hardly any row is short of its margin, smoothing about the middle of the box makes w too long,
and each sigma undoes what the last one found. So if the alpha of the first smooth problem add up to
little of what the boxes hold, the multipliers begin at once, from alpha_hat = 0.

Most steps are spent on coming near, and for that a part of the rows is as good as all: where there
are many more rows than columns, the same is first done on a random sample, and on a sample of
that, and so on; the w and the width of the smoothing found there start the next larger one.

The number of steps grows slowly with C and with the accuracy. A step costs two readings of the
rows, the Gram matrix of the band, and the solution of a system as large as the number of columns.
J comes with each step, since the products of w with all rows are at hand.

A number for each row is kept. ``smoothed_newton`` is the form that does without, for streams.

Given:      C, s, the rows; at most ``max_columns`` columns.
Result:     w, and alpha(w).

References: O. Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19
(2007), for the smoothed hinge; R. T. Rockafellar, Augmented Lagrangians and Applications of the
Proximal Point Algorithm in Convex Programming, Mathematics of Operations Research 1 (1976).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, dual_bound, dual_point, moved_point
from certsvm.certificates.primal import Products
from certsvm.certificates.rounding import Bound
from certsvm.kernels.rows import Vector
from certsvm.problem.base import SummableProblem
from certsvm.problem.memory import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.second_order.hessian import gram, newton_direction
from certsvm.solvers.second_order.response import clipped_sum, inside, respond
from certsvm.solvers.shared.dual_start import alpha_from_margins
from certsvm.solvers.smoothed_newton import SmoothedNewton, require_few_columns
from certsvm.storage.fields import array, count, flag, nested, number, positive, record
from certsvm.storage.state import State

# The smooth problem is solved well enough when |grad|^2 / 2 is this fraction of the gap.
INNER = 0.05
# From this gap on, alpha_hat follows alpha.
NEAR = 0.02
SMOOTHING_STAGES = 3
# Below this share of what the boxes hold, alpha says that the classes are nearly separable.
NEARLY_SEPARABLE = 0.02
GROWTH_SMOOTHING, GROWTH_MULTIPLIERS = 4.0, 3.0
# sigma is this times C at first, and this at last.
FIRST_SIGMA, LARGEST_SIGMA = 0.45, 1e12
# Steps on one smooth problem after which it is left as it is, and after which, while smoothing, a
# smoother one is taken.
MOST_INNER, MOST_SMOOTHING = 25, 10
# A sample has this share of the rows, and not fewer for each column, nor in all.
SAMPLE, SAMPLE_PER_COLUMN, SMALLEST_SAMPLE = 1 / 12, 20, 1000
# It is left at this gap, or after so many steps.
SAMPLE_GAP, SAMPLE_STEPS = 0.03, 30
# Rounding may take this share of the gap before the products are computed anew.
_ROUNDING = 0.05
# This share of the tolerance may be spent on moving rows off their margins.
_LONGER = 0.1
# If fewer of the rows have another alpha than before, their sum is corrected instead of made anew.
_FEW_CHANGES = 0.3
# Fewer rows are not worth sharing among threads.
_LEAST_SHARED = 200_000


@dataclass(frozen=True)
class Newton(Solver):
    """Second-order method for few columns.

    Parameters
    ----------
    max_columns : int, default=5000
        With more columns than this, refuse: the memory grows with their square, the time of a
        step with their cube.
    samples : bool, default=True
        Whether to begin on samples of the rows. Steps on samples are not counted as passes, and
        limits are looked at only after them.

    Examples
    --------
    >>> Newton().name
    'newton'
    """

    name: ClassVar[str] = "newton"
    goes_on_from_alpha: ClassVar[bool] = True
    problem_type: ClassVar[type[Any]] = SummableProblem

    max_columns: int = 5000
    samples: bool = True

    def __post_init__(self) -> None:
        require(self.max_columns > 0, self, f"max_columns must be > 0, got {self.max_columns}")

    def start(self, problem: SummableProblem, options: Options) -> Run:
        """Begin a run; alpha is at hand in any case. On a stream, that of ``SmoothedNewton``."""
        if not isinstance(problem, Problem):
            return SmoothedNewton(self.max_columns, self.samples).start(problem, options)
        return self.start_in_memory(problem, options)

    def start_in_memory(self, problem: Problem, options: Options) -> NewtonRun:
        """Begin a run on rows that are all at hand."""
        require_few_columns(problem, self.max_columns, self)
        return NewtonRun(problem, options, samples=self.samples)


class NewtonRun(Run):
    """The second-order method on one problem."""

    STATE = State(
        steps=count(),
        stages=count(),
        inner=count(),
        smoothing=flag(),
        sigma=positive(),
        best_dual=number(low=0.0),
        best_primal=number(low=0.0, infinite=True),
        alpha_hat=array("n_rows", low=0.0, high="box"),
        alpha=array("n_rows", low=0.0, high="box"),
        unclipped=array("n_rows"),
        products=nested(),
        summed=record(
            partial(DualPoint, source="multipliers"),
            alpha_sum=number(low=0.0),
            w=array("dimension"),
            alpha_sum_rounding=number(low=0.0),
            w_rounding=number(low=0.0),
        ),
    )

    computes_primal = True

    def __init__(self, problem: Problem, options: Options, *, samples: bool = True) -> None:
        self._problem = problem
        self._team = options.team
        self._target = options.target
        box = problem.C * problem.weights
        self._steps = 0
        self._stages = 0
        self._inner = 0
        self._best_dual = 0.0
        self._best_primal = math.inf
        self._smoothing = options.start is None
        self._sigma = FIRST_SIGMA * problem.C
        start = options.start
        if start is not None:
            w = start.w.copy()
            self._alpha_hat = (
                alpha_from_margins(problem, w)
                if start.alpha is None
                else np.clip(start.alpha, 0.0, box)
            )
        else:
            w = np.zeros(problem.rows.dimension)
            self._alpha_hat = 0.5 * box
            if samples and not options.resumed:
                w, share, self._smoothing = from_a_sample(problem, options)
                self._sigma = share * problem.C
                if not self._smoothing:
                    self._alpha_hat[:] = 0.0
        self._keep_alpha = options.keep_alpha
        # Fresh memory costs as much as working on it, so all arrays as long as the data are kept.
        self._rows = np.empty(problem.rows.n_rows, dtype=np.int64)
        self._unclipped = np.empty(problem.rows.n_rows)
        self._alpha = np.empty(problem.rows.n_rows)
        # The alpha whose sum over the rows is known, and the point it gave.
        self._summed_alpha, self._change = np.zeros((2, problem.rows.n_rows))
        self._summed: DualPoint | None = None
        # A dual point between two steps, if it is the best so far.
        self._between: DualPoint | None = None
        self._products = Products(problem, w, self._team)
        self._along = self._products.copy()
        if not options.resumed:
            self._evaluate()
        self._complete = not options.resumed

    def state_loaded(self) -> None:
        """The dual point and the gradient follow from the state."""
        assert self._summed is not None
        self._summed_alpha[:] = self._alpha
        self._point = self._summed
        self._gradient = self.w - self._point.w

    @property
    def w(self) -> Vector:
        """The weight vector."""
        return self._products.w

    @property
    def smoothing(self) -> float:
        """The kink is rounded off over C / (2 sigma) to both sides; this is sigma / C."""
        return self._sigma / self._problem.C

    @property
    def relative_gap(self) -> float:
        """Between the best values so far."""
        return self._best_primal / self._best_dual - 1.0 if self._best_dual > 0.0 else math.inf

    @property
    def nearly_separable(self) -> bool:
        """Whether hardly any row is short of its margin."""
        boxes = self._problem.C * self._problem.weight_sum
        return self._point.alpha_sum < NEARLY_SEPARABLE * boxes

    def _evaluate(self) -> None:
        """alpha(w), its dual point, and the objective, from w and its products."""
        problem = self._problem

        def respond_in(first: int, last: int) -> None:
            part = slice(first, last)
            respond(
                self._products.values[part], problem.weights[part], self._alpha_hat[part],
                self._sigma, problem.C, self._unclipped[part], self._alpha[part],
            )  # fmt: skip

        self._share(respond_in)
        self._point = self._dual_point()
        # alpha is overwritten by the next step; whoever keeps it needs a copy.
        self._point = replace(self._point, alpha=self._alpha.copy if self._keep_alpha else None)
        self._primal = self._products.primal_bound(self._team)
        self._best_primal = min(self._best_primal, self._primal.value)
        self._best_dual = max(self._best_dual, dual_bound(self._point)[0].value)
        if self._primal.rounding > _ROUNDING * max(self._best_primal - self._best_dual, 0.0):
            self._products.compute(self._team)
            self._primal = self._products.primal_bound(self._team)
        self._gradient = self.w - self._point.w
        self._answer = self._clear_of_the_margin()

    def _clear_of_the_margin(self) -> tuple[Vector, Bound]:
        """W and J(w); or those of a w a little longer, if that lets more be claimed.

        Rows on the margin may have a loss of a rounding error each, times C. Further out they have
        none, for sure, and w need only be longer by a small part of the tolerance for that.
        """
        target = self._target * self._best_dual
        if self._primal.rounding <= _ROUNDING * target or self.relative_gap > self._target:
            return self.w, self._primal
        longer = self._products.copy()
        longer.mix(1.0 + _LONGER * self._target, 0.0, self._along)
        bound = longer.primal_bound(self._team)
        if bound.value + bound.rounding < self._primal.value + self._primal.rounding:
            return longer.w, bound
        return self.w, self._primal

    def _dual_point(self) -> DualPoint:
        """That of alpha; from the last one, where few rows have another alpha since."""
        problem, last = self._problem, self._summed
        np.subtract(self._alpha, self._summed_alpha, out=self._change)
        changed = int(np.count_nonzero(self._change))
        gap = max(self._best_primal - self._best_dual, 0.0)
        if (
            last is None
            or changed > _FEW_CHANGES * problem.m
            or last.w_rounding * math.sqrt(float(last.w @ last.w)) > _ROUNDING * gap
        ):
            point = dual_point(problem, self._alpha, "multipliers", self._team)
        else:
            point = moved_point(problem, last, self._change, self._alpha, self._team)
        self._summed_alpha[:] = self._alpha
        self._summed = point
        return point

    def epoch(self) -> Epoch:
        """One step of Newton's method, after a new stage if the last one is done."""
        self._steps += 1
        self._complete = False
        self._between = None
        if self._solved_well_enough():
            known = self._best_dual
            self._next_stage()
            if self._best_dual > known:
                # The step that follows may come to an alpha that is worse.
                self._between = self._kept_point()
        elif self._smoothing and self._inner >= MOST_SMOOTHING and self.smoothing > FIRST_SIGMA:
            # Too steep for where it began (a sample's answer, say): on from here, but smoother.
            self._inner = 0
            self._sigma = FIRST_SIGMA * self._problem.C
            self._evaluate()
        band = self._band()
        H = gram(self._problem, band, self._sigma * self._problem.weights[band], self._team)
        direction = newton_direction(H, self._gradient)
        self._along.w = direction
        self._along.compute(self._team)
        if self._problem.m < self._along.values.size:
            self._along.values[self._problem.signed_weights == 0.0] = 0.0
        step = self._line_search(direction, self._along.values)
        self._products.mix(1.0, step, self._along)
        self._inner += 1
        self._evaluate()
        self._complete = True
        return Epoch(epochs=self._steps, free=int(band.size), primal_estimate=self._primal.value)

    def _kept_point(self) -> DualPoint:
        """The present dual point, with an alpha that is not overwritten."""
        alpha = self._alpha.copy().copy if self._keep_alpha else None
        return replace(self._point, alpha=alpha)

    def _band(self) -> NDArray[np.int64]:
        """The rows whose alpha is strictly inside its box."""
        size = inside(self._unclipped, self._problem.weights, self._problem.C, self._rows)
        return self._rows[:size]

    def _solved_well_enough(self) -> bool:
        gap = max(self._best_primal - self._best_dual, 0.0)
        return (
            0.5 * float(self._gradient @ self._gradient) <= INNER * gap or self._inner >= MOST_INNER
        )

    def _next_stage(self) -> None:
        self._stages += 1
        self._inner = 0
        if self._smoothing and self.nearly_separable:
            self._alpha[:] = 0.0
            self._smoothing = False
        elif self.relative_gap <= NEAR or self._stages > SMOOTHING_STAGES:
            self._smoothing = False
        if self._smoothing:
            self._sigma *= GROWTH_SMOOTHING
        else:
            self._alpha_hat, self._alpha = self._alpha, self._alpha_hat
            self._sigma = min(self._sigma * GROWTH_MULTIPLIERS, LARGEST_SIGMA * self._problem.C)
        self._evaluate()

    def _share(self, task: Callable[[int, int], Any]) -> list[Any]:
        """Share what is done row by row; few rows are not worth it.

        Tasks pass slices to kernels: a loop over a whole array is compiled into vector
        instructions, one from a given first to a given last element is not.
        """
        rows = self._problem.rows.n_rows
        if rows < _LEAST_SHARED:
            return [task(0, rows)]
        return self._team.share(task, rows)

    def _line_search(self, direction: Vector, products: Vector) -> float:
        """The minimum along the direction: where the derivative, which rises, is zero."""
        slope, curvature = float(self.w @ direction), float(direction @ direction)
        weights, sigma, C = self._problem.weights, self._sigma, self._problem.C

        def derivative(t: float) -> float:
            def sum_of(first: int, last: int) -> float:
                part = slice(first, last)
                return clipped_sum(
                    self._unclipped[part], weights[part], sigma, C, products[part], t
                )

            return slope + t * curvature - float(sum(self._share(sum_of)))

        first = derivative(0.0)
        if not first < 0.0:
            return 0.0
        low, high = 0.0, 1.0
        at_high = derivative(high)
        while at_high < 0.0 and abs(at_high) > 0.1 * abs(first) and high < 64.0:
            low, high = high, 2.0 * high
            at_high = derivative(high)
        if at_high <= 0.0 or abs(at_high) <= 0.1 * abs(first):
            return high
        at_low = derivative(low) if low > 0.0 else first
        for _ in range(30):
            # Regula falsi, kept away from the ends, since the derivative has kinks.
            share = min(max(-at_low / (at_high - at_low), 0.1), 0.9)
            t = low + share * (high - low)
            now = derivative(t)
            if abs(now) <= 0.02 * abs(first):
                return t
            if now < 0.0:
                low, at_low = t, now
            else:
                high, at_high = t, now
        return low if low > 0.0 else high

    def candidates(self) -> Iterator[Vector]:
        """The present w."""
        yield self.w

    def primal(self) -> tuple[Vector, Bound] | None:
        """W and J(w)."""
        return self._answer if self._complete else None

    def dual(self) -> DualPoint | None:
        """alpha(w), or that of before the step if it is better."""
        if not self._complete:
            return None
        if self._between is None:
            return self._point
        return max(self._between, self._point, key=lambda point: dual_bound(point)[0].low)


def from_a_sample(problem: Problem, options: Options) -> tuple[Vector, float, bool]:
    """Find w, sigma / C and whether to smooth from a sample of the rows.

    Zero, the first sigma, and yes, if all rows are few.
    """
    size = max(int(SAMPLE * problem.m), SAMPLE_PER_COLUMN * problem.rows.dimension, SMALLEST_SAMPLE)
    if 3 * size > problem.m:
        return np.zeros(problem.rows.dimension), FIRST_SIGMA, True
    which = np.sort(options.rng.choice(problem.active, size, replace=False))
    share = float(problem.weights[which].sum()) / problem.weight_sum
    if share < 0.1 * size / problem.m:
        # Few rows have most of the weight, and the sample has none of them.
        return np.zeros(problem.rows.dimension), FIRST_SIGMA, True
    run = NewtonRun(problem.sample(which), replace(options, start=None, keep_alpha=False))
    for _ in range(SAMPLE_STEPS):
        if run.relative_gap <= SAMPLE_GAP:
            break
        run.epoch()
    return run.w, run.smoothing, not run.nearly_separable
