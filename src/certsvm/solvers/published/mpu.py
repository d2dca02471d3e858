"""MPU: the margin perceptron with unlearning (a reconstruction).

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

with a perceptron that can unlearn. Each row has a count, an integer 0 <= I_k <= N, and

    a = sum_k s_k I_k y_k,    w = a / b,    alpha_k = s_k I_k / b  (feasible, since b = N / C).

Let q_k = s_k |y_k|^2, xi = delta / (2 + delta) and b >= 2 max_k q_k / xi. A presentation of row k

    learns    if a.y_k <= b         and I_k < N,  by min(N - I_k, floor((b - a.y_k) / q_k) + 1),
    unlearns  if a.y_k >= (1+xi) b  and I_k > 0,  by min(I_k, floor((a.y_k - (1+xi) b) / q_k) + 1),

which combines consecutive unit steps. Each unit step on row k raises the bounded quantity
(1 + xi/2) b sum_k s_k I_k - |a|^2 / 2 by at least s_k (xi b - q_k) / 2 > 0, so the number of
updates is finite, in whatever order rows are presented. A pass over all rows without an update
proves J / L - 1 <= delta, the before-run accuracy; the gap usually proves it sooner. The proofs are
in docs/theory.md.

A pass presents the active rows in a new random order. A row that it does not update leaves them if
its count is 0 or N. All rows become active again when a pass makes no update, when the gap,
estimated with the losses that rows had when they left, reaches delta_stop, or after 20 passes
over fewer rows.

Given:      C, s, the rows; delta (by default the target), delta_stop (by default the target).
Result:     w, and alpha = s_k I_k / b.
Difference: the authors' program was not available. This follows the abstract of their paper and
            the description in the paper on SGD. Weights, proofs and active rows are ours.

Reference: C. Panagiotakopoulos and P. Tsampouka, The Margin Perceptron with Unlearning,
ICML 2010.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, counts_point, dual_point, total
from certsvm.certificates.rounding import length
from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, visit_row
from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, float_type, require
from certsvm.solvers.dual_coordinates import starting_alpha, visit

# So many passes over active rows follow one over all rows. Any number from 10 to 50 is as good.
_ACTIVE_PASSES = 20
_SMALLEST_DELTA = 1e-12
_LARGEST_COUNT = 2.0**62


@dataclass(frozen=True)
class MPU(Solver, delta="> 0", delta_stop="> 0", precision='"double" or "single"'):
    """The margin perceptron with unlearning.

    Parameters
    ----------
    delta : float, default=None
        Accuracy that a pass over all rows without an update proves. A smaller delta means finer
        steps. None means the target.
    delta_stop : float, default=None
        End when the relative gap, estimated from the inner products of a pass over all rows, is at
        most this. With None, only the target and the limits end training.
    precision : {"double", "single"}, default="double"
        Precision of a. Certificates are always computed in double precision.

    Examples
    --------
    >>> MPU(delta=0.01).name
    'mpu'
    """

    name = "mpu"
    warm_starts_from_alpha = True

    delta: float | None = None
    delta_stop: float | None = None
    precision: Literal["double", "single"] = "double"


class MPURun(Run, of=MPU):
    """The margin perceptron with unlearning on one problem."""

    def __init__(self, solver: MPU, problem: Problem, options: Options) -> None:
        super().__init__(solver, problem, options)
        self._near = options.target if solver.delta_stop is None else solver.delta_stop
        curvature = float((problem.weights * problem.rows.squared_norms).max())
        # The smallest delta for which the counts fit into an integer.
        least = 5.0 * problem.C * curvature / _LARGEST_COUNT
        delta = solver.delta or max(options.target, least, _SMALLEST_DELTA)
        message = f"delta = {delta:g} is too small for C = {problem.C:g} and rows as long as "
        message += f"{problem.R:g}: counts would not fit into an integer. Scale the columns."
        require(least <= delta and least < 1.0, solver, message)
        self._xi = delta / (2.0 + delta)
        N = max(1.0, math.ceil(problem.C * 2.0 * curvature / self._xi))
        self._N, self._b = int(N), N / problem.C
        alpha = starting_alpha(problem, options.start)
        share = alpha / np.where(problem.weights > 0.0, problem.C * problem.weights, 1.0)
        self._counts = np.floor(share * N).astype(np.int64)
        self._single = solver.precision == "single"
        start = dual_point(problem, problem.weights * self._counts, "start")
        self._a = start.w.astype(float_type(solver, solver.precision, problem))
        self._w, self._rounding = start.w / self._b, start.w_rounding
        self._dual_point = self._point
        self._activate_all()

    def _activate_all(self) -> None:
        self._order = self._problem.active.copy()
        self._active_passes, self._loss_left = 0, 0.0

    def epoch(self) -> Epoch:
        """Present every active row once, in a new random order."""
        problem = self._problem
        every_row = self._order.size == problem.m
        self._passes += 1
        self._dual_point = None
        self._rng.shuffle(self._order)
        self._order, sums, rounding = visit(
            problem, self._order, length(self._a),
            lambda rows: learn_and_unlearn(
                problem.rows.arrays, problem.signed_weights, problem.rows.squared_norms,
                self._N, self._b, self._xi, rows, self._counts, self._a,
            ),
        )  # fmt: skip
        self._rounding += rounding
        updates, loss, loss_left, _ = map(sum, sums)
        self._loss_left += loss_left
        self._w = self._a.astype(np.float64) / self._b
        squared_norm = inner(self._w, self._w)
        primal = 0.5 * squared_norm + problem.C * (self._loss_left + loss)
        mass = inner(problem.weights, self._counts.astype(np.float64))
        dual = mass / self._b - 0.5 * squared_norm
        near = dual > 0 and primal / dual - 1 <= self._near
        self._active_passes += not every_row
        if updates == 0 or near or self._active_passes == _ACTIVE_PASSES:
            self._activate_all()
        self._dual_point = self._point
        ended = updates == 0 or (near and self._solver.delta_stop is not None)
        return Epoch(
            epochs=self._passes, updates=updates, primal_estimate=primal,
            dual_estimate=dual if self._single else None, finished=every_row and ended,
        )  # fmt: skip

    def _point(self) -> DualPoint:
        """The point alpha_k = s_k I_k / b; if a is in single precision, w_alpha is recomputed."""
        problem = self._problem
        counted = problem.weights * self._counts

        def alpha() -> Vector:
            clipped: Vector = np.minimum(counted / self._b, problem.C * problem.weights)
            return clipped

        if self._single:
            return dual_point(problem, alpha(), "counts")
        return counts_point(
            problem.C / self._N, total(counted), self._a, self._rounding,
            inner(counted, problem.rows.norms), "counts",
            alpha if self._options.keep_alpha else None,
        )  # fmt: skip


@kernel
def learn_and_unlearn(
    rows: RowArrays, signed_weights: Vector, squared_norms: Vector, N: int, b: float, xi: float,
    order: NDArray[np.int64], counts: NDArray[np.int64], a: NDArray[np.floating],
) -> tuple[int, int, float, float, float]:  # fmt: skip
    """Present the rows of ``order`` once, and move those that stay active to its front.

    Writes ``order``, ``counts`` and ``a``. Returns the number of rows that stay active, the number
    of updates, the weighted hinge sums of the rows that stay and of those that leave (each loss at
    the current w), and the sum of the lengths of all updates.
    """
    kept, updates, loss, loss_left, path = 0, 0, 0.0, 0.0, 0.0
    for i in range(order.size):
        k, weight, label, margin = visit_row(rows, signed_weights, order, i, a)
        row_loss = weight * max(0.0, 1.0 - margin / b)
        q = weight * squared_norms[k]
        change, beyond = np.int64(0), 0.0
        if margin <= b:
            change, beyond = N - counts[k], b - margin
        elif margin >= (1.0 + xi) * b:
            change, beyond = counts[k], margin - (1.0 + xi) * b
        # Compared as floats: the quotient may exceed any integer (q may be zero).
        if beyond / q < change:
            change = min(change, np.int64(beyond / q) + 1)
        if margin > b:
            change = -change
        if change == 0 and (counts[k] == 0 or counts[k] == N):
            loss_left += row_loss
            continue
        order[kept] = k
        kept += 1
        loss += row_loss
        if change != 0:
            counts[k] += change
            add(rows, k, change * label * weight, a)
            updates += 1
            path += abs(change) * weight * math.sqrt(squared_norms[k])
    return kept, updates, loss, loss_left, path
