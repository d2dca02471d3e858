"""SGD on the hinge loss, as a perceptron whose margin grows.

The step of plain SGD with learning rate 1/(t+1) is

    w <- t/(t+1) w,   plus  s_k y_k / (lambda (t+1))  if  w.y_k <= 1,        lambda = 1/(C m).

Let w = a / (lambda t). Then the factor t/(t+1) costs nothing:

    a <- a + s_k y_k   if   a.y_k <= lambda t;        t <- t + 1 in any case.

A presentation that changes a is a margin error. Ties are margin errors, everywhere.

Proposition 1 of the paper bounds |a_t|^2 by R^2 t + lambda t (t - 1), so no projection is
needed. With weights of at most S, each margin error adds at most S^2 R^2 + 2 S lambda t, and
the bound is S^2 R^2 t + S lambda t (t - 1). It serves to bound the rounding in a.

Proposition 3: of ell presentations of one row in a row, with P = a.y_k - lambda t before them,

    0                                                                  if P > (ell - 1) lambda
    min(ell, floor(((ell - 1) lambda - P) / max(s_k |y_k|^2, lambda)) + 1)     otherwise

are margin errors: a margin error raises P by s_k |y_k|^2 - lambda, any other presentation lowers
it by lambda. One inner product serves all ell.

Reference: C. Panagiotakopoulos and P. Tsampouka, The Stochastic Gradient Descent for the
Primal L1-SVM Optimization Revisited, ECML-PKDD 2013, Section 2.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.rounding import updates_rounding
from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, visit_row
from certsvm.kernels.vectors import inner
from certsvm.problem.base import PartedProblem


class GrowingMargin:
    """The state (a, t) and the sums over all presentations, beginning with w after t of them.

    Attributes
    ----------
    a : ndarray of shape (dimension,)
        lambda t w, of the given ``dtype``.
    t, t_start : int
        The number of presentations, including those before the start, and its initial value.
    T_start : int
        T at the start.
    error_mass : float
        sum_k s_k I_k, where row k was a margin error I_k times. Without weights this is M.
    updates : int
        The number of additions to a.
    counts : ndarray of shape (n_rows,) or (0,)
        I_k, with ``keep_counts``.
    """

    def __init__(
        self, problem: PartedProblem, w: Vector | None = None, t: int = 0, *,
        keep_counts: bool = False, dtype: type[np.floating[Any]] = np.float64,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.t = self.t_start = t
        self.T_start = t // problem.m
        w = np.zeros(problem.dimension) if w is None else w
        self.a: NDArray[Any] = (problem.lambda_ * t * w).astype(dtype)
        self.error_mass, self.updates = 0.0, 0
        self.counts = np.zeros(problem.n_rows if keep_counts else 0, dtype=np.int64)
        start = self.a.astype(np.float64)
        self._squared_length_start = inner(start, start)

    def snapshot(self) -> GrowingMargin:
        """A copy of the state."""
        other = copy.copy(self)
        other.a, other.counts = self.a.copy(), self.counts.copy()
        return other

    def present(
        self, order: NDArray[np.int64], ell: int = 1, part: Any = None
    ) -> tuple[int, float]:
        """Present the rows of ``order``, each ``ell`` times in a row.

        ``order`` indexes the rows of ``part``, by default those of a problem in memory. Returns the
        number of margin errors, and the weighted hinge sum from the products before each update.
        """
        part = part or self.problem
        counts = self.counts[part.span] if self.counts.size else self.counts
        margin_errors, loss = 0, 0.0
        for piece in part.slices(order):
            errors, mass, updates, losses = present(
                part.rows.arrays, part.signed_weights, part.rows.squared_norms, piece,
                self.problem.lambda_, self.t, ell, self.a, counts,
            )  # fmt: skip
            self.t += ell * piece.size
            self.error_mass += mass
            self.updates += updates
            margin_errors += errors
            loss += losses
        return margin_errors, loss

    @property
    def T(self) -> int:
        """The number of presentations of each row, if there were only complete passes."""
        return self.t // self.problem.m

    @property
    def w(self) -> Vector:
        """The weight vector a / (lambda t)."""
        a: Vector = self.a.astype(np.float64)
        return a / (self.problem.lambda_ * self.t) if self.t else a

    @property
    def squared_norm(self) -> float:
        """|w|^2."""
        w = self.w
        return inner(w, w)

    @property
    def largest_norm(self) -> float:
        """A bound on |a| at any time so far (Proposition 1)."""
        S, t, t0 = self.problem.largest_weight, self.t, self.t_start
        longest = S * self.problem.R
        growth = longest * longest * (t - t0)
        growth += S * self.problem.lambda_ * (float(t - t0) * float(t + t0))
        return math.sqrt(self._squared_length_start + growth)

    def rounding_since(self, updates: int) -> float:
        """A bound, in norm, on the rounding in a after the first ``updates`` updates."""
        longest = self.largest_norm
        # A step connects two points of at most that norm.
        return updates_rounding(self.updates - updates, longest, 2.0 * longest)


@kernel
def errors_among(ell: int, P: float, lambda_: float, curvature: float) -> int:
    """Proposition 3: margin errors among ``ell`` presentations of a row in a row.

    ``curvature`` is s_k |y_k|^2, ``P`` is a.y_k - lambda t before the first of them.
    """
    slack = (ell - 1) * lambda_ - P
    if slack < 0.0:
        return 0
    # Compared as floats: the quotient may be beyond any integer type.
    return int(min(slack / max(curvature, lambda_), ell - 1.0)) + 1


@kernel
def present(
    rows: RowArrays, signed_weights: Vector, squared_norms: Vector, order: NDArray[np.int64],
    lambda_: float, t: int, ell: int, a: NDArray[Any], counts: NDArray[np.int64],
) -> tuple[int, float, int, float]:  # fmt: skip
    """Present the rows of ``order``, each ``ell`` times; write ``a`` and, unless empty, ``counts``.

    Returns the number of margin errors, the sum of s_k over them, the number of additions to a, and
    the weighted hinge sum.
    """
    margin_errors, updates, error_mass, loss = 0, 0, 0.0, 0.0
    for i in range(order.size):
        k, weight, label, margin = visit_row(rows, signed_weights, order, i, a)
        threshold = lambda_ * t
        P = margin - threshold
        errors = errors_among(ell, P, lambda_, weight * squared_norms[k])
        if errors > 0:
            loss += weight * (max(-P, 0.0) / threshold if t > 0 else 1.0)
            add(rows, k, errors * label * weight, a)
            margin_errors += errors
            error_mass += errors * weight
            updates += 1
            if counts.size > 0:
                counts[k] += errors
        t += ell
    return margin_errors, error_mass, updates, loss
