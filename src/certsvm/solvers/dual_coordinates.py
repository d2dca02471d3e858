"""The state of dual coordinate descent: alpha, and w = sum_k alpha_k y_k with its rounding.

A warm start needs a feasible alpha: a given one, or one computed from the margins of w. If w is
near the optimum, the derivative of a slightly smoothed loss at its margins gives an alpha that is
feasible and nearly optimal. For the hinge, the optimal alpha_k is C s_k if w.y_k < 1, zero if
w.y_k > 1, and between these on the margin. Smoothed over a width delta on both sides, this is

    alpha_k = C s_k clip((1 + delta - w.y_k) / (2 delta), 0, 1).

The best of several delta is taken. A smooth loss needs no smoothing, and has one such alpha.
Of a given alpha, the best multiple is taken. One from another C was scaled as its box: the alpha of
a row inside the margin grows with C, but that of rows on the margin hardly does.

If the intercept is free, alpha must satisfy sum_k label_k alpha_k = 0. The method of multipliers
maximises

    L(alpha) - b_hat sum_k label_k alpha_k - rho^2 / 2 (sum_k label_k alpha_k)^2

for a fixed b_hat, and then moves b_hat to b_hat + rho^2 sum_k label_k alpha_k. With the last entry
of w moved by b_hat / rho, that is the problem whose intercept is penalised: steps do not change. It
is the proximal point method for b, with the term (b - b_hat)^2 / (2 rho^2).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates import dual
from certsvm.certificates.dual import DualPoint, dual_bound, dual_point, point_of
from certsvm.certificates.primal import multiply
from certsvm.certificates.rounding import length, updates_rounding
from certsvm.kernels import losses
from certsvm.kernels.jit import kernel
from certsvm.kernels.losses import Loss, box_end, response, smoothing_centre
from certsvm.kernels.rows import RowArrays, Vector, add, visit_row
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem, PartedProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part
from certsvm.resources import Team
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.directions import cost_of_balance

Indices = NDArray[np.int64]

# The widths delta that are tried to make an alpha from margins.
_WIDTHS = tuple(4.0**-i for i in range(6))


def visit(
    part: Part, order: Indices, longest: float, steps: Callable[[Indices], Any]
) -> tuple[Indices, list[Any], float]:
    """Call the kernel ``steps``, which moves w, on the rows of ``order``, in pieces.

    w has not been longer than ``longest`` so far.

    The kernel moves the rows that stay active to the front of its piece, and returns their number,
    the number of updates, sums of its own, and the lengths of all updates of w. Returns the rows
    that stay active, all but the first of these results, each as a tuple with one for each piece,
    and the rounding in w.
    """
    kept, results = 0, []
    for piece in part.slices(order):
        n_active, *sums = steps(piece)
        order[kept : kept + n_active] = piece[:n_active]
        kept += n_active
        results.append(sums)
    columns = list(zip(*results, strict=True))
    # Neither w nor a step was ever longer.
    reach = longest + sum(columns[-1])
    return order[:kept], columns, updates_rounding(sum(columns[0]), reach, reach)


class DualCoordinateRun(Run):
    """A run that moves alpha one coordinate at a time, and w with it."""

    def __init__(self, solver: Solver, problem: Problem, options: Options) -> None:
        super().__init__(solver, problem, options)
        self.alpha = starting_alpha(problem, options.start)
        # The intercept divided by rho, if it is free: the multiplier of sum_k label_k alpha_k = 0.
        self._multiplier = 0.0
        if problem.free_intercept and options.start is not None:
            self._multiplier = float(options.start.w[-1])
        self._compute_w()
        self._dual_value = 0.0
        self._dual_point = self._point

    def _compute_w(self) -> None:
        """Compute w from alpha, which resets its rounding."""
        self._w, self._rounding = w_of_alpha(self._problem, self.alpha, self._options.team)
        if self._problem.free_intercept:
            self._w[-1] += self._multiplier

    def _visit(
        self, order: Indices, omega: float, low: float, high: float
    ) -> tuple[Indices, int, float, float, float]:
        """Make a step on each row of ``order``, by the kernel ``sweep``.

        Returns the rows that stay active, the number of updates, an estimate of J - L, and the
        largest and the smallest projected gradient. Until the pass ends, w may not belong to alpha.
        """
        self._dual_point = None
        problem, alpha, w = self._problem, self.alpha, self._w
        active, (updates, gaps, largest, smallest, _), rounding = visit(
            problem, order, length(w),
            lambda piece: sweep(
                problem.loss, problem.rows.arrays, problem.signed_weights,
                problem.rows.squared_norms, problem.C, omega, 1.0, low, high, piece, alpha, w,
            ),
        )  # fmt: skip
        self._rounding += rounding
        gap = sum(gaps)
        regularised = problem.regularised(w)
        value = dual.dual_sum(problem, alpha).value - 0.5 * inner(regularised, regularised)
        if problem.free_intercept:
            # w[-1] is the multiplier, plus rho sum_k label_k alpha_k.
            off = float(w[-1]) - self._multiplier
            # What is maximised, not L itself.
            self._dual_value = max(value - float(w[-1]) * off, 0.0)
            gap += cost_of_balance(problem, w, off)
            self._multiplier += off
            w[-1] += off
        else:
            self._dual_value = max(self._dual_value, value)
        return active, sum(updates), max(gap, 0.0), max(largest), min(smallest)

    def _end_pass(self, updates: int, gap: float, **others: Any) -> Epoch:
        """What a complete pass reports, given an estimate of J - L."""
        self._passes += 1
        self._dual_point = self._point
        primal = self._dual_value + gap
        return Epoch(epochs=self._passes, updates=updates, primal_estimate=primal, **others)

    def _point(self) -> DualPoint:
        """The point alpha."""
        problem, keep_alpha, source = self._problem, self._options.keep_alpha, "dual coordinates"
        if problem.free_intercept:
            point = dual_point(problem, self.alpha.copy(), source, self._options.team)
            return point if keep_alpha else replace(point, alpha=None)
        return point_of(problem, self.alpha, self._w, self._rounding, source, keep_alpha=keep_alpha)


def w_of_alpha(problem: PartedProblem, alpha: Vector, team: Team) -> tuple[Vector, float]:
    """sum_k alpha_k y_k, as if the intercept were penalised, and its rounding."""
    point = dual.dual_sums(problem, alpha, team, balanced=False).point("start")
    return point.w, point.w_rounding


@kernel
def sweep(
    loss: Loss, rows: RowArrays, signed_weights: Vector, squared_norms: Vector, C: float,
    omega: float, spread: float, low: float, high: float, order: Indices, alpha: Vector, w: Vector,
) -> tuple[int, int, float, float, float, float]:  # fmt: skip
    """Make one step on each row of ``order``, and move rows that stay active to its front.

    A row leaves if its alpha is zero and G above ``high``, or if its alpha is at the other end of
    the box and G below ``low``. A step is ``omega`` times as long as the exact one. w moves
    ``spread`` times as far as alpha does: by more than 1 to allow for the steps of other workers.

    Writes ``order``, ``alpha`` and ``w``. Returns the number of rows that stay active, the number
    of updates, the contribution of these rows to the gap, each when it was visited, the largest and
    the smallest projected gradient (G, or zero if the box forbids the step), and sum |step| |y_k|.
    """
    kept, updates, gap, path = 0, 0, 0.0, 0.0
    largest, smallest = -math.inf, math.inf
    for i in range(order.size):
        k, weight, label, margin = visit_row(rows, signed_weights, order, i, w)
        old = alpha[k]
        G = losses.dual_gradient(loss, margin, old, C, weight)
        projected = G
        if old <= 0.0:
            if high < G:
                continue
            projected = min(G, 0.0)
        elif old >= box_end(loss, C, weight):
            if low > G:
                continue
            projected = max(G, 0.0)
        order[kept] = k
        kept += 1
        largest = max(largest, projected)
        smallest = min(smallest, projected)
        gap += C * weight * losses.loss_value(loss, margin) + (
            old * (margin - 1.0) + losses.dual_penalty(loss, old, C, weight)
        )
        if projected != 0.0:
            new = losses.coordinate_step(loss, old, G, spread * squared_norms[k], C, weight, omega)
            step = new - old
            if step != 0.0:
                alpha[k] = new
                add(rows, k, label * spread * step, w)
                updates += 1
                path += abs(step) * math.sqrt(squared_norms[k])
    return kept, updates, gap, largest, smallest, path


def starting_alpha(problem: Problem, start: Start | None) -> Vector:
    """The best multiple of the alpha of ``start``, or one from the margins of its w; or zero."""
    if start is None:
        return np.zeros(problem.rows.n_rows)
    if start.alpha is None:
        return alpha_from_margins(problem, start.w)
    return best_multiple(problem, [in_box(problem, start.alpha, problem.loss, problem.C)])


def alpha_from_margins(problem: Problem, w: Vector) -> Vector:
    """The alpha with the largest dual bound, over all widths delta and multiples of alpha."""
    loss, C, weights = problem.loss, problem.C, problem.weights
    products = multiply(problem, w)
    centre, widths = smoothing_centre(loss, C, weights), _WIDTHS[:1] if loss.is_smooth else _WIDTHS
    responses = (response(loss, products, centre, C / (2.0 * d), C, weights) for d in widths)
    return best_multiple(problem, (in_box(problem, alpha, loss, C) for alpha in responses))


def best_multiple(problem: Problem, alphas: Iterable[Vector]) -> Vector:
    """The multiple of one of several feasible alpha that has the largest dual bound."""
    best, best_alpha = -math.inf, np.zeros(problem.rows.n_rows)
    for alpha in alphas:
        bound, scale = dual_bound(dual_point(problem, alpha, "start"))
        if bound.low > best:
            best, best_alpha = bound.low, scale * alpha
    return np.minimum(best_alpha, box_end(problem.loss, problem.C, problem.weights))


def in_box(rows: Part | BaseProblem, alpha: Vector, loss: Loss, C: float) -> Vector:
    """The nearest feasible alpha of these rows."""
    # A row that has lost its weight has lost its alpha, even if its box has no end.
    clipped = np.clip(alpha, 0.0, box_end(loss, C, rows.weights))
    inside: Vector = np.where(rows.weights > 0.0, clipped, 0.0)
    return inside
