"""Cutting planes: the lower envelope of the risk, and the master problem over it.

The risk r(w) = sum_k s_k max(0, 1 - w.y_k) is convex, so each subgradient bounds it from below.
Given v, let c_k = 1 for the rows with v.y_k < 1, and 0 for the others. Then

    r(w) >= g - w.h,     g = sum_k s_k c_k,   h = sum_k s_k c_k y_k         for all w: a cut.

The master problem replaces r by the largest of the cuts so far, of which the first is zero:

    min 1/2 |w|^2 + C max_i (g_i - w.h_i);       its dual, with H_ij = h_i.h_j:
    max beta.g - 1/2 beta.H.beta     over  beta >= 0,  sum beta = C;      w = sum_i beta_i h_i,

and alpha_k = s_k sum_i beta_i c_ik lies in the box 0 <= alpha_k <= C s_k, so the master's dual
value is L(alpha): a cutting-plane method certifies.

The dual is solved by steps on pairs, as in SMO: mass moves between the two coordinates that gain
most, until the master's duality gap is a fraction of the gap to be closed. If such steps zigzag,
Newton steps on the coordinates with mass alternate with them. The solver starts from the last
solution; benchmarks/master.py compares it with QP libraries.

Any fraction below 1 makes progress: the newest cut raises the master's value at its last w to J of
the best w or more, so that the master's gap becomes the gap to be closed, and mass must move.
benchmarks/results/master.md has the rounds and times by fraction. A master problem solved further
fits cuts that still bound the risk badly; without a line search, that costs rounds on most sets.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, dual_point, mixed_point, shares_within
from certsvm.certificates.primal import multiply
from certsvm.kernels.jit import kernel
from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.resources import single_threaded_blas
from certsvm.solvers.base import Epoch, Options, Run

_MOST_FACES = 50
# A cut without weight for so many rounds is dropped.
_IDLE_ROUNDS = 50


class CuttingPlaneRun(Run):
    """The cuts, the solution ``beta`` of the master problem over them, and a weight vector.

    The master problem is solved to ``FRACTION`` of the gap. If alpha is kept, each cut has a bit
    per row: whether c_k is 1.
    """

    FRACTION: ClassVar[float]

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem, self._keep_alpha, self._rounds = problem, options.keep_alpha, 0
        # The vectors h of the cuts, in a buffer that grows by doubling. The first cut is zero.
        self._buffer = np.zeros((8, problem.dimension))
        self.g, self.beta, self._rounding = np.zeros(1), np.array([problem.C]), np.zeros(1)
        self._gram, self._idle = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)
        self._bits = [np.packbits(np.zeros(problem.n_rows, dtype=np.bool_))]
        self._point: DualPoint | None = None
        self._w = options.first_w(problem)
        self._margins = self._products(self._w)
        self.add_cut(self._margins)
        # J(w), the largest lower bound so far, and the gap to be closed.
        self._primal, self._dual = self._objective(self._w, self._margins), 0.0
        self._gap = self._primal

    @abstractmethod
    def _move(self, w: Vector, products: Vector) -> Vector:
        """Move to or towards the w of the master problem; return the products to cut at."""

    def epoch(self) -> Epoch:
        """One round: master problem, move, cut."""
        self._rounds += 1
        self._point = None
        point = self.solve(self.FRACTION * self._gap)
        products = self._products(point.w)
        self._dual = point.alpha_sum - 0.5 * inner(point.w, point.w)
        self.add_cut(self._move(point.w, products))
        self._gap = max(0.0, min(self._gap, self._primal - self._dual))
        self._point = point
        return Epoch(
            epochs=self._rounds,
            margin_errors=int(np.count_nonzero(products < 1.0)),
            primal_estimate=self._primal,
        )

    @property
    def h(self) -> NDArray[np.float64]:
        """The vectors of the cuts, one per row."""
        return self._buffer[: self.g.size]

    def _products(self, w: Vector) -> Vector:
        """w.y_k for all rows."""
        products = np.empty(self._problem.n_rows)
        multiply(self._problem, w, products)
        return products

    def _objective(self, w: Vector, products: Vector) -> float:
        losses = np.maximum(0.0, 1.0 - products)
        return 0.5 * inner(w, w) + self._problem.C * inner(self._problem.weights, losses)

    @single_threaded_blas()
    def add_cut(self, products: Vector) -> None:
        """Add the cut at v, given its products v.y_k."""
        inside = products < 1.0
        # For C = 1 this alpha is feasible.
        cut = dual_point(self._problem, np.where(inside, self._problem.weights, 0.0), "cut")
        n, h = self.g.size, cut.w
        row = self.h @ h
        self._gram = np.block([[self._gram, row[:, None]], [row[None, :], np.array([[h @ h]])]])
        if n == len(self._buffer):
            self._buffer = np.concatenate([self._buffer, np.empty_like(self._buffer)])
        self._buffer[n] = h
        self.g, self.beta = np.append(self.g, cut.alpha_sum), np.append(self.beta, 0.0)
        self._rounding = np.append(self._rounding, cut.w_rounding)
        self._idle = np.append(self._idle, 0)
        if self._keep_alpha:
            self._bits.append(np.packbits(inside))

    @single_threaded_blas()
    def solve(self, accuracy: float) -> DualPoint:
        """Solve until the duality gap of the master problem is at most ``accuracy``."""
        C = self._problem.C
        maximise(self._gram, self.g, C, max(accuracy, 1e-14 * C * self.g.max()), self.beta)
        self._idle = np.where(self.beta > 0.0, 0, self._idle + 1)
        self._idle[0] = 0
        keep = self._idle < _IDLE_ROUNDS
        if not keep.all():
            self._buffer[: np.count_nonzero(keep)] = self.h[keep]
            self.g, self.beta, self._rounding = self.g[keep], self.beta[keep], self._rounding[keep]
            self._gram, self._idle = self._gram[np.ix_(keep, keep)], self._idle[keep]
            self._bits = [bits for bits, kept in zip(self._bits, keep, strict=False) if kept]
        # The sum is C only up to rounding; the box must hold exactly.
        beta, bits = shares_within(self.beta.copy(), C), list(self._bits)

        def alpha() -> Vector:
            shares = np.zeros(self._problem.n_rows)
            for share, packed in zip(beta, bits, strict=True):
                shares += share * np.unpackbits(packed, count=shares.size)
            return self._problem.weights * shares

        return mixed_point(
            beta, self.g, self.h, np.sqrt(np.diag(self._gram)), self._rounding,
            "cutting planes", alpha if self._keep_alpha else None,
        )  # fmt: skip

    def candidates(self) -> Iterator[Vector]:
        """The weight vector."""
        yield self._w

    def dual(self) -> DualPoint | None:
        """The dual point of the master problem, after a complete round."""
        return self._point


def maximise(gram: NDArray[np.float64], g: Vector, C: float, accuracy: float, beta: Vector) -> None:
    """Maximise beta.g - 1/2 beta.gram.beta over beta >= 0, sum beta = C, in place.

    Ends when the master's duality gap is at most ``accuracy``.
    """
    for _ in range(_MOST_FACES):
        # Steps preserve the sum up to rounding.
        beta *= C / beta.sum()
        gradient = g - gram @ beta
        move_mass(gram, C, accuracy, 20 * g.size, beta, gradient)
        gradient = g - gram @ beta
        if C * gradient.max() - beta @ gradient <= accuracy:
            break
        _maximise_on_face(gram, g, beta)


def _maximise_on_face(gram: NDArray[np.float64], g: Vector, beta: Vector) -> None:
    """Newton's method on the coordinates with mass, dropping those that become zero.

    If cuts are nearly parallel, steps on pairs zigzag; Newton steps do not.
    """
    while True:
        face = np.flatnonzero(beta > 0.0)
        H = gram[np.ix_(face, face)]
        gradient = g[face] - gram[face] @ beta
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
        room[down] = beta[face[down]] / -direction[down]
        length = min(slope / curvature if curvature > 0.0 else math.inf, float(room.min()))
        if not math.isfinite(length):
            return
        beta[face] = np.where(room <= length, 0.0, beta[face] + length * direction)
        if not (room <= length).any():
            return


@kernel
def move_mass(
    gram: NDArray[np.float64], C: float, accuracy: float, most_steps: int, beta: Vector,
    gradient: Vector,
) -> None:  # fmt: skip
    """Move mass between pairs of coordinates of ``beta``, always with the largest gain."""
    for _ in range(most_steps):
        # Mass moves to the coordinate with the largest gradient. The gap is the gain if all did.
        to = np.argmax(gradient)
        if C * gradient[to] - inner(beta, gradient) <= accuracy:
            return
        best_gain, source, amount = 0.0, -1, 0.0
        for i in range(beta.size):
            slope = gradient[to] - gradient[i]
            if beta[i] > 0.0 and slope > 0.0:
                curvature = gram[to, to] + gram[i, i] - 2.0 * gram[to, i]
                move = beta[i]
                if curvature * beta[i] > slope:
                    move = slope / curvature
                gain = move * (slope - 0.5 * curvature * move)
                if gain > best_gain:
                    best_gain, source, amount = gain, i, move
        if source < 0:
            return
        beta[source] = beta[source] - amount if amount < beta[source] else 0.0
        beta[to] += amount
        for i in range(beta.size):
            gradient[i] -= amount * (gram[i, to] - gram[i, source])
