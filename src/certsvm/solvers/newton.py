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

The number of steps grows slowly with C and with the accuracy. A step costs three readings
of the rows, the Gram matrix of the band, and the solution of a system as large as the number of
columns.

Given:      C, s, the rows; at most ``max_columns`` columns.
Result:     w, and alpha(w).

References: O. Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19
(2007), for the smoothed hinge; R. T. Rockafellar, Augmented Lagrangians and Applications of the
Proximal Point Algorithm in Convex Programming, Mathematics of Operations Research 1 (1976).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from certsvm.bounds import DualPoint, dual_bound, dual_point
from certsvm.kernels.jit import kernel, reordering_kernel
from certsvm.kernels.objective import margins
from certsvm.kernels.rows import CsrRows, DenseRows, RowArrays, Vector, add
from certsvm.problem import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.dual_start import alpha_from_margins

# The smooth problem is solved well enough when |grad|^2 / 2 is this fraction of the gap.
_INNER = 0.05
# From this gap on, alpha_hat follows alpha.
_NEAR = 0.02
_SMOOTHING_STAGES = 3
_GROWTH_SMOOTHING, _GROWTH_MULTIPLIERS = 4.0, 3.0
# Steps on one smooth problem after which it is left as it is.
_MOST_INNER = 25
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Newton(Solver):
    """Second-order method for few columns.

    Parameters
    ----------
    max_columns : int, default=5000
        With more columns than this, refuse: the memory grows with their square, the time of a
        step with their cube.

    Examples
    --------
    >>> Newton().name
    'newton'
    """

    name: ClassVar[str] = "newton"
    goes_on_from_alpha: ClassVar[bool] = True

    max_columns: int = 5000

    def __post_init__(self) -> None:
        require(self.max_columns > 0, self, f"max_columns must be > 0, got {self.max_columns}")

    def start(self, problem: Problem, options: Options) -> NewtonRun:
        """Begin a run; alpha is at hand in any case."""
        require(
            problem.rows.dimension <= self.max_columns,
            self,
            f"X has {problem.rows.dimension} columns (the intercept included), more than "
            f"max_columns = {self.max_columns}: a square matrix of that size would be too dear. "
            "Use another solver, such as 'dcd', or raise max_columns.",
        )
        return NewtonRun(problem, options)


class NewtonRun(Run):
    """The second-order method on one problem."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._box = problem.C * problem.weights
        self._steps = 0
        self._stages = 0
        self._inner = 0
        self._best_dual = 0.0
        self._best_primal = np.inf
        self._smoothing = True
        self._sigma = 0.45 * problem.C
        start = options.start
        if start is None:
            self._w = np.zeros(problem.rows.dimension)
            self._alpha_hat = 0.5 * self._box
        else:
            self._w = start.w.copy()
            self._alpha_hat = (
                alpha_from_margins(problem, start.w)
                if start.alpha is None
                else np.clip(start.alpha, 0.0, self._box)
            )
            self._smoothing = False
        self._margins = self._products(self._w)
        self._evaluate()
        self._complete = True

    def _products(self, w: Vector) -> Vector:
        out = np.empty(self._problem.rows.n_rows)
        margins(self._problem.rows.arrays, self._problem.signed_weights, w, out)
        return out

    def _evaluate(self) -> None:
        """alpha(w), its dual point, and the objective, from w and its margins."""
        problem = self._problem
        self._unclipped = self._alpha_hat + (self._sigma * problem.weights) * (1.0 - self._margins)
        self._alpha = np.clip(self._unclipped, 0.0, self._box)
        self._point = dual_point(problem, self._alpha, "multipliers")
        losses = np.maximum(0.0, 1.0 - self._margins)
        self._primal = 0.5 * float(self._w @ self._w) + float(self._box @ losses)
        self._best_primal = min(self._best_primal, self._primal)
        self._best_dual = max(self._best_dual, dual_bound(self._point)[0].value)
        self._gradient = self._w - self._point.w

    def epoch(self) -> Epoch:
        """One step of Newton's method, after a new stage if the last one is done."""
        self._steps += 1
        self._complete = False
        if self._solved_well_enough():
            self._next_stage()
        band = np.flatnonzero((self._unclipped > 0.0) & (self._unclipped < self._box))
        direction = -self._solve(band, self._gradient)
        products = self._products(direction)
        products[self._problem.signed_weights == 0.0] = 0.0
        step = self._line_search(direction, products)
        self._w = self._w + step * direction
        # Combining margins is as good as computing them anew, but rounding adds up.
        self._margins = (
            self._margins + step * products if self._steps % 8 else self._products(self._w)
        )
        self._inner += 1
        self._evaluate()
        self._complete = True
        return Epoch(epochs=self._steps, margin_errors=int(band.size), primal_estimate=self._primal)

    def _solved_well_enough(self) -> bool:
        gap = max(self._best_primal - self._best_dual, 0.0)
        return (
            0.5 * float(self._gradient @ self._gradient) <= _INNER * gap
            or self._inner >= _MOST_INNER
        )

    def _next_stage(self) -> None:
        self._stages += 1
        self._inner = 0
        if self._best_primal <= (1.0 + _NEAR) * self._best_dual or (
            self._stages > _SMOOTHING_STAGES
        ):
            self._smoothing = False
        if self._smoothing:
            self._sigma *= _GROWTH_SMOOTHING
        else:
            self._alpha_hat = self._alpha
            self._sigma *= _GROWTH_MULTIPLIERS
        self._evaluate()

    def _solve(self, band: NDArray[np.intp], right: Vector) -> Vector:
        """Solve with the Hessian."""
        weights = self._sigma * self._problem.weights[band]
        H = gram(self._problem.rows.arrays, band, weights, self._problem.rows.dimension)
        H[np.diag_indices_from(H)] += 1.0
        try:
            factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            # Rounding made it indefinite; the gradient is a direction of descent in any case.
            return right
        solution: Vector = scipy.linalg.cho_solve(factor, right, check_finite=False)
        return solution

    def _line_search(self, direction: Vector, products: Vector) -> float:
        """The minimum along the direction: where the derivative, which rises, is zero."""
        slope, curvature = float(self._w @ direction), float(direction @ direction)
        rates = self._sigma * self._problem.weights

        def derivative(t: float) -> float:
            inside = clipped_sum(self._unclipped, rates, products, self._box, t)
            return slope + t * curvature - float(inside)

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
        """w, then w_alpha scaled as its bound is."""
        yield self._w
        if self._point.w.any():
            yield dual_bound(self._point)[1] * self._point.w

    def dual(self) -> DualPoint | None:
        """alpha(w)."""
        return self._point if self._complete else None


@reordering_kernel
def clipped_sum(unclipped: Vector, rates: Vector, products: Vector, box: Vector, t: float) -> float:
    """sum_k clip(unclipped_k - t rates_k products_k, 0, box_k) products_k."""
    total = 0.0
    for k in range(unclipped.size):
        value = unclipped[k] - t * rates[k] * products[k]
        total += min(max(value, 0.0), box[k]) * products[k]
    return total


def gram(
    rows: RowArrays, which: NDArray[np.intp], weights: Vector, dimension: int
) -> NDArray[np.float64]:
    """sum_k weights_k y_k y_k' over the rows ``which``: the lower triangle, at least."""
    G = np.zeros((dimension, dimension))
    if isinstance(rows, CsrRows):
        sparse_gram(rows, which, weights, G)
        return G
    assert isinstance(rows, DenseRows)
    for start in range(0, which.size, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        block = rows.values[which[part]].astype(np.float64)
        if rows.bias:
            block = np.column_stack([block, np.full(len(block), rows.bias)])
        block *= np.sqrt(weights[part])[:, None]
        G += block.T @ block
    return G


@kernel
def sparse_gram(
    rows: CsrRows, which: NDArray[np.intp], weights: Vector, G: NDArray[np.float64]
) -> None:
    """Add the lower triangle of sum_k weights_k y_k y_k' to ``G``, row by row."""
    last = G.shape[0] - 1
    for i in range(which.size):
        k = which[i]
        weight = weights[i]
        for j in range(rows.indptr[k], rows.indptr[k + 1]):
            column = rows.indices[j]
            value = weight * rows.values[j]
            for other in range(rows.indptr[k], rows.indptr[k + 1]):
                if rows.indices[other] <= column:
                    G[column, rows.indices[other]] += value * rows.values[other]
        if rows.bias != 0.0:
            add(rows, k, weight * rows.bias, G[last])
