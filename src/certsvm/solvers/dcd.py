"""DCD: dual coordinate descent.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

one coordinate at a time. With G = w.y_k - 1, minus the derivative of L by alpha_k,

    alpha_k <- clip(alpha_k - G / |y_k|^2, 0, C s_k),     w follows.

For the squared hinge, L has the terms -alpha_k^2 / (4 C s_k), too, and the box has no end. Then
G = w.y_k - 1 + alpha_k / (2 C s_k), and

    alpha_k <- max(0, alpha_k - G / (|y_k|^2 + 1 / (2 C s_k))).

A pass visits the active rows in a new random order. The projected gradient of a row is G, or zero
if the box forbids the step. Shrinking: a row at 0 with G above the largest projected gradient of
the last pass, or at C s_k with G below the smallest, leaves the active set. When the projected
gradients of the active rows spread by no more than a threshold, all rows become active again. When
those of all rows do, the algorithm ends if ``eps`` is given, which then is the threshold, as in
liblinear. Otherwise the threshold falls to a tenth.

The run keeps alpha, so every pass has a certificate.

Given:      C, s, the rows; optionally alpha to start from, or w, from whose margins alpha is made.
Result:     w, and alpha.
Difference: liblinear ends by its tolerance on gradients. Here that is optional, and the gap is
            what is proved.

Reference: C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, A Dual
Coordinate Descent Method for Large-scale Linear SVM, ICML 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel
from certsvm.kernels.losses import (
    LOSS_TYPES,
    Loss,
    box_end,
    coordinate_step,
    dual_gradient,
    loss_value,
)
from certsvm.kernels.prefetch import AHEAD, prefetch_row
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.kernels.vectors import inner
from certsvm.problem.memory import Problem
from certsvm.solvers.base import Epoch, Options, Solver, require_positive
from certsvm.solvers.shared.dual_coordinates import DualCoordinateRun

# The default tolerance of liblinear. Without ``eps`` it only decides when shrunk rows become active
# again, and falls whenever it is reached over all rows.
_SPREAD = 0.1


@dataclass(frozen=True)
class DCD(Solver):
    """Dual coordinate descent.

    Parameters
    ----------
    shrinking : bool, default=True
        Whether to skip rows that are unlikely to change.
    eps : float, default=None
        End when the projected gradients of all rows spread by no more than this: the tolerance of
        liblinear. With None, only the gap and the limits end training.

    Examples
    --------
    >>> DCD(eps=0.1).name
    'dcd'
    """

    name: ClassVar[str] = "dcd"
    warm_starts_from_alpha: ClassVar[bool] = True
    losses: ClassVar[tuple[type[Any], ...]] = LOSS_TYPES
    frees_intercept: ClassVar[bool] = True

    shrinking: bool = True
    eps: float | None = None

    def __post_init__(self) -> None:
        require_positive(self, "eps")

    def start(self, problem: Problem, options: Options) -> DCDRun:
        """Begin a run."""
        return DCDRun(self, problem, options)


class DCDRun(DualCoordinateRun):
    """Dual coordinate descent on one problem."""

    def __init__(self, solver: DCD, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._solver = solver
        self._spread = _SPREAD if solver.eps is None else solver.eps
        self._activate_all()

    def _activate_all(self) -> None:
        self._order = self._problem.active.copy()
        # The gradients beyond which a row at an end of its box leaves the active set.
        self._thresholds = -math.inf, math.inf
        self._shrunk_loss = 0.0

    def epoch(self) -> Epoch:
        """Visit every active row once."""
        self._passes += 1
        self._complete = False
        self._rng.shuffle(self._order)
        self._order, sums = self._visit(self._order, descend, *self._thresholds)
        _, updates, largest, smallest, loss, shrunk_loss, _ = zip(*sums, strict=True)
        losses = sum(loss) + self._shrunk_loss + sum(shrunk_loss)
        self._shrunk_loss += sum(shrunk_loss)
        self._move_multiplier()
        finished = self._shrink(max(largest), min(smallest))
        self._complete = True
        regularised = self._problem.regularised(self._w)
        return Epoch(
            epochs=self._passes,
            updates=sum(updates),
            primal_estimate=0.5 * inner(regularised, regularised) + self._problem.C * losses,
            finished=finished,
        )

    def _shrink(self, largest: float, smallest: float) -> bool:
        """Set the thresholds of the next pass; return whether ``eps`` is reached."""
        if largest - smallest <= self._spread:
            if self._order.size == self._problem.m:
                if self._solver.eps is not None:
                    return True
                self._spread *= 0.1
            self._activate_all()
        elif self._solver.shrinking:
            low = smallest if smallest < 0 else -math.inf
            self._thresholds = low, largest if largest > 0 else math.inf
        return False


@kernel
def descend(
    loss: Loss, rows: RowArrays, signed_weights: Vector, squared_norms: Vector, C: float,
    low: float, high: float, order: NDArray[np.int64], alpha: Vector, w: Vector,
) -> tuple[int, int, float, float, float, float, float]:  # fmt: skip
    """Make one step on each row of ``order``, and move rows that stay active to its front.

    Writes ``order``, ``alpha`` and ``w``. Returns the number of rows that stay active, the number
    of updates, the largest and the smallest projected gradient, the weighted losses of the rows
    that stay and of those that leave (each at the current w), and sum |step| |y_k|.
    """
    kept = 0
    updates = 0
    largest, smallest = -math.inf, math.inf
    loss_sum, shrunk_loss, path = 0.0, 0.0, 0.0
    for i in range(order.size):
        if i + AHEAD < order.size:
            prefetch_row(rows, order[i + AHEAD])
        k = order[i]
        signed_weight = signed_weights[k]
        weight = abs(signed_weight)
        label = 1.0 if signed_weight > 0.0 else -1.0
        margin = label * dot(rows, k, w)
        row_loss = weight * loss_value(loss, margin)
        G = dual_gradient(loss, margin, alpha[k], C, weight)
        projected = G
        if alpha[k] <= 0.0:
            if high < G:
                shrunk_loss += row_loss
                continue
            projected = min(G, 0.0)
        elif alpha[k] >= box_end(loss, C, weight):
            if low > G:
                shrunk_loss += row_loss
                continue
            projected = max(G, 0.0)
        order[kept] = k
        kept += 1
        loss_sum += row_loss
        largest = max(largest, projected)
        smallest = min(smallest, projected)
        if projected != 0.0:
            new = coordinate_step(loss, alpha[k], G, squared_norms[k], C, weight, 1.0)
            step = new - alpha[k]
            if step != 0.0:
                alpha[k] = new
                add(rows, k, label * step, w)
                updates += 1
                path += abs(step) * math.sqrt(squared_norms[k])
    return kept, updates, largest, smallest, loss_sum, shrunk_loss, path
