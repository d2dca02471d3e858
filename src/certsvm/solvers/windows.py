"""Windowed certificates: what any run of complete passes proves.

Between a snapshot (T0, mass0, a0) and now (T, mass, a), each row was presented T - T0 times
and was a margin error I_k - I0_k <= T - T0 times. So

    alpha_k = C s_k (I_k - I0_k) / (T - T0)      lies in the box  [0, C s_k],
    sum_k alpha_k     = C (mass - mass0) / (T - T0),
    sum_k alpha_k y_k = C (a - a0) / (T - T0),

and Proposition 2 is the case of a snapshot at the start. The first passes make many margin
errors that the answer does not need; they stay in the average over all passes for ever,
while a window forgets them. A few snapshots at geometrically spaced times are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certsvm.bounds import UNIT_ROUNDOFF, DualPoint
from certsvm.kernels.jit import reordering_kernel
from certsvm.rows import Vector
from certsvm.solvers.growing_margin import GrowingMargin


@dataclass(frozen=True)
class Snapshot:
    """The state at the end of a complete pass."""

    T: int
    error_mass: float
    updates: int
    a: Vector
    counts: NDArray[np.int64]


class Windows:
    """Dual points from the passes since a few snapshots.

    Parameters
    ----------
    state : GrowingMargin
        The state at the beginning, from which the first window starts.
    T : int
        Its number of epochs.
    size : int
        The number of snapshots besides the one at the beginning; zero gives Proposition 2.
    spacing : float
        How much larger T is at a snapshot than at the one before.
    """

    def __init__(self, state: GrowingMargin, T: int, *, size: int, spacing: float) -> None:
        self._state = state
        self._size = size
        self._spacing = spacing
        self._T_start = T
        self._next = 1.0
        self._snapshots = [self._snapshot(T)]

    def best(self, T: int) -> DualPoint:
        """The dual point of the window with the largest bound, after T epochs."""
        if len(self._snapshots) == 1:
            return self._point(self._snapshots[0], T)
        return self._point(max(self._snapshots, key=lambda since: self._value(since, T)), T)

    def observe(self, T: int) -> None:
        """Take a snapshot after T epochs if it is time for one."""
        if self._size == 0 or T - self._T_start < self._next:
            return
        self._next = max(self._next + 1.0, self._spacing * (T - self._T_start))
        if len(self._snapshots) > self._size:
            self._snapshots.pop(0)
        self._snapshots.append(self._snapshot(T))

    def _snapshot(self, T: int) -> Snapshot:
        s = self._state
        return Snapshot(T, s.error_mass, s.updates, s.a.copy(), s.counts.copy())

    def _value(self, since: Snapshot, T: int) -> float:
        """What the window's bound comes to, to choose by; the chosen one is computed anew."""
        per_count = self._state.problem.C / (T - since.T)
        A = per_count * (self._state.error_mass - since.error_mass)
        B = per_count**2 * squared_distance(self._state.a, since.a)
        s = min(1.0, A / B) if B > 0.0 else 1.0
        return s * A - 0.5 * s * s * B

    def _point(self, since: Snapshot, T: int) -> DualPoint:
        state, problem = self._state, self._state.problem
        per_count = problem.C / (T - since.T)
        w = per_count * (state.a - since.a)
        alpha_sum = per_count * (state.error_mass - since.error_mass)
        # error_mass sums at most ``updates`` terms without cancellation, then subtracts.
        alpha_sum_rounding = UNIT_ROUNDOFF * (
            per_count * state.error_mass * (state.updates - since.updates + 4)
        )
        w_rounding = per_count * state.rounding_since(since.updates) + 4.0 * UNIT_ROUNDOFF * float(
            np.linalg.norm(w)
        )
        first, last = since.T - self._T_start, T - self._T_start
        source = f"epochs 1 to {last}" if first == 0 else f"window of epochs {first + 1} to {last}"

        def alpha() -> Vector:
            return per_count * problem.weights * (state.counts - since.counts)

        return DualPoint(
            alpha_sum=alpha_sum,
            w=w,
            source=source,
            alpha_sum_rounding=alpha_sum_rounding,
            w_rounding=w_rounding,
            alpha=alpha if state.counts.size else None,
        )


@reordering_kernel
def squared_distance(a: Vector, b: Vector) -> float:
    """|a - b|^2, without a temporary vector."""
    total = 0.0
    for j in range(a.size):
        difference = a[j] - b[j]
        total += difference * difference
    return total
