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

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.rounding import updates_rounding
from certsvm.kernels.jit import kernel
from certsvm.kernels.prefetch import AHEAD, prefetch_row
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.kernels.vectors import inner
from certsvm.problem.base import PartedProblem
from certsvm.problem.part import Part


class PassSums(NamedTuple):
    """Sums over the presentations of a pass.

    ``error_mass`` is the sum of s_k over all margin errors (without weights, their number),
    ``updates`` the number of additions to a, ``loss`` the weighted hinge sum from the inner
    products before each update.
    """

    margin_errors: int
    error_mass: float
    updates: int
    loss: float


class GrowingMargin:
    """The state (a, t) and the sums over all presentations, beginning with w after t of them.

    Attributes
    ----------
    a : ndarray of shape (dimension,)
        lambda t w, of the given ``dtype``.
    t, t_start : int
        The number of presentations, including those before the start, and its initial value.
    error_mass : float
        sum_k s_k I_k, where row k was a margin error I_k times. Without weights this is M.
    updates : int
        The number of additions to a.
    counts : ndarray of shape (n_rows,) or (0,)
        I_k, with ``keep_counts``.
    """

    def __init__(
        self, problem: PartedProblem, *, w: Vector | None = None, t: int = 0,
        keep_counts: bool = False, dtype: type[np.floating[Any]] = np.float64,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.t = t
        self.a: NDArray[Any] = np.zeros(problem.dimension, dtype=dtype)
        if w is not None:
            self.a[:] = (problem.lambda_ * t) * w
        self.error_mass = 0.0
        self.updates = 0
        self.counts = np.zeros(problem.n_rows if keep_counts else 0, dtype=np.int64)
        self.t_start = self.t
        self._squared_norm_start = self._squared_length()

    def present(self, order: NDArray[np.int64], ell: int = 1, part: Part | None = None) -> PassSums:
        """Present the rows of ``order``, each ``ell`` times in a row.

        ``order`` indexes the rows of ``part``, by default those of a problem in memory.
        """
        if part is None:
            assert isinstance(self.problem, Part)
            part = self.problem
        counts = self.counts[part.span] if self.counts.size else self.counts
        margin_errors, updates = 0, 0
        error_mass, loss = 0.0, 0.0
        for piece in part.slices(order):
            sums = present(
                part.rows.arrays, part.signed_weights, part.rows.squared_norms, piece,
                self.problem.lambda_, self.t, ell, self.a, counts,
            )  # fmt: skip
            self.t += ell * piece.size
            margin_errors += sums[0]
            error_mass += sums[1]
            updates += sums[2]
            loss += sums[3]
        self.error_mass += error_mass
        self.updates += updates
        return PassSums(margin_errors, error_mass, updates, loss)

    @property
    def w(self) -> Vector:
        """The weight vector a / (lambda t)."""
        a: Vector = self.a.astype(np.float64)
        return a / (self.problem.lambda_ * self.t) if self.t else a

    @property
    def squared_norm(self) -> float:
        """|w|^2."""
        scale = self.problem.lambda_ * self.t
        return self._squared_length() / (scale * scale) if self.t else 0.0

    def _squared_length(self) -> float:
        a = self.a if self.a.dtype == np.float64 else self.a.astype(np.float64)
        return inner(a, a)

    def largest_norm(self) -> float:
        """A bound on |a| at any time so far (Proposition 1)."""
        S, R, lambda_ = self.problem.largest_weight, self.problem.R, self.problem.lambda_
        t, t0 = self.t, self.t_start
        return math.sqrt(
            self._squared_norm_start
            + (S * R) * (S * R) * (t - t0)
            + S * lambda_ * (float(t - t0) * float(t + t0))
        )

    def rounding_since(self, updates: int) -> float:
        """A bound, in norm, on the rounding in a after the first ``updates`` updates."""
        longest = self.largest_norm()
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
    steps = slack / max(curvature, lambda_)
    # Compared as floats: the quotient may be beyond any integer type.
    if steps >= ell - 1:
        return ell
    return int(steps) + 1


@kernel
def present(
    rows: RowArrays, signed_weights: Vector, squared_norms: Vector, order: NDArray[np.int64],
    lambda_: float, t: int, ell: int, a: NDArray[Any], counts: NDArray[np.int64],
) -> tuple[int, float, int, float]:  # fmt: skip
    """Present the rows of ``order``, each ``ell`` times; return the fields of ``PassSums``.

    Writes ``a`` and, unless it is empty, ``counts``.
    """
    margin_errors = 0
    error_mass = 0.0
    updates = 0
    loss = 0.0
    for i in range(order.size):
        if i + AHEAD < order.size:
            prefetch_row(rows, order[i + AHEAD])
        k = order[i]
        signed_weight = signed_weights[k]
        weight = abs(signed_weight)
        margin = dot(rows, k, a)
        if signed_weight < 0.0:
            margin = -margin
        threshold = lambda_ * t
        P = margin - threshold
        if ell == 1:
            errors = 1 if margin <= threshold else 0
        else:
            errors = errors_among(ell, P, lambda_, weight * squared_norms[k])
        if errors > 0:
            if P < 0.0:
                loss += weight * (-P / threshold if t > 0 else 1.0)
            elif t == 0:
                loss += weight
            add(rows, k, errors * signed_weight, a)
            margin_errors += errors
            error_mass += errors * weight
            updates += 1
            if counts.size > 0:
                counts[k] += errors
        t += ell
    return margin_errors, error_mass, updates, loss
