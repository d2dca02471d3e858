"""How far rounding can have moved a computed value.

Every formula and every constant of rounding is in this package, and those that several modules
need are here. First-order error bounds are used throughout; ``SLACK`` covers their higher orders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from certsvm.kernels.rows import Vector

UNIT_ROUNDOFF = 2.0**-53


# First-order error bounds are used below; this covers their higher orders.
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


def product_error(w: Vector) -> float:
    """How far a product with w is off, in unit roundoffs of (n_k + 2) |y_k|."""
    return SLACK * length(w)


def mixed_error(
    a: float, one: tuple[float, Vector], b: float, other: tuple[float, Vector]
) -> float:
    """How far products are off that are a times those of one vector plus b times another's.

    Of both, the errors of their products and the vectors are given. An entry of the combination,
    and likewise a product, goes through two products and a sum: it is off by two roundoffs of
    |a| |w| + |b| |other w|, times |y_k|. That makes four, of which (n_k + 2) |y_k| holds half.
    """
    lengths = abs(a) * length(one[1]) + abs(b) * length(other[1])
    return SLACK * (abs(a) * one[0] + abs(b) * other[0] + 2.0 * lengths)


def moved_rounding(additions: int, path: float, w: Vector) -> float:
    """What is added to the error of w when the sum of a rounded change of alpha is added to it."""
    return SLACK * UNIT_ROUNDOFF * ((additions + 2) * path + length(w))


def rounding_slack(error: float, largest_rounding: float) -> float:
    """How far beyond the margin a row may seem to be and still have a loss.

    ``largest_rounding`` is the largest (n_k + 2) |y_k|, of whose unit roundoffs a product may be
    off by ``error``.
    """
    return 2.0 * (per_size(error) * largest_rounding + UNIT_ROUNDOFF)


def per_size(error: float) -> float:
    """How far a product is off, per (n_k + 2) |y_k|, if its error is ``error`` unit roundoffs."""
    return SLACK * UNIT_ROUNDOFF * error
