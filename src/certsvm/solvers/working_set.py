"""Working sets: dual coordinate descent on the rows that can still improve the dual.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

or L for the squared hinge, by the coordinate steps of DCD (``dcd``), overrelaxed by a factor omega,

    alpha_k <- clip(alpha_k - omega G / |y_k|^2, 0, C s_k),     G = w.y_k - 1,     w follows,

in sweeps over a working set, which shrinks: a row leaves it if it is at an end of its box and G
exceeds ``shrink_margin`` in the direction that keeps it there. Such a row is unlikely to move soon.
The sum of

    C s_k max(0, -G) + alpha_k G,

the contribution of each row to the gap when it was visited, estimates the gap at no cost. When the
estimate reaches the target, or has fallen substantially, the run evaluates: it computes the
products of w with all rows, which give J exactly, return rows that left too early to the working
set, and serve to search the plane of the best w so far and the current one (``plane_search``).
After several sweeps, that is the mean of their w: J(w) is far more sensitive than L(alpha) to the
steps of the last sweep, and in the mean they cancel.
If there are many more rows than columns, the first selection follows the first sweep.

Rows are visited in blocks of neighbours if that is faster and harmless (``order``).

Given:      C, s, the rows; optionally alpha to start from, or w.
Result:     the best combination of the w at evaluations, and alpha.
Difference: from DCD, all of the above. A pass is as many sweeps as take the time of one sweep over
            all rows, or those up to an evaluation.

References: C.-J. Hsieh et al. (2008), as for ``dcd``; T. Joachims, Making Large-Scale SVM Learning
Practical (1999), for working sets and shrinking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.primal import Products
from certsvm.certificates.rounding import Bound
from certsvm.kernels.jit import kernel
from certsvm.kernels.losses import (
    LOSS_TYPES,
    Loss,
    box_end,
    dual_gradient,
    dual_penalty,
    loss_value,
)
from certsvm.kernels.vectors import inner
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Solver
from certsvm.solvers.shared.dual_coordinates import DualCoordinateRun
from certsvm.solvers.shared.order import Order
from certsvm.solvers.shared.plane_search import best_combination

# An evaluation is due when the estimate of the gap falls to this share of its value at the last
# evaluation; if the estimate meets the target, a fall to the second share is enough.
_FALL, _LEAST_FALL = 0.2, 0.9
# It is also due after so many visits, relative to the number of rows.
_MOST_WORK = 8
# A visit to a row takes as long as adding so many numbers.
_ADDITIONS_PER_VISIT = 32
# From so many sweeps on, an evaluation takes the mean of their w.
_LEAST_AVERAGED = 4
# w and the best products are recomputed if their rounding exceeds this share of the gap.
_ROUNDING = 0.05
# With so many rows per column, w is near the optimum after one sweep, and its products with all
# rows tell which matter. The distance from the margin beyond which they do not, in shrink_margin.
_ROWS_PER_COLUMN, _FAR = 100, 4.0


@dataclass(frozen=True)
class WorkingSet(Solver):
    """Dual coordinate descent on working sets.

    Parameters
    ----------
    omega : float, default=1.2
        Overrelaxation: the length of a step relative to the exact coordinate step, between 0 and 2.
    shrink_margin : float, default=0.1
        Distance from the margin at which a row at an end of its box leaves the working set.
    shuffled : bool, default=None
        Whether neighbouring rows are no more alike than random pairs, so that they may be visited
        together. None decides from a sample.

    Examples
    --------
    >>> WorkingSet(shuffled=True).name
    'working-set'
    """

    name: ClassVar[str] = "working-set"
    warm_starts_from_alpha: ClassVar[bool] = True
    losses: ClassVar[tuple[type[Any], ...]] = LOSS_TYPES
    frees_intercept: ClassVar[bool] = True
    ranges: ClassVar = {"omega": "between 0 and 2", "shrink_margin": "> 0"}

    omega: float = 1.2
    shrink_margin: float = 0.1
    shuffled: bool | None = None

    def start(self, problem: Problem, options: Options) -> WorkingSetRun:
        """Begin a run."""
        return WorkingSetRun(self, problem, options)


class Visits(NamedTuple):
    """The number of visits to rows so far, and the estimate of the gap after them."""

    visited: int
    estimate: float


class WorkingSetRun(DualCoordinateRun):
    """Dual coordinate descent on working sets, on one problem."""

    computes_primal = True

    def __init__(
        self, solver: WorkingSet, problem: Problem, options: Options, order: Order | None = None
    ) -> None:
        super().__init__(problem, options)
        self._solver = solver
        self._target = options.target
        self._sweeps = 0 if options.start is None else 1
        self._active = problem.active.copy()
        self._order = order or Order(problem, self._rng, shuffled=solver.shuffled)
        self._least_work = (problem.n_rows + problem.dimension) // _ADDITIONS_PER_VISIT
        self._products: Products | None = None
        self._best: Products | None = None
        self._best_bound = Bound(math.inf, 0.0)
        # The estimate of the gap at the last evaluation, and its ratio to the gap found there.
        self._last_estimate = math.inf
        self._overestimate = 2.0
        self._work = 0
        # The sum of w over the sweeps since the last evaluation.
        self._w_sum: Vector | None = None
        self._n_summed = 0
        self._visits: list[Visits] = []
        self._computed = False

    def epoch(self) -> Epoch:
        """Sweep until as many visits are made as there are rows, or until an evaluation is due."""
        self._passes += 1
        self._complete = self._computed = False
        updates, work = 0, 0
        estimate = math.inf
        while work < self._problem.m:
            # However few rows it visits, a sweep computes sums over all rows and columns.
            visited = max(self._active.size, self._least_work)
            estimate, sweep_updates = self._sweep()
            updates += sweep_updates
            work += visited
            self._work += visited
            if self._sweeps == 1 and self._problem.m >= _ROWS_PER_COLUMN * self._problem.dimension:
                estimate = self._screen()
                break
            if self._is_due(estimate):
                self._evaluate(estimate)
                break
        self._visits.append(Visits(self.visited + work, estimate))
        self._complete = True
        # If the intercept is free, the dual point takes a pass: it can wait for an evaluation.
        waits = self._problem.free_intercept and not self._computed
        return Epoch(
            epochs=self._passes,
            updates=updates,
            primal_estimate=self._dual_value + estimate,
            dual_estimate=self._dual_value if waits else None,
        )

    @property
    def visited(self) -> int:
        """The work so far, as a number of visits to rows."""
        return self._visits[-1].visited if self._visits else 0

    @property
    def in_order(self) -> bool:
        """Whether rows are read in memory order, or from a cache."""
        return self._order.in_order

    @property
    def alpha(self) -> Vector:
        """A copy of alpha."""
        return self._alpha.copy()

    @property
    def gap(self) -> float:
        """The relative gap at the last evaluation, against the current dual value."""
        if not self._dual_value > 0.0:
            return math.inf
        return max(self._best_bound.value / self._dual_value - 1.0, 0.0)

    def outlook(self) -> float:
        """The number of visits still needed if the estimate keeps falling at its recent rate.

        The rate tends to decrease, so this is optimistic.
        """
        now, estimate = self._visits[-1]
        enough = self._estimate_at_target
        if estimate <= enough:
            return 0.0
        # The recent rate is that of the last half of the work. The first estimate means nothing.
        earlier = [
            visits
            for visits in self._visits[1:-1]
            if visits.visited <= max(0.5 * now, self._visits[1].visited)
        ]
        if not (earlier and earlier[-1].estimate > estimate and enough > 0.0):
            return math.inf
        then, before = earlier[-1]
        return math.log(estimate / enough) * (now - then) / math.log(before / estimate)

    @property
    def _estimate_at_target(self) -> float:
        """The estimate of the gap at which the target is probably met."""
        return self._overestimate * self._target * self._dual_value

    def _sweep(self) -> tuple[float, int]:
        """Visit the working set; return the estimate of the gap and the number of updates."""
        # The first sweep keeps every row: w may be far off.
        shrink_margin = self._solver.shrink_margin if self._sweeps else math.inf
        order = self._order.permuted(self._active)
        swept = self._visit(order, self._solver.omega, -shrink_margin, shrink_margin)
        if swept.active.size < self._active.size:
            marks = np.zeros(self._problem.n_rows, dtype=np.bool_)
            marks[swept.active] = True
            # In ascending order.
            self._active = np.flatnonzero(marks)
        self._sweeps += 1
        if self._w_sum is not None:
            self._w_sum += self._w
            self._n_summed += 1
        return swept.gap, swept.updates

    def _is_due(self, estimate: float) -> bool:
        """Whether to evaluate now."""
        if self._active.size == 0:
            return True
        if self._sweeps < 2:
            return False
        if self._sweeps == 2 and math.isinf(self._last_estimate):
            # The first meaningful estimate: w was near zero during the first sweep.
            self._last_estimate = estimate / _LEAST_FALL
        fall = _LEAST_FALL if estimate <= self._estimate_at_target else _FALL
        return estimate <= fall * self._last_estimate or self._work >= _MOST_WORK * self._problem.m

    def _evaluate(self, estimate: float) -> None:
        """Compute J at the best combination, and select the working set anew."""
        problem, w = self._problem, self._w
        if self._w_sum is not None and self._n_summed >= _LEAST_AVERAGED:
            w = self._w_sum / self._n_summed
        if self._products is None:
            self._products = Products(problem, w, self._team)
        else:
            self._products.w = w
            self._products.compute(self._team)
        if self._best is None:
            self._best = self._products.copy()
        a, b = best_combination(problem, self._best, self._products)
        if (a, b) != (1.0, 0.0):
            self._best.mix(a, b, self._products)
        self._best_bound = self._best.primal_bound(self._team)
        gap = max(self._best_bound.value - self._dual_value, 0.0)
        self._last_estimate = estimate
        self._work = 0
        if gap > 0.0:
            self._overestimate = min(max(0.8 * estimate / gap, 0.5), 4.0)
        if self._best_bound.rounding > _ROUNDING * gap:
            self._best.compute(self._team)
            self._best_bound = self._best.primal_bound(self._team)
        if self._rounding * math.sqrt(inner(self._w, self._w)) > _ROUNDING * gap:
            self._compute_w()
        self._select(self._products, 0.5 * self._solver.shrink_margin)
        self._w_sum, self._n_summed = np.zeros(problem.dimension), 0
        self._computed = True

    def _screen(self) -> float:
        """Select the working set after the first sweep, which kept all rows; return the gap.

        A second sweep over all rows would take several times as long.
        """
        self._best = Products(self._problem, self._w.copy(), self._team)
        gap = self._select(self._best, _FAR * self._solver.shrink_margin)
        self._last_estimate = gap / _LEAST_FALL
        return gap

    def _select(self, products: Products, shrink_margin: float) -> float:
        """Select the working set by the products with w; return the gap between w and alpha."""
        problem = self._problem
        active = np.empty(problem.m, dtype=np.int64)
        size, gap = active_rows(
            problem.loss, products.values, problem.weights, problem.C, shrink_margin,
            problem.active, self._alpha, active,
        )  # fmt: skip
        self._active = active[:size]
        return max(gap, 0.0)

    def primal(self) -> tuple[Vector, Bound] | None:
        """The best combination and its J, after an evaluation."""
        if not (self._computed and self._complete) or self._best is None:
            return None
        return self._best.w, self._best_bound


@kernel
def is_settled(alpha: float, G: float, box: float, shrink_margin: float) -> bool:
    """Whether alpha is at an end of its box, and the gradient firmly keeps it there."""
    return (alpha <= 0.0 and shrink_margin < G) or (alpha >= box and shrink_margin < -G)


@kernel
def active_rows(
    loss: Loss, products: Vector, weights: Vector, C: float, shrink_margin: float,
    rows: NDArray[np.int64], alpha: Vector, out: NDArray[np.int64],
) -> tuple[int, float]:  # fmt: skip
    """Write those of ``rows`` that a sweep would keep to the front of ``out``.

    Returns their number, and the gap: the sum over all rows of what ``sweep`` estimates.
    """
    n = 0
    gap = 0.0
    for i in range(rows.size):
        k = rows[i]
        G = dual_gradient(loss, products[k], alpha[k], C, weights[k])
        out[n] = k
        n += 0 if is_settled(alpha[k], G, box_end(loss, C, weights[k]), shrink_margin) else 1
        gap += C * weights[k] * loss_value(loss, products[k]) + (
            alpha[k] * (products[k] - 1.0) + dual_penalty(loss, alpha[k], C, weights[k])
        )
    return n, gap
