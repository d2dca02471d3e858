"""Rounding allowances: bounds on the rounding error of a computed value.

Every formula and constant of rounding is in this package; this module has those that several
modules need. A solver reports the number of its operations and the lengths of its vectors, and a
function here turns them into an allowance.

The bounds are of first order in the unit roundoff u = 2^-53; ``SLACK`` covers the higher orders,
since (1 + u)^n - 1 <= 1.01 n u for any n that a computer can count to in a day.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from certsvm.kernels.rows import Vector
from certsvm.kernels.vectors import inner

UNIT_ROUNDOFF = 2.0**-53
SLACK = 1.01
# Near zero, rounding is absolute. This is far more than all of it together, and far less than any J
# that ``Problem`` admits.
UNDERFLOW = 1e-300


@dataclass(frozen=True)
class Bound:
    """A computed value and its rounding allowance."""

    value: float
    rounding: float

    @property
    def low(self) -> float:
        """A lower bound on the exact value."""
        return self.value - self.rounding

    @property
    def high(self) -> float:
        """An upper bound on the exact value."""
        return self.value + self.rounding


NOTHING = Bound(0.0, 0.0)


def length(w: Vector) -> float:
    """|w|."""
    return math.sqrt(inner(w, w))


def units(count: float, size: float) -> float:
    """Error of ``count`` successive roundings of values of at most ``size``.

    Each moves a value by at most one unit roundoff of its size. For vectors rounded entry by entry,
    the same holds in norm.
    """
    return SLACK * UNIT_ROUNDOFF * count * size


def sum_of_parts(values: Iterable[float]) -> float:
    """The sum of numbers >= 0, rounded once; infinity, which proves nothing, if it overflows."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def sum_in_any_order(value: float, n: int) -> Bound:
    """A computed sum of n nonnegative terms, added in an unknown order.

    No partial sum exceeds the whole, and there are fewer than n additions.
    """
    return Bound(value, units(n, value))


def upper_sum(value: float, n: int) -> float:
    """An upper bound on the sum of n nonnegative terms, computed as ``value`` in unknown order.

    It allows two units more than ``sum_in_any_order``, for the addition of the allowance.
    """
    return value + units(n + 2, value)


def grown_sum(before: float, now: float, additions: int) -> Bound:
    """Growth of a running sum in a number of additions of rounded, nonnegative terms.

    An addition rounds by at most a unit of ``now``. Four more units cover the terms, which are
    products, and the difference.
    """
    return Bound(now - before, units(additions + 4, now))


def updates_rounding(updates: int, longest: float, longest_step: float) -> float:
    """Error, in norm, of a vector after a number of additions of multiples of rows.

    An update rounds the multiplier and its product with the row, each by a unit of the step's
    length, and the sum by a unit of the vector's. ``longest`` and ``longest_step`` bound these
    lengths at all times.
    """
    return units(updates, longest + 2.0 * longest_step)


def product_error(w: Vector) -> float:
    """Error of a product with w, in unit roundoffs of (n_k + 2) |y_k|.

    A product of n_k terms, added in any order, is off by at most n_k units of |w| |y_k|.
    """
    return SLACK * length(w)


def mixed_error(
    a: float, one: tuple[float, Vector], b: float, other: tuple[float, Vector]
) -> float:
    """Error of products that are a times those with one vector plus b times another's.

    Each vector is given after the error of its products.
    """
    return _combined_error(
        abs(a) * one[0] + abs(b) * other[0], abs(a) * length(one[1]) + abs(b) * length(other[1])
    )


def step_error(error: float, length: float, step: float, direction_length: float) -> float:
    """Error of products with w + step * direction.

    ``error`` is the error of the products with w, and ``length`` is |w|; the products with the
    direction were computed from scratch.
    """
    moved = abs(step) * direction_length
    return _combined_error(error + SLACK * moved, length + moved)


def scaled_error(error: float, length: float, factor: float) -> float:
    """Error of products with factor * w, given the error of those with w."""
    return _combined_error(abs(factor) * error, abs(factor) * length)


def _combined_error(inherited: float, lengths: float) -> float:
    """Error of products with a combination of vectors, combined from the products with each.

    An entry of the combination, and likewise a product, goes through a multiplication and a sum: it
    is off by two roundoffs of ``lengths``, the sum of the parts' lengths, times |y_k|. That makes
    four, of which (n_k + 2) |y_k| holds half.
    """
    return SLACK * (inherited + 2.0 * lengths)


def rounding_slack(error: float, largest_rounding: float) -> float:
    """Margin slack: how far beyond the margin a row may seem to be and still have a loss.

    A product is off by at most ``error`` unit roundoffs of ``largest_rounding``, the largest
    (n_k + 2) |y_k|.
    """
    return 2.0 * (per_size(error) * largest_rounding + UNIT_ROUNDOFF)


def per_size(error: float) -> float:
    """Error of a product per (n_k + 2) |y_k|, if it is ``error`` unit roundoffs."""
    return units(1, error)
