"""Windowed certificates: dual points from consecutive complete passes.

Between a snapshot (T0, mass0, a0) and the current state (T, mass, a), each row was presented T - T0
times and was a margin error I_k - I0_k <= T - T0 times. So

    alpha_k = C s_k (I_k - I0_k) / (T - T0)      lies in the box  [0, C s_k],
    sum_k alpha_k     = C (mass - mass0) / (T - T0),
    sum_k alpha_k y_k = C (a - a0) / (T - T0),

and Proposition 2 is the case of a snapshot at the start. The first passes make many margin errors
that the optimum does not have; the average over all passes retains them, a window does not. A few
snapshots at geometrically spaced times are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, best_scale, counts_point, dual_point
from certsvm.certificates.rounding import grown_sum, length
from certsvm.kernels.jit import reordering_kernel
from certsvm.problem.rows import Vector
from certsvm.solvers.shared.growing_margin import GrowingMargin

# The ratio of the times of successive snapshots.
_SPACING = 1.5


@dataclass(frozen=True)
class Snapshot:
    """The state at the end of a complete pass."""

    T: int
    error_mass: float
    updates: int
    a: NDArray[Any]
    counts: NDArray[np.int64]


class Windows:
    """Dual points from the passes since each of a few snapshots of ``state``.

    The first snapshot is taken now. ``size`` more are kept, at times T in a constant ratio; a
    size of zero gives Proposition 2.
    """

    def __init__(self, state: GrowingMargin, size: int) -> None:
        self._state = state
        self._size = size
        self._next = 1.0
        self._snapshots = [self._snapshot(self.T_start)]

    @property
    def T_start(self) -> int:
        """The number of epochs before the start."""
        return self._state.t_start // self._state.problem.m

    def best(self, T: int) -> tuple[Snapshot, float]:
        """The snapshot since which the bound is largest, after T epochs, and that bound.

        The bound here ignores rounding; ``point`` includes it.
        """
        values = [self._value(since, T) for since in self._snapshots]
        i = int(np.argmax(values))
        return self._snapshots[i], values[i]

    def observe(self, T: int) -> None:
        """Take a snapshot after T epochs if one is due."""
        if self._size == 0 or T - self.T_start < self._next:
            return
        self._next = max(self._next + 1.0, _SPACING * (T - self.T_start))
        if len(self._snapshots) > self._size:
            self._snapshots.pop(0)
        self._snapshots.append(self._snapshot(T))

    def point(self, since: Snapshot, T: int) -> DualPoint:
        """The window's dual point."""
        state, problem = self._state, self._state.problem
        per_count = problem.C / (T - since.T)
        first, last = since.T - self.T_start, T - self.T_start
        source = f"epochs 1 to {last}" if first == 0 else f"window of epochs {first + 1} to {last}"

        def alpha() -> Vector:
            box = problem.C * problem.weights
            return np.minimum(per_count * problem.weights * (state.counts - since.counts), box)

        if state.a.dtype != np.float64:
            # The rounding in a is too large to prove a bound; the counts are exact.
            return dual_point(problem, alpha(), source)
        a = state.a - since.a
        mass = grown_sum(since.error_mass, state.error_mass, state.updates - since.updates)
        return counts_point(
            per_count, mass, a, state.rounding_since(since.updates), length(a), source,
            alpha if state.counts.size else None,
        )  # fmt: skip

    def _snapshot(self, T: int) -> Snapshot:
        s = self._state
        return Snapshot(T, s.error_mass, s.updates, s.a.copy(), s.counts.copy())

    def _value(self, since: Snapshot, T: int) -> float:
        per_count = self._state.problem.C / (T - since.T)
        A = per_count * (self._state.error_mass - since.error_mass)
        B = per_count * (per_count * squared_distance(self._state.a, since.a))
        s = best_scale(A, B)
        return s * A - 0.5 * (s * (s * B))


@reordering_kernel
def squared_distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """|a - b|^2, without a temporary vector."""
    total = 0.0
    for j in range(a.size):
        difference = np.float64(a[j]) - np.float64(b[j])
        total += difference * difference
    return total
