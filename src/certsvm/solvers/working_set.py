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
set, and serve to search the plane of the best w so far and the current one.
After several sweeps, that is the mean of their w: J(w) is far more sensitive than L(alpha) to the
steps of the last sweep, and in the mean they cancel.
If there are many more rows than columns, the first evaluation follows the first sweep.

Rows are visited in blocks of neighbours if that is faster and harmless (``order``).

Given:      C, s, the rows; optionally alpha to start from, or w.
Result:     the best combination of the w at evaluations, and alpha.
Difference: from DCD, all of the above. A pass is as many sweeps as take the time of one sweep over
            all rows, or those up to an evaluation.

References: C.-J. Hsieh et al. (2008), as for ``dcd``; T. Joachims, Making Large-Scale SVM Learning
Practical (1999), for working sets and shrinking.
"""

import math
from dataclasses import dataclass

import numpy as np

from certsvm.certificates.certificate import relative_gap
from certsvm.certificates.primal import Products
from certsvm.certificates.rounding import Bound
from certsvm.kernels import losses
from certsvm.kernels.jit import reordering_kernel
from certsvm.kernels.losses import BOTH_LOSSES, Loss
from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Solver
from certsvm.solvers.dual_coordinates import DualCoordinateRun
from certsvm.solvers.order import Order

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
# The plane search: the most steps, and the widths of the smoothing.
_PLANE_STEPS = 16
_WIDTH, _SHRINK, _NARROWEST = 0.25, 0.6, 1e-6
# After so many steps, the search ends when a step gains less than this share of J.
_PATIENCE, _GAIN = 6, 1e-4
_RIDGE = 1e-9


@dataclass(frozen=True)
class WorkingSet(Solver, omega="between 0 and 2", shrink_margin="> 0"):
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

    name = "working-set"
    warm_starts_from_alpha = True
    losses = BOTH_LOSSES
    frees_intercept = True

    omega: float = 1.2
    shrink_margin: float = 0.1
    shuffled: bool | None = None


class WorkingSetRun(DualCoordinateRun, of=WorkingSet):
    """Dual coordinate descent on working sets, on one problem."""

    computes_primal = True

    def __init__(
        self, solver: WorkingSet, problem: Problem, options: Options, order: Order | None = None
    ) -> None:
        super().__init__(solver, problem, options)
        self._sweeps = 0 if options.start is None else 1
        self._active = problem.active.copy()
        self._order = order or Order(problem, self._rng, shuffled=solver.shuffled)
        self._least_work = (problem.n_rows + problem.dimension) // _ADDITIONS_PER_VISIT
        self._best: Products | None = None
        self._best_bound = Bound(math.inf, 0.0)
        # The estimate of the gap at the last evaluation, and its ratio to the gap found there.
        self._last_estimate, self._overestimate = math.inf, 2.0
        # The visits to rows since then, and the sum of w over the sweeps since then.
        self._work, self._n_summed = 0, 0
        self._w_sum: Vector | None = None
        # The number of visits to rows so far; those until the end of each pass, and the estimate of
        # the gap there.
        self.visited = 0
        self._trail: list[tuple[int, float]] = []

    def epoch(self) -> Epoch:
        """Sweep until as many visits are made as there are rows, or until an evaluation is due."""
        self._evaluated = None
        problem, updates, work, estimate = self._problem, 0, 0, math.inf
        evaluated = False
        while work < problem.m and not evaluated:
            # However few rows it visits, a sweep computes sums over all rows and columns.
            visited = max(self._active.size, self._least_work)
            estimate, changed = self._sweep()
            updates += changed
            work += visited
            self._work += visited
            if evaluated := self._is_due(estimate):
                estimate = self._evaluate(estimate)
        self.visited += work
        self._trail.append((self.visited, estimate))
        # If the intercept is free, the dual point takes a pass: it can wait for an evaluation.
        dual = self._dual_value if problem.free_intercept and not evaluated else None
        return self._end_pass(updates, estimate, dual_estimate=dual)

    @property
    def gap(self) -> float:
        """The relative gap at the last evaluation, against the current dual value."""
        return max(relative_gap(self._best_bound.value, self._dual_value), 0.0)

    def outlook(self) -> float:
        """The number of visits still needed if the estimate keeps falling at its recent rate.

        The rate tends to decrease, so this is optimistic.
        """
        now, estimate = self._trail[-1]
        enough = self._estimate_at_target
        if estimate <= enough:
            return 0.0
        # The recent rate is that of the last half of the work. The first estimate means nothing.
        half = max(0.5 * now, self._trail[1][0])
        then, before = next((e for e in self._trail[-2:0:-1] if e[0] <= half), (0, 0.0))
        if not (before > estimate and enough > 0.0):
            return math.inf
        return math.log(estimate / enough) * (now - then) / math.log(before / estimate)

    @property
    def _estimate_at_target(self) -> float:
        """The estimate of the gap at which the target is probably met."""
        return self._overestimate * self._options.target * self._dual_value

    def _sweep(self) -> tuple[float, int]:
        """Visit the working set; return the estimate of the gap and the number of updates."""
        # The first sweep keeps every row: w may be far off.
        far = self._solver.shrink_margin if self._sweeps else math.inf
        order = self._order.permuted(self._active)
        active, updates, gap, *_ = self._visit(order, self._solver.omega, -far, far)
        if active.size < self._active.size:
            marks = np.zeros(self._problem.n_rows, dtype=np.bool_)
            marks[active] = True
            # In ascending order.
            self._active = np.flatnonzero(marks)
        self._sweeps += 1
        if self._w_sum is not None:
            self._w_sum += self._w
            self._n_summed += 1
        return gap, updates

    def _is_due(self, estimate: float) -> bool:
        """Whether to evaluate now."""
        if self._active.size == 0:
            return True
        problem = self._problem
        if self._sweeps < 2:
            # A second sweep over all rows would take several times as long as a selection.
            return bool(problem.m >= _ROWS_PER_COLUMN * problem.dimension)
        if self._sweeps == 2 and math.isinf(self._last_estimate):
            # The first meaningful estimate: w was near zero during the first sweep.
            self._last_estimate = estimate / _LEAST_FALL
        fall = _LEAST_FALL if estimate <= self._estimate_at_target else _FALL
        return estimate <= fall * self._last_estimate or self._work >= _MOST_WORK * problem.m

    def _evaluate(self, estimate: float) -> float:
        """Compute J at the best combination, and select the working set anew.

        Returns the estimate of the gap, or a better one after the first sweep.
        """
        problem, w, team = self._problem, self._w.copy(), self._options.team
        if self._w_sum is not None and self._n_summed >= _LEAST_AVERAGED:
            w = self._w_sum / self._n_summed
        products = Products(problem, w, team)
        if self._best is None:
            self._best = products
        else:
            a, b = best_combination(problem, self._best, products, self._best_bound.value)
            if (a, b) != (1.0, 0.0):
                self._best.mix(a, b, products)
        self._best_bound = self._best.primal_bound(team)
        gap = max(self._best_bound.value - self._dual_value, 0.0)
        shrink_margin = self._solver.shrink_margin
        if self._sweeps == 1:
            self._select(products, _FAR * shrink_margin)
            estimate = gap
        else:
            self._select(products, 0.5 * shrink_margin)
            if gap > 0.0:
                self._overestimate = min(max(0.8 * estimate / gap, 0.5), 4.0)
        self._last_estimate, self._work = estimate, 0
        if self._best_bound.rounding > _ROUNDING * gap:
            self._best.compute(team)
            self._best_bound = self._best.primal_bound(team)
        if self._rounding * math.sqrt(inner(self._w, self._w)) > _ROUNDING * gap:
            self._compute_w()
        self._evaluated = self._best.w, self._best_bound
        self._w_sum, self._n_summed = np.zeros(problem.dimension), 0
        return estimate

    def _select(self, products: Products, shrink_margin: float) -> None:
        """Select the rows that a sweep would keep, by the products with w."""
        problem, loss, C = self._problem, self._problem.loss, self._problem.C
        of_rows = products.values, self.alpha, problem.weights
        margins, alpha, weights = map(problem.of_active, of_rows)
        G = losses.dual_gradient(loss, margins, alpha, C, weights)
        # At an end of its box, where the gradient firmly keeps it.
        low = (alpha <= 0.0) & (shrink_margin < G)
        high = (alpha >= losses.box_end(loss, C, weights)) & (shrink_margin < -G)
        self._active = problem.active[~(low | high)]


def best_combination(
    problem: Problem, u: Products, v: Products, J_of_u: float
) -> tuple[float, float]:
    """Coefficients (a, b) of u and v for which J(a u + b v) is small: no larger than J(u) or J(v).

    A dual method has a good alpha long before w is good: a row slightly below the margin costs C
    times the difference, a row slightly above it costs nothing. Given the products of both vectors
    with all rows, J is minimised on their plane without reading the data, by Newton's method with
    smoothed kinks. The width of the smoothing shrinks after each step that decreases J; other steps
    are halved. The result is the best point met on the way.
    """
    loss, C, weights = problem.loss, problem.C, problem.weights
    one, other = problem.regularised(u.w), problem.regularised(v.w)
    uu, uv, vv = inner(one, one), inner(one, other), inner(other, other)
    best, best_value = (1.0, 0.0), J_of_u
    width, (a, b) = _WIDTH, (0.0, 1.0)
    for step in range(_PLANE_STEPS):
        lost, g0, g1, h00, h01, h11 = smoothed_losses(
            loss, u.values, v.values, weights, a, b, C / (2.0 * width), C
        )
        now = 0.5 * (a * a * uu + 2.0 * a * b * uv + b * b * vv) + C * lost
        gain = best_value - now
        if gain > 0.0:
            best, best_value = (a, b), now
        if step >= _PATIENCE and gain <= _GAIN * abs(now):
            break
        if gain < 0.0 and step > 0:
            # The step was too long: halve it, with the same width.
            a, b = 0.5 * (a + best[0]), 0.5 * (b + best[1])
            continue
        g0, g1 = a * uu + b * uv - g0, a * uv + b * vv - g1
        h00, h01, h11 = uu + h00, uv + h01, vv + h11
        # Without the ridge, the Hessian is singular if u and v are parallel.
        ridge = _RIDGE * (h00 + h11)
        h00, h11 = h00 + ridge, h11 + ridge
        determinant = h00 * h11 - h01 * h01
        if not determinant > 0.0:
            break
        a -= (h11 * g0 - h01 * g1) / determinant
        b -= (h00 * g1 - h01 * g0) / determinant
        if not (math.isfinite(a) and math.isfinite(b)):
            break
        width = max(_SHRINK * width, _NARROWEST)
    return best


@reordering_kernel
def smoothed_losses(
    loss: Loss, u: Vector, v: Vector, weights: Vector, a: float, b: float, sigma: float, C: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """The loss at a u + b v; minus the gradient and the Hessian of C times the smoothed loss."""
    # For a weight of 1; both are proportional to the weight.
    centre, box = losses.smoothing_centre(loss, C, 1.0), losses.box_end(loss, C, 1.0)
    total, g0, g1, h00, h01, h11 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(u.size):
        margin = a * u[k] + b * v[k]
        alpha = losses.response(loss, margin, centre, sigma, C, 1.0)
        if alpha > 0.0:
            s = weights[k]
            total += s * losses.loss_value(loss, margin)
            g0 += s * min(alpha, box) * u[k]
            g1 += s * min(alpha, box) * v[k]
            if alpha < box:
                h00 += s * u[k] * u[k]
                h01 += s * u[k] * v[k]
                h11 += s * v[k] * v[k]
    slope = losses.response_slope(loss, sigma, C)
    return total, g0, g1, slope * h00, slope * h01, slope * h11
