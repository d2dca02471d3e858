"""DCD: dual coordinate descent.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

one coordinate at a time. With G = w.y_k - 1, minus the derivative of L by alpha_k,

    alpha_k <- clip(alpha_k - G / |y_k|^2, 0, C s_k),     w follows.

A pass visits the active rows in a fresh random order. The projected gradient of a row is G, but
zero where the box forbids the step. Shrinking: a row at 0 with G above the largest projected
gradient of the last pass, or at C s_k with G below the smallest, leaves the active set. When the
spread of the projected gradients over the active rows is small, all rows come back; when it is
small over all rows, ``eps`` ends the algorithm (if it is given), as it does in liblinear; without
``eps``, what counts as small becomes a tenth.

alpha is at hand, so every pass can be certified.

Given:      C, s, the rows; optionally alpha to start from, or w (then alpha is read off its
            margins).
Result:     w, and alpha.
Difference: liblinear's tolerance decides alone, and is about gradients; here it is one way to
            end among others, and what is proved is the gap.

Reference: C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, A Dual
Coordinate Descent Method for Large-scale Linear SVM, ICML 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, dual_point, point_of
from certsvm.certificates.rounding import updates_rounding
from certsvm.kernels.jit import kernel
from certsvm.kernels.losses import Loss, box_end, coordinate_step, dual_gradient, loss_value
from certsvm.kernels.prefetch import AHEAD, prefetch_row
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.problem.memory import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.shared.dual_start import starting_alpha
from certsvm.storage.fields import array, count, number, record, row_indices
from certsvm.storage.state import State

# What liblinear's tolerance is by default. Without ``eps`` it only decides when shrunk rows
# come back, and is lowered each time it is reached over all rows.
_SPREAD = 0.1


@dataclass(frozen=True)
class DCD(Solver):
    """Dual coordinate descent.

    Parameters
    ----------
    shrinking : bool, default=True
        Whether rows that seem settled are left out for a while.
    eps : float, default=None
        End when the projected gradients over all rows spread by no more than this: the
        tolerance of liblinear. None leaves the end to the gap and the limits.

    Examples
    --------
    >>> DCD(eps=0.1).name
    'dcd'
    """

    name: ClassVar[str] = "dcd"
    goes_on_from_alpha: ClassVar[bool] = True

    shrinking: bool = True
    eps: float | None = None

    def __post_init__(self) -> None:
        require(self.eps is None or self.eps > 0, self, f"eps must be > 0, got {self.eps}")

    def start(self, problem: Problem, options: Options) -> DCDRun:
        """Begin a run."""
        return DCDRun(self, problem, options)


class Thresholds(NamedTuple):
    """The gradients beyond which a row at an end of its box leaves the active set."""

    low: float = -math.inf
    high: float = math.inf


class DCDRun(Run):
    """Dual coordinate descent on one problem."""

    STATE = State(
        passes=count(),
        alpha=array("n_rows", low=0.0, high="box"),
        w=array("dimension"),
        rounding=number(low=0.0),
        spread=number(low=0.0),
        order=row_indices(),
        thresholds=record(
            Thresholds, low=number(high=0.0, infinite=True), high=number(low=0.0, infinite=True)
        ),
        shrunk_loss=number(low=0.0),
    )

    def __init__(self, solver: DCD, problem: Problem, options: Options) -> None:
        self._solver = solver
        self._problem = problem
        self._rng = options.rng
        self._passes = 0
        self._alpha = starting_alpha(problem, options.start)
        start = dual_point(problem, self._alpha, "start")
        self._w = start.w
        self._rounding = start.w_rounding
        self._spread = _SPREAD if solver.eps is None else solver.eps
        self._keep_alpha = options.keep_alpha
        self._complete = True
        self._bring_all_back()

    def _bring_all_back(self) -> None:
        self._order = self._problem.active.copy()
        self._thresholds = Thresholds()
        self._shrunk_loss = 0.0

    def epoch(self) -> Epoch:
        """Visit every active row once."""
        problem = self._problem
        self._passes += 1
        self._complete = False
        self._rng.shuffle(self._order)
        length = math.sqrt(float(self._w @ self._w))
        largest, smallest = -math.inf, math.inf
        loss, path = 0.0, 0.0
        updates, kept = 0, 0
        for part in problem.slices(self._order):
            part_kept, part_updates, *sums = descend(
                problem.loss,
                problem.rows.arrays,
                problem.signed_weights,
                problem.rows.squared_norms,
                problem.C,
                part,
                *self._thresholds,
                self._alpha,
                self._w,
            )
            self._order[kept : kept + part_kept] = part[:part_kept]
            kept += part_kept
            updates += part_updates
            largest, smallest = max(largest, sums[0]), min(smallest, sums[1])
            loss += sums[2]
            self._shrunk_loss += sums[3]
            path += sums[4]
        self._order = self._order[:kept]
        # Neither w nor a step was ever longer.
        reach = length + path
        self._rounding += updates_rounding(updates, reach, reach)
        finished = self._shrink(kept == problem.m, largest, smallest)
        self._complete = True
        return Epoch(
            epochs=self._passes,
            updates=updates,
            primal_estimate=0.5 * float(self._w @ self._w) + problem.C * (loss + self._shrunk_loss),
            finished=finished,
        )

    def _shrink(self, all_active: bool, largest: float, smallest: float) -> bool:
        """Set the thresholds for the next pass; tell whether ``eps`` is reached."""
        if largest - smallest <= self._spread:
            if all_active:
                if self._solver.eps is not None:
                    return True
                self._spread *= 0.1
            self._bring_all_back()
        elif self._solver.shrinking:
            self._thresholds = Thresholds(
                smallest if smallest < 0 else -math.inf,
                largest if largest > 0 else math.inf,
            )
        return False

    def candidates(self) -> Iterator[Vector]:
        """W."""
        yield self._w

    def dual(self) -> DualPoint | None:
        """Alpha, as it is after a complete pass."""
        if not self._complete:
            return None
        return point_of(
            self._problem,
            self._alpha,
            self._w,
            self._rounding,
            "dual coordinates",
            keep_alpha=self._keep_alpha,
        )


@kernel
def descend(
    loss: Loss,
    rows: RowArrays,
    signed_weights: Vector,
    squared_norms: Vector,
    C: float,
    order: NDArray[np.int64],
    low: float,
    high: float,
    alpha: Vector,
    w: Vector,
) -> tuple[int, int, float, float, float, float, float]:
    """One step on each row of ``order``; rows that stay active are moved to its front.

    Writes ``order``, ``alpha`` and ``w``. Returns how many rows stay active, the number of
    updates, the largest and the smallest projected gradient, the weighted losses of the rows that
    stay and of those that leave (each with the w of the moment), and sum |step| |y_k|.
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
