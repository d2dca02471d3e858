"""How far rounding can have moved a computed value.

Every formula and every constant of rounding is in this package, and those that several modules
need are here. A solver reports what it did (so many additions, vectors so long), and a function
here turns that into an allowance.

The bounds are of first order in the unit roundoff u = 2^-53; ``SLACK`` covers the higher orders,
since (1 + u)^n - 1 <= 1.01 n u for any n that a computer can count to in a day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from certsvm.kernels.rows import Vector

UNIT_ROUNDOFF = 2.0**-53
SLACK = 1.01
# Near zero, rounding is absolute: far more than all of it together, and far less than any J
# that ``Problem`` admits.
UNDERFLOW = 1e-300


@dataclass(frozen=True)
class Bound:
    """A computed value and how far rounding can have moved it."""

    value: float
    rounding: float

    @property
    def low(self) -> float:
        """Certainly not above the exact value."""
        return self.value - self.rounding

    @property
    def high(self) -> float:
        """Certainly not below the exact value."""
        return self.value + self.rounding


def length(w: Vector) -> float:
    """|w|."""
    return math.sqrt(float(w @ w))


def units(count: float, size: float) -> float:
    """What ``count`` roundings, one after another, can do to values of at most ``size``.

    Each moves a value by at most one unit roundoff of its size. For vectors that are rounded
    entry by entry, the same holds in norm.
    """
    return SLACK * UNIT_ROUNDOFF * count * size


def sum_in_any_order(value: float, n: int) -> Bound:
    """A computed sum of n nonnegative terms, added in an unknown order.

    No partial sum exceeds the whole, and there are fewer than n additions.
    """
    return Bound(value, units(n, value))


def upper_sum(value: float, n: int) -> float:
    """Not less than the exact sum of n nonnegative terms, added in an unknown order to ``value``.

    Two units more than ``sum_in_any_order`` allows, for adding them here.
    """
    return value + units(n + 2, value)


def grown_sum(before: float, now: float, additions: int) -> Bound:
    """How much a running sum has grown by so many additions of rounded, nonnegative terms.

    An addition rounds by at most a unit of ``now``. Four more are for the terms, which are
    products, and for the difference.
    """
    return Bound(now - before, units(additions + 4, now))


def updates_rounding(updates: int, longest: float, longest_step: float) -> float:
    """How far, in norm, a vector is off after so many additions of multiples of rows.

    An update rounds the multiplier and its product with the row, each by a unit of the step's
    length, and then the sum, by a unit of the vector's. ``longest`` and ``longest_step`` bound
    these lengths at any time.
    """
    return units(updates, longest + 2.0 * longest_step)


def moved_rounding(additions: int, path: float, w: Vector) -> float:
    """What is added to the error of w when the sum of a rounded change of alpha is added to it.

    The change was rounded once for each row, and so were its products with the rows; an entry of
    their sum went through so many additions, all of at most ``path`` = sum_k |change_k| |y_k|.
    Adding the sum to w rounds once more.
    """
    return units(additions + 2, path) + units(1, length(w))


def product_error(w: Vector) -> float:
    """How far a product with w is off, in unit roundoffs of (n_k + 2) |y_k|.

    A product of n_k terms, added in any order, is off by at most n_k units of |w| |y_k|.
    """
    return SLACK * length(w)


def mixed_error(
    a: float, one: tuple[float, Vector], b: float, other: tuple[float, Vector]
) -> float:
    """How far products are off that are a times those of one vector plus b times another's.

    Of both, the errors of their products and the vectors are given.
    """
    return _combined_error(
        abs(a) * one[0] + abs(b) * other[0], abs(a) * length(one[1]) + abs(b) * length(other[1])
    )


def step_error(error: float, length: float, step: float, direction_length: float) -> float:
    """How far products with w + step * direction are off.

    ``error`` is that of the products with w, whose length is given; those with the direction were
    computed from scratch.
    """
    moved = abs(step) * direction_length
    return _combined_error(error + SLACK * moved, length + moved)


def scaled_error(error: float, length: float, factor: float) -> float:
    """How far products with factor * w are off, if those with w are off by ``error``."""
    return _combined_error(abs(factor) * error, abs(factor) * length)


def _combined_error(inherited: float, lengths: float) -> float:
    """How far products of a combination of vectors are off, which are combined likewise.

    An entry of the combination, and likewise a product, goes through a product and a sum: it is
    off by two roundoffs of ``lengths``, the sum of the parts' lengths, times |y_k|. That makes
    four, of which (n_k + 2) |y_k| holds half.
    """
    return SLACK * (inherited + 2.0 * lengths)


def rounding_slack(error: float, largest_rounding: float) -> float:
    """How far beyond the margin a row may seem to be and still have a loss.

    ``largest_rounding`` is the largest (n_k + 2) |y_k|, of whose unit roundoffs a product may be
    off by ``error``.
    """
    return 2.0 * (per_size(error) * largest_rounding + UNIT_ROUNDOFF)


def per_size(error: float) -> float:
    """How far a product is off, per (n_k + 2) |y_k|, if its error is ``error`` unit roundoffs."""
    return units(1, error)
