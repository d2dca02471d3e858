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

import math
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53
# Errors are computed in float64, too. A sum of n numbers >= 0 is off by at most n unit roundoffs of
# itself, and this factor covers that for n up to 2^46.
INFLATION = 1.01
# More than what underflow can take from the few products of one term or row.
UNDERFLOW = 2.0**-1060
# The rounding error of a product that is no smaller than this is a float64 number.
_NO_UNDERFLOW = 2.0**-960

_LEAST_NORMAL, _SCALE = 2.0**-1022, 2.0**100
_HALF, _UPPER_BITS = np.int64(1 << 26), np.int64(-1 << 27)


class Interval(NamedTuple):
    """Numbers from ``low`` to ``high``."""

    low: float
    high: float

    @classmethod
    def around(cls, centre: Fraction, radius: Fraction) -> Interval:
        """The least interval of float64 numbers that contains the given one.

        >>> Interval.around(Fraction(1, 2), Fraction(0))
        Interval(low=0.5, high=0.5)
        """
        return cls(-_rounded_up(radius - centre), _rounded_up(centre + radius))

    def __str__(self) -> str:
        return f"from {self.low:.6g} to {self.high:.6g}"


ANYTHING = Interval(-math.inf, math.inf)
NOTHING = Interval(math.inf, math.inf)
"""J outside its domain: of a vector that is not one of the problem's."""


def _rounded_up(x: Fraction) -> float:
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf if x > 0 else -float(np.finfo(np.float64).max)
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


class Sums(NamedTuple):
    """Numbers known as ``high + low``, up to ``error``."""

    high: Vector
    low: Vector
    error: Vector

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

    def combination(self, a: Vector, uncertainty: Vector) -> Sums:
        """sum_k a_k x_k, if each a_k may be off by its uncertainty."""
        used = ((a != 0.0) | (uncertainty != 0.0))[self.rows]
        rows, columns, values = self.rows[used], self.columns[used], self.values[used]
        high, low, error = grouped_sums(*two_product(values, a[rows]), columns, self.n_columns)
        sizes = uncertainty[rows] * np.abs(values) + UNDERFLOW
        return Sums(high, low, error + INFLATION * np.bincount(columns, sizes, self.n_columns))


class _Total:
    """A sum as a fraction, and a bound on its error."""

    def __init__(self) -> None:
        self.value = self.error = Fraction(0)
        self.finite = True

    def add(self, sums: Sums, error: float = 0.0) -> None:
        numbers = [float(sums.high[0]), float(sums.low[0]), float(sums.error[0]), error]
        self.finite = self.finite and all(map(math.isfinite, numbers))
        if self.finite:
            high, low, *errors = map(Fraction, numbers)
            self.value += high + low
            self.error += sum(errors)


class Objective:
    """J(w), summed over blocks of rows.

    J(w) = 1/2 (|coef|^2 + (intercept / rho)^2) + C sum_k s_k max(0, 1 - label_k (coef.x_k + b))
    """

    def __init__(self, coef: Vector, intercept: float, C: float, rho: float) -> None:
        self._coef, self._intercept = np.ascontiguousarray(coef, dtype=np.float64), intercept
        self._C, self._rho = float(C), float(rho)
        self._losses = _Total()

    @np.errstate(all="ignore")
    def add(self, rows: RowBlock, signs: Vector, weights: Vector) -> None:
        """Add the losses of a block; ``signs`` are the labels, +1 or -1."""
        products, error = rows.products(self._coef, self._intercept)
        distance = 1.0 - signs * products
        error = INFLATION * (error + UNIT_ROUNDOFF * np.abs(distance))
        # A row beyond the margin by more than the error has no loss, and no error in it.
        error[distance + error < 0.0] = 0.0
        counted = weights != 0.0
        weights, losses = weights[counted], np.maximum(0.0, distance)[counted]
        spread = upper_total(weights * error[counted])
        self._losses.add(total(*two_product(weights, losses)), spread)

    @np.errstate(all="ignore")
    def interval(self) -> Interval:
        """An interval that contains J."""
        numbers = (self._intercept, self._C, self._rho)
        if not (np.isfinite(self._coef).all() and all(map(math.isfinite, numbers))):
            return NOTHING
        if self._intercept == 0.0:
            bias = Fraction(0)
        elif self._rho > 0.0:
            bias = Fraction(self._intercept) / Fraction(self._rho)
        else:
            # Without a constant column, no weight vector of the problem has an intercept.
            return NOTHING
        square, losses, C = _square(self._coef), self._losses, Fraction(self._C)
        if not (square.finite and losses.finite):
            return ANYTHING
        J = (square.value + bias * bias) / 2 + C * losses.value
        return Interval.around(J, square.error / 2 + abs(C) * losses.error)


class DualObjective:
    """L(alpha) = sum_k alpha_k - 1/2 |sum_k alpha_k y_k|^2, summed over blocks of rows.

    Attributes
    ----------
    box_violation : float
        The largest amount by which alpha leaves its box 0 <= alpha_k <= C s_k: zero for a feasible
        point.
    """

    def __init__(self, n_columns: int, C: float, rho: float) -> None:
        self.box_violation = 0.0
        self._C, self._rho = float(C), float(rho)
        self._sum, self._signed_sum = _Total(), _Total()
        self._high, self._low, self._error = np.zeros((3, n_columns))

    @np.errstate(all="ignore")
    def add(
        self, rows: RowBlock, signs: Vector, weights: Vector, alpha: Vector, uncertainty: Vector
    ) -> None:
        """Add a block, given its alpha and by how much that may differ from what is meant."""
        box, below = two_product(np.full(weights.size, self._C), weights)
        # Conditions are written so that NaN does not pass.
        if not ((alpha >= 0.0) & (alpha <= box)).all():
            excess = np.nan_to_num(np.maximum(-alpha, alpha - box), nan=math.inf, posinf=math.inf)
            self.box_violation = max(self.box_violation, float(excess.max()))
            return
        # C s_k itself may be less than the rounded box. The point meant is min(alpha_k, C s_k): not
        # alpha_k itself only at the end of a box that was rounded upwards.
        within = (alpha == 0.0) | ((box >= _NO_UNDERFLOW) & ((alpha < box) | (below >= 0.0)))
        moved = np.where(within, 0.0, UNIT_ROUNDOFF * alpha + UNDERFLOW)
        uncertainty = INFLATION * (uncertainty + moved)
        signed, used = signs * alpha, alpha != 0.0
        error, none = upper_total(uncertainty[uncertainty != 0.0]), np.zeros(np.sum(used))
        self._sum.add(total(alpha[used], none), error)
        self._signed_sum.add(total(signed[used], none), error)
        high, low, error_here = rows.combination(signed, uncertainty)
        self._high, carry = two_sum(self._high, high)
        carry = carry + low
        self._low = self._low + carry
        roundings = UNIT_ROUNDOFF * (np.abs(carry) + np.abs(self._low))
        self._error = self._error + error_here + roundings

    @np.errstate(all="ignore")
    def interval(self) -> Interval:
        """An interval that contains L of a point of the box near alpha; anything without one."""
        w, error = Sums(self._high, self._low, self._error).rounded()
        square, A, B = _square(w), self._sum, self._signed_sum
        spread = upper_total(error * (2.0 * np.abs(w) + error)) if error.any() else 0.0
        sound = square.finite and A.finite and B.finite and math.isfinite(spread)
        if not (sound and self.box_violation == 0.0 and math.isfinite(self._rho)):
            return ANYTHING
        rho2 = Fraction(self._rho) ** 2
        norm2 = square.value + rho2 * B.value**2
        error2 = square.error + Fraction(spread) + rho2 * B.error * (2 * abs(B.value) + B.error)
        return Interval.around(A.value - norm2 / 2, A.error + error2 / 2)


def _square(v: Vector) -> _Total:
    """|v|^2."""
    square, used = _Total(), v[v != 0.0]
    square.add(total(*two_product(used, used)))
    return square
