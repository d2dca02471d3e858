"""Enclosures: intervals that contain J(w) and L(alpha), whatever rounding does.

The arithmetic of verification, in NumPy and Python's fractions alone. It shares nothing with the
rounding allowances of training. docs/verification.md proves that the intervals contain the exact
values; in short:

* A product is a pair of numbers whose sum is exact (``two_product``).
* Sums over rows and columns are taken in two parts (``grouped_sums``): the leading digits, whose
  sum has no rounding error in any order, and the rest, which is smaller by a factor of about 1e16
  and whose rounding error is bounded.
* The few numbers that remain are combined as fractions.

Overflow makes infinity or NaN, and an interval without ends: it confirms nothing.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import Certificate

Vector: TypeAlias = NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53
# Errors are computed in float64, too. A sum of n numbers >= 0 is off by at most n unit roundoffs of
# itself, and this factor covers that for n up to 2^46.
INFLATION = 1.01
# More than what underflow can take from the few products of one term or row.
UNDERFLOW = 2.0**-1060

_LARGEST = float(np.finfo(np.float64).max)
_LEAST_NORMAL, _SCALE = 2.0**-1022, 2.0**100
_HALF, _UPPER_BITS = np.int64(1 << 26), np.int64(-1 << 27)


class Interval(NamedTuple):
    """Numbers from ``low`` to ``high``."""

    low: float
    high: float

    @classmethod
    def of(cls, low: Fraction, high: Fraction) -> Interval:
        """The least interval of float64 numbers that contains the given one.

        >>> Interval.of(Fraction(1, 2), Fraction(1, 2))
        Interval(low=0.5, high=0.5)
        """
        return cls(-_rounded_up(-low), _rounded_up(high))

    def __str__(self) -> str:
        return f"from {self.low:.6g} to {self.high:.6g}"


ANYTHING = Interval(-math.inf, math.inf)
NOTHING = Interval(math.inf, math.inf)
"""J outside its domain: of a vector that is not one of the problem's."""


def _rounded_up(x: Fraction) -> float:
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf if x > 0 else -_LARGEST
    return nearest if nearest >= x else math.nextafter(nearest, math.inf)


def two_sum(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The sum a + b, rounded, and its rounding error: their sum is exact."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def split(a: Vector) -> tuple[Vector, Vector]:
    """Two numbers of 26 bits each whose sum is a."""
    # A subnormal number has its first bit anywhere; a power of two makes it a normal one.
    subnormal = np.abs(a) < _LEAST_NORMAL
    scaled = a * np.where(subnormal, _SCALE, 1.0)
    upper: Vector = ((scaled.view(np.int64) + _HALF) & _UPPER_BITS).view(np.float64)
    upper = upper / np.where(subnormal, _SCALE, 1.0)
    return upper, a - upper


def two_product(
    a: Vector, b: Vector, split_a: tuple[Vector, Vector] | None = None
) -> tuple[Vector, Vector]:
    """The product a b, rounded, and its rounding error: their sum is exact, but for underflow."""
    (a1, a2), (b1, b2) = split(a) if split_a is None else split_a, split(b)
    product = a * b
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def exceeds(a: Vector, b: float, c: Vector) -> NDArray[np.bool_]:
    """Whether a > b c, exactly, of numbers >= 0 with a <= b c in float64.

    Products of numbers from 1/2 to 1 do not underflow.
    """
    (first, e), (second, f), (third, g) = np.frexp(a), math.frexp(b), np.frexp(c)
    product, error = two_product(np.full(c.size, second), third)
    beyond: NDArray[np.bool_] = np.ldexp(first, e - f - g) - product > error
    return beyond


@dataclass(frozen=True)
class Enclosed:
    """A number between two fractions; nothing is known if it is not ``finite``."""

    low: Fraction
    high: Fraction
    finite: bool = True

    @classmethod
    def exactly(cls, value: Fraction | float) -> Enclosed:
        """A number that is known."""
        return cls(Fraction(value), Fraction(value))

    @classmethod
    def sum(cls, sums: Sums, error: float = 0.0) -> Enclosed:
        """A single sum, which may be off by another error, too."""
        numbers = [float(sums.high[0]), float(sums.low[0]), float(sums.error[0]), error]
        if not all(map(math.isfinite, numbers)):
            return replace(_ZERO, finite=False)
        high, low, first, second = map(Fraction, numbers)
        return cls(high + low - first - second, high + low + first + second)

    def __add__(self, other: Enclosed) -> Enclosed:
        finite = self.finite and other.finite
        return Enclosed(self.low + other.low, self.high + other.high, finite)

    def __mul__(self, other: Enclosed) -> Enclosed:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Enclosed(min(ends), max(ends), self.finite and other.finite)

    def interval(self) -> Interval:
        """The least interval of float64 numbers that contains it."""
        return Interval.of(self.low, self.high) if self.finite else ANYTHING


_ZERO, _ONE = Enclosed.exactly(0), Enclosed.exactly(1)


class Sums(NamedTuple):
    """Numbers known as ``high + low``, up to ``error``."""

    high: Vector
    low: Vector
    error: Vector

    def plus(self, other: Sums) -> Sums:
        """The sums of two such numbers each."""
        high, carry = two_sum(self.high, other.high)
        carry = carry + other.low
        low = self.low + carry
        roundings = UNIT_ROUNDOFF * (np.abs(carry) + np.abs(low))
        return Sums(high, low, self.error + other.error + roundings)

    def times(self, factor: Enclosed) -> Sums:
        """The products with a factor from zero to one."""
        if factor == _ONE:
            return self
        if factor == _ZERO:
            return Sums(*np.zeros((3, self.high.size)))
        # Two numbers have more of its digits than one.
        value = (factor.low + factor.high) / 2
        first = float(value)
        second = float(value - Fraction(first))
        off = abs(value - Fraction(first) - Fraction(second)) + factor.high - value
        high, carry = two_product(self.high, np.full(self.high.size, first))
        of_second, of_low = second * self.high, first * self.low
        roundings = 4.0 * UNIT_ROUNDOFF * (np.abs(carry) + np.abs(of_second) + np.abs(of_low))
        inherited = _rounded_up(factor.high) * self.error
        moved = _rounded_up(off) * (np.abs(self.high) + np.abs(self.low))
        error = inherited + moved + roundings + UNDERFLOW
        return Sums(high, carry + (of_second + of_low), error)

    def rounded(self) -> tuple[Vector, Vector]:
        """As single numbers, and their errors."""
        value = self.high + self.low
        return value, INFLATION * (self.error + UNIT_ROUNDOFF * np.abs(value))


def grouped_sums(terms: Vector, small: Vector, groups: NDArray[np.intp], n_groups: int) -> Sums:
    """Sums of ``terms + small`` over the members of each group.

    Adding and subtracting a power of two, sigma, cuts every term at the same digit. The upper parts
    are multiples of sigma / 2^53, and no sum of them exceeds sigma: all their sums are exact.
    """

    def over_groups(values: Vector) -> Vector:
        # Of no values, bincount returns integers.
        return np.bincount(groups, values, n_groups).astype(np.float64, copy=False)

    size = over_groups(np.abs(terms))
    # Zero of no size, and no number of one beyond the largest: such a sum is not known.
    sigma = np.where(size > 0.0, np.ldexp(1.0, np.frexp(size)[1] + 2), size)
    sigma = np.where(np.isfinite(size), sigma, math.nan)[groups]
    upper = (sigma + terms) - sigma
    rest = terms - upper
    counts = np.bincount(groups, minlength=n_groups)
    roundings = UNIT_ROUNDOFF * (counts + 2.0) * over_groups(np.abs(rest) + np.abs(small))
    return Sums(
        over_groups(upper), over_groups(rest + small), INFLATION * roundings + counts * UNDERFLOW
    )


def total(terms: Vector, small: Vector) -> Sums:
    """The sum of all ``terms + small``."""
    return grouped_sums(terms, small, np.zeros(terms.size, dtype=np.intp), 1)


def upper_total(terms: Vector) -> float:
    """An upper bound on the sum of numbers >= 0, each of which is off by a few roundings."""
    return INFLATION * float(terms.sum()) + terms.size * UNDERFLOW


class RowBlock:
    """Rows as the list of their finite values, each with its row and column, which are in range.

    Values at the same place are added up.
    """

    def __init__(
        self, values: Vector, rows: NDArray[np.intp], columns: NDArray[np.intp],
        n_rows: int, n_columns: int,
    ) -> None:  # fmt: skip
        self.values, self.rows, self.columns = values, rows, columns
        self.n_rows, self.n_columns = n_rows, n_columns
        self._split = split(values)

    def products(self, v: Vector, constant: float) -> tuple[Vector, Vector]:
        """x_k.v + constant for each row, and bounds on the errors."""
        terms = two_product(self.values, v[self.columns], self._split)
        high, low, error = grouped_sums(*terms, self.rows, self.n_rows)
        high, carry = two_sum(high, np.full(self.n_rows, constant))
        low = low + carry
        return Sums(high, low, error + UNIT_ROUNDOFF * np.abs(low)).rounded()

    def combination(self, a: Vector) -> Sums:
        """sum_k a_k x_k."""
        used = (a != 0.0)[self.rows]
        rows, columns, values = self.rows[used], self.columns[used], self.values[used]
        return grouped_sums(*two_product(values, a[rows]), columns, self.n_columns)


class _Side:
    """Sums over rows, of one label or of both: of alpha_k, of its square / s_k, of alpha_k y_k."""

    def __init__(self, n_columns: int) -> None:
        self.sum = self.signed_sum = self.squares = _ZERO
        self.vector = Sums(*np.zeros((3, n_columns)))

    def add(
        self, rows: RowBlock, signs: Vector, weights: Vector, alpha: Vector, *, squares: bool
    ) -> None:
        signed, used = signs * alpha, alpha != 0.0
        a, s, none = alpha[used], weights[used], np.zeros(np.sum(used))
        self.sum += Enclosed.sum(total(a, none))
        self.signed_sum += Enclosed.sum(total(signed[used], none))
        self.vector = self.vector.plus(rows.combination(signed))
        if squares:
            quotients = a / s
            spread = upper_total(UNIT_ROUNDOFF * (a * quotients) + UNDERFLOW * (1.0 + a))
            self.squares += Enclosed.sum(total(*two_product(a, quotients)), spread)

    def __iadd__(self, other: _Side) -> _Side:
        self.sum += other.sum
        self.signed_sum += other.signed_sum
        self.squares += other.squares
        self.vector = self.vector.plus(other.vector)
        return self


class ProblemSums:
    """J(w) and L(alpha) of the problem of a certificate, summed over blocks of rows.

    J(w) = 1/2 (|coef|^2 + (b / rho)^2) + C sum_k s_k loss(label_k (coef.x_k + b))
    L(alpha) = sum_k alpha_k - 1/2 |sum_k alpha_k y_k|^2,  0 <= alpha_k <= C s_k.

    The loss of a margin m is max(0, 1 - m) or its square. For the square, L loses
    sum_k alpha_k^2 / (4 C s_k), and the box has no upper end. If the intercept b is free, it is not
    in the regulariser, and alpha is balanced first: it is multiplied, on the side of the larger
    sum, by the factor that makes both sums equal. Without ``dual``, there is no alpha.

    C s_k itself may be less than its nearest float64. An alpha_k that exceeds it is at the end of
    the box, and the float64 before it is taken.

    Attributes
    ----------
    claimed : Certificate
        Says which problem it is.
    box_violation : float
        The largest amount by which alpha leaves its box: zero for a feasible point.
    """

    def __init__(
        self, claimed: Certificate, coef: Vector, intercept: float = 0.0, *, dual: bool = True
    ) -> None:
        self.claimed, self.box_violation = claimed, 0.0
        self._coef, self._intercept = np.ascontiguousarray(coef, dtype=np.float64), intercept
        self._C, self._rho = float(claimed.C), float(claimed.intercept_scaling)
        self._squared, self._losses = claimed.squared, _ZERO
        n_sides = (2 if claimed.free_intercept else 1) if dual else 0
        self._sides = [_Side(self._coef.size) for _ in range(n_sides)]

    @np.errstate(all="ignore")
    def add(
        self, rows: RowBlock, signs: Vector, weights: Vector, alpha: Vector | None = None
    ) -> None:
        """Add a block; ``signs`` are the labels, +1 or -1."""
        if alpha is not None:
            self._add_alpha(rows, signs, weights, alpha)
        products, error = rows.products(self._coef, self._intercept)
        distance = 1.0 - signs * products
        error = INFLATION * (error + UNIT_ROUNDOFF * np.abs(distance))
        # A row beyond the margin by more than the error has no loss, and no error in it.
        error[distance + error < 0.0] = 0.0
        losses = np.maximum(0.0, distance)
        counted = (weights != 0.0) & ((losses != 0.0) | (error != 0.0))
        weights, losses, error = weights[counted], losses[counted], error[counted]
        if self._squared:
            error = error * (2.0 * losses + error)
            losses = losses * losses
            error = error + UNIT_ROUNDOFF * losses + UNDERFLOW
        spread = upper_total(weights * error)
        self._losses += Enclosed.sum(total(*two_product(weights, losses)), spread)

    def _add_alpha(self, rows: RowBlock, signs: Vector, weights: Vector, alpha: Vector) -> None:
        box = np.where(weights > 0.0, _LARGEST, 0.0) if self._squared else self._C * weights
        # Conditions are written so that NaN does not pass.
        if not ((alpha >= 0.0) & (alpha <= box)).all():
            excess = np.nan_to_num(np.maximum(-alpha, alpha - box), nan=math.inf, posinf=math.inf)
            self.box_violation = max(self.box_violation, float(excess.max()))
            return
        if not self._squared:
            beyond = exceeds(alpha, self._C, weights)
            alpha = np.where(beyond, np.nextafter(alpha, 0.0), alpha)
        free = self.claimed.free_intercept
        for side, label in zip(self._sides, (1.0, -1.0), strict=False):
            here = np.where(signs == label, alpha, 0.0) if free else alpha
            side.add(rows, signs, weights, here, squares=self._squared)

    @np.errstate(all="ignore")
    def __iadd__(self, other: ProblemSums) -> ProblemSums:
        """Add other rows of the same problem, at the same w."""
        self._losses += other._losses
        self.box_violation = max(self.box_violation, other.box_violation)
        for side, of_other in zip(self._sides, other._sides, strict=True):
            side += of_other
        return self

    @np.errstate(all="ignore")
    def J(self) -> Interval:
        """An interval that contains J."""
        numbers = (self._intercept, self._C, self._rho)
        if not (np.isfinite(self._coef).all() and all(map(math.isfinite, numbers))):
            return NOTHING
        norm2 = _square(self._coef)
        if self._intercept != 0.0:
            if not self._rho > 0.0:
                # Without a constant column, no weight vector of the problem has an intercept.
                return NOTHING
            if not self.claimed.free_intercept:
                norm2 += Enclosed.exactly((Fraction(self._intercept) / Fraction(self._rho)) ** 2)
        J = Enclosed.exactly(0.5) * norm2 + Enclosed.exactly(self._C) * self._losses
        return J.interval()

    @np.errstate(all="ignore")
    def L(self) -> Interval:
        """An interval that contains L of a feasible point near alpha; anything without one."""
        known = math.isfinite(self._rho) and math.isfinite(self._C) and self._C > 0.0
        if not (known and self._sides and self.box_violation == 0.0):
            return ANYTHING
        factors = _balancing(*self._sides) if self.claimed.free_intercept else [_ONE]
        sides = list(zip(self._sides, factors, strict=True))
        w, error = functools.reduce(Sums.plus, [s.vector.times(f) for s, f in sides]).rounded()
        spread = upper_total(error * (2.0 * np.abs(w) + error)) if error.any() else 0.0
        norm2 = _square(w, spread)
        if not self.claimed.free_intercept:
            # The last entry; of a balanced alpha, it is zero.
            last = Enclosed.exactly(self._rho) * self._sides[0].signed_sum
            norm2 += last * last
        L = Enclosed.exactly(-0.5) * norm2
        for side, f in sides:
            L += f * side.sum
            L += Enclosed.exactly(-1 / (4 * Fraction(self._C))) * f * f * side.squares
        return L.interval()


def _balancing(positive: _Side, negative: _Side) -> list[Enclosed]:
    """The factors of both sides: the other's sum / its own, and at most one."""
    sums = positive.sum, negative.sum
    factors = []
    for own, other in (sums, sums[::-1]):
        low = min(Fraction(1), max(Fraction(0), other.low) / own.high) if own.high > 0 else 1
        high = min(Fraction(1), other.high / own.low) if own.low > 0 else 1
        factors.append(Enclosed(Fraction(low), Fraction(high)))
    return factors


def _square(v: Vector, error: float = 0.0) -> Enclosed:
    """|v|^2, which may be off by an error."""
    used = v[v != 0.0]
    return Enclosed.sum(total(*two_product(used, used)), error)
