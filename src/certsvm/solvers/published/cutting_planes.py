"""Cutting planes: OCAS and SVM^perf.

Both minimise    J(w) = 1/2 |w|^2 + C r(w)    by a lower envelope of the risk r.

The risk r(w) = sum_k s_k max(0, 1 - w.y_k) is convex, so each subgradient bounds it from below.
Given v, let c_k = 1 for the rows with v.y_k < 1, and 0 for the others. Then

    r(w) >= g - w.h,     g = sum_k s_k c_k,   h = sum_k s_k c_k y_k         for all w: a cut.

The master problem replaces r by the largest of the cuts so far, of which the first is zero:

    min 1/2 |w|^2 + C max_i (g_i - w.h_i);       its dual, with H_ij = h_i.h_j:
    max beta.g - 1/2 beta.H.beta     over  beta >= 0,  sum beta = C;      w = sum_i beta_i h_i,

and alpha_k = s_k sum_i beta_i c_ik lies in the box 0 <= alpha_k <= C s_k, so the master's dual
value is L(alpha): a cutting-plane method certifies.

The dual is solved by steps on pairs, as in SMO: mass moves between the two coordinates that gain
most, until the master's duality gap is a fraction of the gap to be closed. The solver starts from
the last solution; benchmarks/master.py compares it with QP libraries.

Any fraction below 1 makes progress: the newest cut raises the master's value at its last w to J of
the best w or more, so that the master's gap becomes the gap to be closed, and mass must move.
benchmarks/results/master.md has the rounds and times by fraction. A master problem solved further
fits cuts that still bound the risk badly; without a line search, that costs rounds on most sets.

OCAS cuts near the best w so far. In each round

    1. solve the master problem over the cuts so far: w_new, and a lower bound L;
    2. search exactly along the line from w_best to w_new: J is piecewise quadratic there, with a
       kink where a row crosses its margin; sort the kinks and find where the slope changes sign;
       that point becomes w_best;
    3. cut at (1 - mu) w_best + mu w_new.

J(w_best) never rises. The result is w_best, and alpha through the weights of the cuts.

Difference: the published program ends when Q_P - Q_D <= tol |Q_P|, computed without bounds on
            rounding; here the certificate decides. From the first round on, it solves the master
            problem to tol |Q_D| / 2; here the duality gap of the master problem must fall to 0.1 of
            the gap. It keeps all cuts; here a cut without weight for 50 rounds is dropped.

SVM^perf makes each cut at the w of the master problem. Let xi be the largest cut so far at w,
divided by sum_k s_k. The published rule ends when r(w) / sum_k s_k exceeds xi by no more than eps.
If the master problem is solved exactly, this means

    J(w) - L <= C eps sum_k s_k,

an absolute accuracy. The parameter ``eps`` offers it besides the relative target.

Difference: the published program solves the master problem until its optimality conditions hold to
            half of the least excess of r(w) / sum_k s_k over xi so far. Here the duality gap of the
            master problem must fall to 0.2 of the least J(w) - L so far. The rule for eps is the
            inequality above, which counts the error of the master problem. By default, the
            published program also skips rows that seem to stay on their side of the margin; here,
            each round looks at all rows. Both drop a cut without weight for 50 rounds.

The first cut is made at w = 0, or at the w to start from.

References: V. Franc and S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector
Machines, ICML 2008; T. Joachims, Training Linear SVMs in Linear Time, KDD 2006.
"""

import math
from dataclasses import dataclass, replace
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
from certsvm.solvers.base import Epoch, Options, Run, Solver

# The gradient is computed anew at most so often, after so many steps for each cut.
_MOST_GRADIENTS, _MOST_STEPS = 50, 1000
# A cut without weight for so many rounds is dropped.
_IDLE_ROUNDS = 50


class CuttingPlaneRun(Run):
    """The cuts, the solution ``beta`` of the master problem over them, and a weight vector.

    The master problem is solved to ``FRACTION`` of the gap. If alpha is kept, each cut has a bit
    per row: whether c_k is 1.
    """

    FRACTION: ClassVar[float]

    def __init__(self, solver: Solver, problem: Problem, options: Options) -> None:
        super().__init__(solver, problem, options)
        # The vectors h of the cuts, in a buffer that grows by doubling. The first cut is zero.
        self._buffer = np.zeros((8, problem.dimension))
        self.g, self.beta, self._rounding = np.zeros(1), np.array([problem.C]), np.zeros(1)
        self._gram, self._idle = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)
        self._bits = [np.packbits(np.zeros(problem.n_rows, dtype=np.bool_))]
        self._w = options.first_w(problem)
        self._margins = multiply(problem, self._w)
        self.add_cut(self._margins)
        # J(w), the largest lower bound so far, and the gap to be closed.
        self._J, self._L = self._objective(self._w, self._margins), 0.0
        self._gap = self._J

    def _move(self, w: Vector, products: Vector) -> Vector:
        """Move to, or towards, the ``w`` of the master problem; return the products to cut at."""
        self._w, self._J = w, self._objective(w, products)
        return products

    def epoch(self) -> Epoch:
        """One round: master problem, move, cut."""
        self._passes += 1
        self._dual_point = None
        point = self.solve(self.FRACTION * self._gap)
        products = multiply(self._problem, point.w)
        self._L = point.alpha_sum - 0.5 * inner(point.w, point.w)
        self.add_cut(self._move(point.w, products))
        self._gap = max(0.0, min(self._gap, self._J - self._L))
        self._dual_point = lambda: point
        errors = int(np.count_nonzero(products < 1.0))
        return Epoch(epochs=self._passes, margin_errors=errors, primal_estimate=self._J)

    @property
    def h(self) -> NDArray[np.float64]:
        """The vectors of the cuts, one per row."""
        return self._buffer[: self.g.size]

    def _objective(self, w: Vector, products: Vector) -> float:
        losses = np.maximum(0.0, 1.0 - products)
        return float(0.5 * inner(w, w) + self._problem.C * inner(self._problem.weights, losses))

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
        if self._options.keep_alpha:
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
            shares *= self._problem.weights
            return shares

        return mixed_point(
            beta, self.g, self.h, np.sqrt(np.diag(self._gram)), self._rounding,
            "cutting planes", alpha if self._options.keep_alpha else None,
        )  # fmt: skip


@dataclass(frozen=True)
class OCAS(Solver, mu="in (0, 1]"):
    """Cutting planes with a line search.

    Parameters
    ----------
    mu : float, default=0.1
        Position of the next cut between the best w (0) and the new w (1).

    Examples
    --------
    >>> OCAS().name
    'ocas'
    """

    name = "ocas"
    n_vectors = 6

    mu: float = 0.1


class OCASRun(CuttingPlaneRun, of=OCAS):
    """OCAS on one problem."""

    FRACTION = 0.1

    def _move(self, w: Vector, products: Vector) -> Vector:
        """Search along the line to ``w``; the next cut is made between both."""
        step = line_search(self._problem, self._w, self._margins, w, products)
        best = self._w + step * (w - self._w)
        if step <= 1.0:
            margins = self._margins + step * (products - self._margins)
        else:
            # Beyond w, combining the margins would magnify their rounding.
            margins = multiply(self._problem, best)
        J, mu = self._objective(best, margins), self._solver.mu
        # If w differs from the best one by rounding only, the step is meaningless.
        if J < self._J:
            self._w, self._margins, self._J = best, margins, J
        cut: Vector = (1.0 - mu) * self._margins + mu * products
        return cut


def line_search(
    problem: Problem, w: Vector, products: Vector, w_new: Vector, products_new: Vector
) -> float:
    """The t >= 0 with the least J at w + t (w_new - w)."""
    direction = w_new - w
    change = products_new - products
    weights = problem.C * problem.weights
    curvature = inner(direction, direction)
    # For small t > 0, the rows below the margin, or on it with a falling product, have a loss.
    losing = (products < 1.0) | ((products == 1.0) & (change < 0.0))
    slope = inner(w, direction) - inner(weights[losing], change[losing])
    if slope >= 0.0 or curvature == 0.0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kinks = (1.0 - products) / change
    ahead = np.flatnonzero(kinks > 0.0)
    ahead = ahead[np.argsort(kinks[ahead])]
    positions = kinks[ahead]
    # A row that crosses the margin, in either direction, raises the slope by this.
    jumps = weights[ahead] * np.abs(change[ahead])
    raised = slope + np.concatenate([[0.0], np.cumsum(jumps)])
    # On the i-th piece the slope is raised[i] + curvature t; find the first piece with a zero.
    ends = np.append(positions, math.inf)
    i = int(np.argmax(raised + curvature * ends >= 0.0))
    start = positions[i - 1] if i > 0 else 0.0
    return float(max(start, -raised[i] / curvature))


@dataclass(frozen=True)
class SVMperf(Solver, eps="> 0"):
    """Cutting planes without a line search.

    Parameters
    ----------
    eps : float, default=None
        End when J exceeds its lower bound by no more than C times this, per unit of weight. With
        None, only the relative gap and the limits end training.

    Examples
    --------
    >>> SVMperf(eps=0.001).name
    'svmperf'
    """

    name = "svmperf"
    n_vectors = 6

    eps: float | None = None


class SVMperfRun(CuttingPlaneRun, of=SVMperf):
    """SVM^perf on one problem."""

    # 0.3 takes fewer rounds to a gap of 1e-3, but half as many again to 1e-5 on text.
    FRACTION = 0.2

    def epoch(self) -> Epoch:
        """One round: master problem, move, cut."""
        epoch, problem, eps = super().epoch(), self._problem, self._solver.eps
        reached = eps is not None and problem.C * eps * problem.weight_sum >= self._J - self._L
        return replace(epoch, finished=reached)


def maximise(gram: NDArray[np.float64], g: Vector, C: float, accuracy: float, beta: Vector) -> None:
    """Maximise beta.g - 1/2 beta.gram.beta over beta >= 0, sum beta = C, in place.

    Ends when the master's duality gap is at most ``accuracy``.
    """
    for _ in range(_MOST_GRADIENTS):
        # Steps preserve the sum, and follow the gradient, up to rounding.
        beta *= C / beta.sum()
        gradient = g - gram @ beta
        if C * gradient.max() - beta @ gradient <= accuracy:
            break
        move_mass(gram, C, accuracy, _MOST_STEPS * g.size, beta, gradient)


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
