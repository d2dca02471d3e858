"""Cutting planes: the lower envelope of the risk, and the master problem over it.

The risk r(w) = sum_k s_k max(0, 1 - w.y_k) is convex, so each subgradient bounds it from below.
Given v, let c_k = 1 for the rows with v.y_k < 1, and 0 for the others. Then

    r(w) >= g - w.h,     g = sum_k s_k c_k,   h = sum_k s_k c_k y_k         for all w: a cut.

The master problem replaces r by the largest of the cuts so far, and zero:

    min 1/2 |w|^2 + C max(0, max_i (g_i - w.h_i));       its dual, with H_ij = h_i.h_j:
    max beta.g - 1/2 beta.H.beta     over  beta >= 0,  sum beta <= C;      w = sum_i beta_i h_i.

alpha_k = s_k sum_i beta_i c_ik lies in the box 0 <= alpha_k <= C s_k, so the master's dual value is
L(alpha): a cutting-plane method certifies.

The dual is solved by steps on pairs, as in SMO: mass moves between the two coordinates that gain
most (the slack C - sum beta is a coordinate), until the master's duality gap is a fraction of the
gap to be closed. If such steps zigzag, Newton steps on the coordinates with mass alternate with
them. The solver starts from the last solution; benchmarks/master.py compares it with QP libraries.

Any fraction below 1 makes progress: the newest cut raises the master's value at its last w to J of
the best w or more, so that the master's gap becomes the gap to be closed, and mass must move.
benchmarks/results/master.md has the rounds and times by fraction. A master problem solved further
fits cuts that still bound the risk badly; without a line search, that costs rounds on most sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, dual_point, mixed_point, shares_within
from certsvm.certificates.primal import multiply
from certsvm.kernels.jit import kernel
from certsvm.parallel import single_threaded_blas
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Options, Run

_MOST_FACES = 50
# A cut without weight for so many rounds is dropped.
_IDLE_ROUNDS = 50


class Master:
    """The cuts, and the solution ``beta`` of the problem over them.

    With ``keep_alpha``, each cut keeps a bit per row: whether c_k is 1.
    """

    def __init__(self, problem: Problem, *, keep_alpha: bool) -> None:
        self._problem = problem
        self._keep_alpha = keep_alpha
        self._bits: list[NDArray[np.uint8]] = []
        # The vectors h of the cuts, in a buffer that grows by doubling.
        self._buffer = np.empty((8, problem.rows.dimension))
        self.g = np.empty(0)
        self._rounding = np.empty(0)
        self._gram = np.empty((0, 0))
        self._idle = np.empty(0, dtype=np.int64)
        self.beta = np.empty(0)

    @property
    def h(self) -> NDArray[np.float64]:
        """The vectors of the cuts, one per row."""
        return self._buffer[: self.g.size]

    def margins(self, w: Vector) -> Vector:
        """w.y_k for all rows."""
        products = np.empty(self._problem.n_rows)
        multiply(self._problem, w, products)
        return products

    @single_threaded_blas()
    def add_cut(self, products: Vector) -> None:
        """Add the cut at v, given its products v.y_k."""
        problem = self._problem
        inside = products < 1.0
        # For C = 1 this alpha is feasible.
        cut = dual_point(problem, np.where(inside, problem.weights, 0.0), "cut")
        h = cut.w
        row = self.h @ h
        self._gram = np.block([[self._gram, row[:, None]], [row[None, :], np.array([[h @ h]])]])
        n = self.g.size
        if n == len(self._buffer):
            self._buffer = np.concatenate([self._buffer, np.empty_like(self._buffer)])
        self._buffer[n] = h
        self.g = np.append(self.g, cut.alpha_sum)
        self._rounding = np.append(self._rounding, cut.w_rounding)
        self._idle = np.append(self._idle, 0)
        self.beta = np.append(self.beta, 0.0)
        if self._keep_alpha:
            self._bits.append(np.packbits(inside))

    @single_threaded_blas()
    def solve(self, accuracy: float) -> Vector:
        """Solve until the duality gap of the master problem is at most ``accuracy``; return w."""
        least = 1e-14 * self._problem.C * float(self.g.max())
        maximise(self._gram, self.g, self._problem.C, max(accuracy, least), self.beta)
        self._drop_idle()
        return self.beta @ self.h

    def dual(self) -> DualPoint:
        """The dual point of the last solution."""
        # Steps on pairs preserve the sum only up to rounding; the box must hold exactly.
        beta = shares_within(self.beta.copy(), self._problem.C)
        bits = list(self._bits)

        def alpha() -> Vector:
            shares = np.zeros(self._problem.rows.n_rows)
            for share, packed in zip(beta, bits, strict=True):
                shares += share * np.unpackbits(packed, count=shares.size)
            return self._problem.weights * shares

        return mixed_point(
            beta, self.g, self.h, np.sqrt(np.diag(self._gram)), self._rounding,
            "cutting planes", alpha if self._keep_alpha else None,
        )  # fmt: skip

    def _drop_idle(self) -> None:
        self._idle = np.where(self.beta > 0.0, 0, self._idle + 1)
        keep = self._idle < _IDLE_ROUNDS
        if keep.all():
            return
        self._buffer[: np.count_nonzero(keep)] = self.h[keep]
        self.g, self._rounding = self.g[keep], self._rounding[keep]
        self._gram = self._gram[np.ix_(keep, keep)]
        self._idle, self.beta = self._idle[keep], self.beta[keep]
        if self._keep_alpha:
            self._bits = [bits for bits, kept in zip(self._bits, keep, strict=True) if kept]


class CuttingPlaneRun(Run):
    """A run that keeps cuts, a weight vector, and the dual point of the last round.

    The master problem is solved to ``FRACTION`` of the gap.
    """

    FRACTION: ClassVar[float]

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._rounds = 0
        self._master = Master(problem, keep_alpha=options.keep_alpha)
        self._w = options.first_w(problem)
        self._point: DualPoint | None = None

    def candidates(self) -> Iterator[Vector]:
        """The weight vector."""
        yield self._w

    def dual(self) -> DualPoint | None:
        """The dual point of the master problem, after a complete round."""
        return self._point


def maximise(gram: NDArray[np.float64], g: Vector, C: float, accuracy: float, beta: Vector) -> int:
    """Maximise beta.g - 1/2 beta.gram.beta over beta >= 0, sum beta <= C, in place.

    Returns the number of pair steps; ends when the master's duality gap is at most ``accuracy``.
    """
    n = g.size + 1
    padded = np.zeros((n, n))
    padded[:-1, :-1] = gram
    linear = np.append(g, 0.0)
    mass = np.append(beta, max(0.0, C - float(beta.sum())))
    steps = 0
    for _ in range(_MOST_FACES):
        gradient = linear - padded @ mass
        steps += int(move_mass(padded, C, accuracy, 20 * n, mass, gradient))
        gradient = linear - padded @ mass
        if C * gradient.max() - mass @ gradient <= accuracy:
            break
        _maximise_on_face(padded, linear, mass)
        mass *= C / mass.sum()
    beta[:] = mass[:-1]
    return steps


def _maximise_on_face(gram: NDArray[np.float64], linear: Vector, mass: Vector) -> None:
    """Newton's method on the coordinates with mass, dropping those that become zero.

    If cuts are nearly parallel, steps on pairs zigzag; Newton steps do not.
    """
    while True:
        face = np.flatnonzero(mass > 0.0)
        H = gram[np.ix_(face, face)]
        gradient = linear[face] - gram[face] @ mass
        # The total mass is constant. A small ridge makes H invertible.
        bordered = np.ones((face.size + 1, face.size + 1))
        bordered[:-1, :-1] = H + 1e-13 * max(H.max(), 1e-300) * np.eye(face.size)
        bordered[-1, -1] = 0.0
        direction = np.linalg.solve(bordered, np.append(gradient, 0.0))[:-1]
        slope, curvature = float(gradient @ direction), float(direction @ H @ direction)
        if not slope > 0.0:
            return
        down = direction < 0.0
        room = np.full(face.size, math.inf)
        room[down] = mass[face[down]] / -direction[down]
        length = min(slope / curvature if curvature > 0.0 else math.inf, float(room.min()))
        if not math.isfinite(length):
            return
        mass[face] = np.where(room <= length, 0.0, mass[face] + length * direction)
        if not (room <= length).any():
            return


@kernel
def move_mass(
    gram: NDArray[np.float64],
    C: float,
    accuracy: float,
    most_steps: int,
    mass: Vector,
    gradient: Vector,
) -> int:
    """Move mass between pairs of coordinates, always with the largest gain; return the steps."""
    n = mass.size
    for step in range(most_steps):
        # Mass moves to the coordinate with the largest gradient. The gap is the gain if all did.
        to = 0
        gap = 0.0
        for i in range(n):
            if gradient[i] > gradient[to]:
                to = i
            gap -= mass[i] * gradient[i]
        gap += C * gradient[to]
        if gap <= accuracy:
            return step
        best_gain = 0.0
        source = -1
        amount = 0.0
        for i in range(n):
            slope = gradient[to] - gradient[i]
            if mass[i] > 0.0 and slope > 0.0:
                curvature = gram[to, to] + gram[i, i] - 2.0 * gram[to, i]
                move = mass[i]
                if curvature * mass[i] > slope:
                    move = slope / curvature
                gain = move * (slope - 0.5 * curvature * move)
                if gain > best_gain:
                    best_gain, source, amount = gain, i, move
        if source < 0:
            return step
        mass[source] = mass[source] - amount if amount < mass[source] else 0.0
        mass[to] += amount
        for i in range(n):
            gradient[i] -= amount * (gram[i, to] - gram[i, source])
    return most_steps
