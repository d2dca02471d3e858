"""SGD-s: complete passes, each row presented once, with a certificate at no cost.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by presenting all rows, in a new random order in each pass, to the perceptron with a growing margin
(``growing_margin``):

    a <- a + s_k y_k  if  a.y_k <= lambda t;    t <- t + 1;    w = a / (lambda t).

Proposition 2: after T complete passes with M margin errors in all (weights counted in M),

    J_opt >= L^T = C M / T - 1/2 |w^T|^2,

since row k was a margin error I_k <= T times, so alpha_k = C s_k I_k / T lies in the box. Neither
alpha nor I_k need be stored: the memory is that of a few weight vectors.

Windows: the same holds for the passes since any earlier state (T0, M0, a0). Row k was presented
T - T0 times since then and was a margin error I_k - I0_k <= T - T0 times, so

    alpha_k = C s_k (I_k - I0_k) / (T - T0)      lies in the box  [0, C s_k],
    sum_k alpha_k     = C (M - M0) / (T - T0),
    sum_k alpha_k y_k = C (a - a0) / (T - T0).

The first passes make many margin errors that the optimum does not have; the average over all passes
retains them, a window does not. A few snapshots at geometrically spaced times are enough.

The inner products of a pass also give the sum of the hinge losses, hence an estimate of J. When the
estimated gap is within a factor f of the target, the training loop computes J exactly.

Given:      C, s, the rows, a random order for each pass.
Result:     w^T, or the average w of a window, whichever has the smaller J.
Difference: the paper has L^T over all passes, the latest bounds, and the last w. Windows, multiples
            of the dual point and the best bounds so far are ours. The sequence of w, M and T is the
            paper's; with ``windows=0``, so are the dual points.

Reference: Panagiotakopoulos and Tsampouka (2013), Sections 2 and 3 (SGD-s).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, best_scale, counts_point, dual_bound, dual_point
from certsvm.certificates.rounding import grown_sum, length
from certsvm.kernels.jit import reordering_kernel
from certsvm.problem.base import PartedProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, float_type
from certsvm.solvers.growing_margin import GrowingMargin
from certsvm.solvers.order import Order

# The ratio of the times of successive snapshots.
_SPACING = 1.5


@dataclass(frozen=True)
class SGDs(Solver, f="> 0", windows=">= 0", precision='"double" or "single"'):
    """SGD in complete passes, each row presented once.

    Parameters
    ----------
    f : float, default=1.2
        J is computed exactly once the estimated gap is within f times the target. With a larger f,
        J is computed earlier and more often.
    windows : int, default=6
        Number of snapshots of a for windowed certificates; 0 counts the errors of all passes, as in
        the paper.
    precision : {"double", "single"}, default="double"
        Precision of a. Certificates are always computed in double precision. In single precision,
        the rounding of a is too large to prove a bound, so margin errors are counted by row.
    shuffled : bool, default=None
        Whether neighbouring rows are no more alike than random pairs, so that they may be presented
        together, which is faster. None decides from a sample. The paper's order is random
        throughout (False).

    Examples
    --------
    >>> SGDs(windows=0, shuffled=False).name
    'sgd-s'
    """

    name = "sgd-s"
    n_vectors = 12
    problem_type = PartedProblem

    f: float = 1.2
    windows: int = 6
    precision: Literal["double", "single"] = "double"
    shuffled: bool | None = None

    def ell(self, passes: int) -> int:
        """The number of presentations of each row in a pass; passes count from 1."""
        return 1


class SGDsRun(Run, of=SGDs):
    """SGD-s, or SGD-m, on one problem. Keeping alpha costs an integer per row and snapshot."""

    def __init__(self, solver: SGDs, problem: PartedProblem, options: Options) -> None:
        super().__init__(solver, problem, options)
        self._state = GrowingMargin(
            problem, options.first_w(problem), options.first_t(problem),
            keep_counts=options.keep_alpha or solver.precision == "single",
            dtype=float_type(solver, solver.precision, problem),
        )  # fmt: skip
        self._windows = Windows(self._state, solver.windows)
        # To sample the rows once; blocks of a stream have orders of their own.
        self._order = self._order_in(problem) if isinstance(problem, Problem) else None

    def _order_in(self, part: Part) -> Order:
        return Order(part, self._rng, shuffled=self._solver.shuffled)

    def epoch(self) -> Epoch:
        """Present every row ell times, in a new random order."""
        self._dual_point = None
        self._passes += 1
        ell = self._solver.ell(self._passes)
        margin_errors, loss = 0, 0.0
        for part in self._problem.parts():
            order = self._order or self._order_in(part)
            errors, losses = self._state.present(order.permuted(part.active), ell, part)
            margin_errors += errors
            loss += losses
        since, dual = self._windows.best()
        self._dual_point = lambda: self._windows.point(since)
        self._windows.observe()
        return Epoch(
            epochs=self._state.T, margin_errors=margin_errors,
            primal_estimate=0.5 * self._state.squared_norm + self._problem.C * loss,
            dual_estimate=dual if self._solver.precision == "single" else None,
        )  # fmt: skip

    def candidates(self) -> Iterator[Vector]:
        """The last iterate, then the average w of the best window."""
        yield self._state.w
        if (point := self.dual()) is not None:
            # If the dual point is scaled down, the average is too long by the same factor.
            yield dual_bound(point)[1] * point.w


class Windows:
    """Dual points from the passes since each of a few snapshots of ``state``.

    The first snapshot is taken now. ``size`` more are kept, at times T in a constant ratio; a
    size of zero gives Proposition 2.
    """

    def __init__(self, state: GrowingMargin, size: int) -> None:
        self._state, self._size, self._next = state, size, 1.0
        self._snapshots = [state.snapshot()]

    def best(self) -> tuple[GrowingMargin, float]:
        """The snapshot since which the bound is largest, and that bound.

        The bound here ignores rounding; ``point`` includes it.
        """
        values = [self._value(since) for since in self._snapshots]
        i = int(np.argmax(values))
        return self._snapshots[i], values[i]

    def observe(self) -> None:
        """Take a snapshot if one is due."""
        epochs = self._state.T - self._state.T_start
        if self._size == 0 or epochs < self._next:
            return
        self._next = max(self._next + 1.0, _SPACING * epochs)
        if len(self._snapshots) > self._size:
            self._snapshots.pop(0)
        self._snapshots.append(self._state.snapshot())

    def point(self, since: GrowingMargin) -> DualPoint:
        """The dual point of the passes since a snapshot."""
        state, problem = self._state, self._state.problem
        per_count = problem.C / (state.T - since.T)
        first, last = since.T - state.T_start, state.T - state.T_start
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

    def _value(self, since: GrowingMargin) -> float:
        per_count = self._state.problem.C / (self._state.T - since.T)
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


def present_once(problem: Problem, w: Vector, t: int) -> tuple[Vector, int]:
    """Present the rows of ``problem`` once, in their order, given w after ``t`` presentations.

    Returns the new w and t. This is SGD on a stream: earlier rows are not part of the problem, so
    there is no bound.
    """
    state = GrowingMargin(problem, w, t)
    state.present(problem.active)
    return state.w, state.t
