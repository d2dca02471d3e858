"""Chords: what two certified fits prove about every C between them.

Let w_1, alpha_1 be certified at C_1, and w_2, alpha_2 at C_2 > C_1. For t in [0, 1] put

    C(t) = (1-t) C_1 + t C_2,    w(t) = (1-t) w_1 + t w_2,    alpha(t) = (1-t) alpha_1 + t alpha_2.

The box moves as alpha does, so alpha(t) is feasible at C(t). The loss l(w), the sum of the weighted
losses of all rows, is convex, 1/2 |w|^2 is quadratic, and the sum of D_k(alpha_k) (``losses``) is
concave in alpha and C together. With v = sum_k alpha_k y_k,

    J(w(t))     <= (1-t) J_1 + t J_2 + t (1-t) [(C_2 - C_1)(l_1 - l_2) - 1/2 |w_1 - w_2|^2],
    L(alpha(t)) >= (1-t) L_1 + t L_2 + t (1-t) 1/2 |v_1 - v_2|^2,

the second with equality for the hinge. No row is read: J, L, |w| and the two distances suffice.

For the squared hinge, L(alpha(t)) exceeds the bound by

    t (1-t) C_1 C_2 / C(t) sum_k (alpha_1k / C_1 - alpha_2k / C_2)^2 / (4 s_k).

If the intercept is free, |w|^2, |v|^2 and the distances are without the last entry. docs/theory.md
has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from certsvm.certificates.certificate import Certificate, relative_gap
from certsvm.certificates.dual import DualVector
from certsvm.certificates.rounding import SLACK, Bound, length, units
from certsvm.kernels.losses import loss_named
from certsvm.kernels.rows import Vector

CHORD = "chord"
"""How the dual bound of a chord's certificate was obtained."""

# More than the roundings of the shares, and of a quadratic in t.
_ROUNDINGS = 32


@dataclass(frozen=True)
class ChordEnd:
    """A certified fit at one C.

    Attributes
    ----------
    certificate : Certificate
        Its bounds, with their allowances, and C.
    w : ndarray of shape (dimension,)
        The certified weight vector.
    vector : DualVector
        v = sum_k alpha_k y_k of the certificate's dual point.
    """

    certificate: Certificate
    w: Vector
    vector: DualVector

    @property
    def C(self) -> float:
        """Weight of the loss."""
        return self.certificate.C

    @property
    def primal(self) -> Bound:
        """J(w)."""
        return Bound(self.certificate.primal, self.certificate.primal_rounding)

    @property
    def dual(self) -> Bound:
        """L(alpha)."""
        return Bound(self.certificate.dual, self.certificate.dual_rounding)

    @property
    def regularised(self) -> Vector:
        """The entries of w that the regulariser contains."""
        return regularised(self.certificate, self.w)

    @cached_property
    def loss(self) -> Bound:
        """l(w), from J = 1/2 |w|^2 + C l(w)."""
        half = 0.5 * length(self.regularised) ** 2
        value = (self.primal.value - half) / self.C
        size = (self.primal.value + half) / self.C
        rounding = units(self.w.size + 8, size) + SLACK * self.primal.rounding / self.C
        return Bound(value, rounding)


class Chord:
    """The models between two fits, and what is proved about them.

    Parameters
    ----------
    first, last : ChordEnd
        The two fits, with ``first.C < last.C``.
    weight_sum, R : float
        The sum of the row weights, and the largest norm of a row of positive weight.

    Examples
    --------
    One row y = 1: J(w) = w^2 / 2 + C max(0, 1 - w), and w = alpha = C is optimal for C <= 1.

    >>> import numpy as np
    >>> def fit(C):
    ...     w = np.array([C])
    ...     J = C - C * C / 2
    ...     return ChordEnd(Certificate(J, J, target=0.01, C=C), w, DualVector(w, 0.0))
    >>> chord = Chord(fit(0.25), fit(0.75), weight_sum=1.0, R=1.0)
    >>> chord.worst_gap < 1e-12, round(chord.dual(0.5).value, 12)
    (True, 0.375)
    """

    def __init__(self, first: ChordEnd, last: ChordEnd, *, weight_sum: float, R: float) -> None:
        self.first, self.last = first, last
        self._loss = loss_named(first.certificate.loss)
        self._largest = max(length(first.w), length(last.w))
        # Upper bounds on J at the ends, and on the coefficient of t (1 - t).
        self._primals = [
            end.primal.high + self._storing(end.C, weight_sum, R) for end in (first, last)
        ]
        step = last.C - first.C
        distance = squared_distance(first.regularised, last.regularised)
        self._bulge = step * (first.loss.high - last.loss.low) - 0.5 * distance.low
        self._bulge += units(8, step * (abs(first.loss.high) + abs(last.loss.low)))
        self._bulge += units(8, distance.value)
        # The same for L, whose coefficient is known from both sides. The last entry of v is zero if
        # the intercept is free.
        self._duals = [first.dual, last.dual]
        error = first.vector.rounding + last.vector.rounding
        v, u = (regularised(end.certificate, end.vector.v) for end in (first, last))
        self._rise = squared_distance(v, u, error)

    def _storing(self, C: float, weight_sum: float, R: float) -> float:
        """What storing w(t) in floats may add to J.

        Three roundings of the shares, a product and a sum move w by at most delta, and the margin
        of a row by at most R delta. The loss is largest at an end.
        """
        delta = units(8, self._largest)
        most = max(self.first.loss.high, self.last.loss.high)
        added = self._loss.growth(most, weight_sum, R * delta)
        return SLACK * (delta * (self._largest + delta) + C * added)

    def shares(self, C: float) -> tuple[float, float]:
        """1 - t and t, where C(t) = C; each is off by three unit roundoffs of its size."""
        first, last = self.first.C, self.last.C
        if not first <= C <= last:
            raise ValueError(f"C must be between {first:g} and {last:g}, got {C!r}")
        return (last - C) / (last - first), (C - first) / (last - first)

    def primal(self, C: float) -> float:
        """An upper bound on J(w(t)), where C(t) = C."""
        return self._primal(*self.shares(C))

    def dual(self, C: float) -> Bound:
        """A lower bound on L(alpha(t)), where C(t) = C, which is L itself for the hinge."""
        return self._dual(*self.shares(C))

    def dual_of(self, C: float, first: Vector, last: Vector, weights: Vector) -> Bound:
        """L(alpha(t)), where C(t) = C, given alpha at the ends and the weights of the rows.

        For the squared hinge it is more than ``dual``. alpha_k, as stored, alpha_k / C and a
        difference of two round; these errors add to the root of the sum of squares as in
        Minkowski's inequality. A sum of nonnegative numbers in pairs is off by 65 units.

        If the intercept is free, L is that of an alpha whose sums over both labels are equal
        without rounding. That stored differs from it in proportion (``dual.balanced_point``), by no
        more than the allowance of L per sum of alpha.
        """
        bound = self.dual(C)
        if not self._loss.is_smooth:
            return bound
        s, t = self.shares(C)
        used = weights > 0.0
        a, b = first[used] / self.first.C, last[used] / self.last.C
        factor = s * t * self.first.C * (self.last.C / C)
        square = float(((a - b) ** 2 / (4.0 * weights[used])).sum())
        error = units(4, math.sqrt(float(((a + b) ** 2 / (4.0 * weights[used])).sum())))
        if self.first.certificate.free_intercept:
            for end, alpha, share in ((self.first, first, a), (self.last, last, b)):
                if (mass := float(alpha.sum())) > 0.0:
                    size = math.sqrt(float((share**2 / (4.0 * weights[used])).sum()))
                    error += SLACK * size * (end.dual.rounding / mass)
        off = SLACK * error * (2.0 * math.sqrt(square) + error) + units(80, square)
        return Bound(
            bound.value + factor * square,
            bound.rounding + factor * off + units(_ROUNDINGS, abs(bound.value) + factor * square),
        )

    def _primal(self, s: float, t: float) -> float:
        mixed = s * self._primals[0] + t * self._primals[1]
        bulge = s * t * self._bulge
        return mixed + bulge + units(_ROUNDINGS, mixed + abs(bulge))

    def _dual(self, s: float, t: float) -> Bound:
        (first, last), rise = self._duals, self._rise
        size = s * abs(first.value) + t * abs(last.value) + s * t * rise.value
        return Bound(
            s * first.value + t * last.value + 0.5 * s * t * rise.value,
            SLACK * (s * first.rounding + t * last.rounding + 0.5 * s * t * rise.rounding)
            + units(_ROUNDINGS, size),
        )

    def certificate(self, C: float, target: float) -> Certificate:
        """The certificate of w(t), where C(t) = C; ``primal`` is an upper bound on J."""
        return replace(
            self.first.certificate, primal=self.primal(C), dual=self.dual(C).low, target=target,
            bound=CHORD, scale=1.0, primal_rounding=0.0, dual_rounding=0.0, C=C,
        )  # fmt: skip

    @cached_property
    def worst_gap(self) -> float:
        """The largest relative gap on the chord, proved."""
        least, most = min(dual.low for dual in self._duals), max(self._primals)
        if not (least > 0.0 and math.isfinite(most + abs(self._bulge) + self._rise.high)):
            return math.inf
        gaps = [self._gap(t) for t in (0.0, 0.5, 1.0)]
        # A lower bound above the upper one is a contradiction, from which nothing follows.
        if min(gaps) < 0.0:
            return math.inf
        gap = max(gaps)
        # Dinkelbach's method: J(t) - (1 + gap) L(t) is quadratic in t. Its maximum falls to zero
        # as the gap rises to the largest J / L - 1.
        for _ in range(64):
            t = self._most_violated(gap)
            if not self._gap(t) > gap:
                # Rounding leaves the maximum uncertain by some units of the largest J.
                return gap + units(4 * _ROUNDINGS, (1.0 + gap) * (1.0 + most / least))
            gap = self._gap(t)
        return math.inf

    def _gap(self, t: float) -> float:
        s = 1.0 - t
        return relative_gap(self._primal(s, t), self._dual(s, t).low)

    def _most_violated(self, gap: float) -> float:
        """The t where J(t) - (1 + gap) L(t) is largest, L with its allowance against us."""
        ratio = 1.0 + gap
        first, last = (
            primal - ratio * (dual.value - SLACK * dual.rounding)
            for primal, dual in zip(self._primals, self._duals, strict=True)
        )
        curvature = self._bulge - ratio * 0.5 * (self._rise.value - SLACK * self._rise.rounding)
        if curvature <= 0.0:
            return 0.0 if first >= last else 1.0
        return min(max(0.5 + 0.5 * (last - first) / curvature, 0.0), 1.0)


def regularised(certificate: Certificate, w: Vector) -> Vector:
    """The entries of a vector of the certified problem that its regulariser contains."""
    return w[:-1] if certificate.free_intercept else w


def squared_distance(a: Vector, b: Vector, error: float = 0.0) -> Bound:
    """|a - b|^2, if the two vectors together are off by at most ``error`` in norm.

    A difference, a square and a sum of as many squares as there are entries round.
    """
    difference = a - b
    value = float(difference @ difference)
    computed = units(a.size + 4, value)
    return Bound(value, computed + SLACK * error * (2.0 * math.sqrt(value) + error))
