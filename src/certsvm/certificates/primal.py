"""J(w) and its rounding allowance.

J is computed in float64 from the products of w with all rows. An estimate never enters a
certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates import rounding
from certsvm.certificates.rounding import Bound, length, sum_of_parts, units
from certsvm.kernels.losses import Loss, loss_value
from certsvm.kernels.objective import loss_sums, margins
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Vector
from certsvm.resources import ALONE, Team

# While alpha grows, w is too short: multiples of it may have a smaller J, and take no products.
_MULTIPLES = (1.0, *(1.0 + 4.0**-i for i in range(1, 7)))


def primal_bound(problem: SummableProblem, w: Vector, team: Team = ALONE) -> Bound:
    """J(w), in one pass over all rows.

    The rows are summed in chunks that depend on the data alone, so the result has the same
    bits for any number of threads.
    """
    sums: LossSums = problem.total(losses_at, problem.loss, w, team=team)
    return sums.primal(problem.C, w, length(w), free_intercept=problem.free_intercept)


def zero_bound(C: float, weight_sum: float, loss: Loss, n_rows: int) -> Bound:
    """J at w = 0: C sum_k s_k times the loss at zero.

    ``weight_sum`` is a sum in any order, or an upper bound on what such a sum stands for.
    """
    value = C * weight_sum * loss_value(loss, 0.0)
    return Bound(value, units(2 * n_rows + 128, value))


def losses_at(part: Part, team: Team, loss: Loss, w: Vector) -> LossSums:
    """The losses of a part's rows at w, in one pass over them."""
    return losses_of(part, team, loss, multiply(part, w, team=team), length(w))


def losses_of(part: Part, team: Team, loss: Loss, products: Vector, error: float) -> LossSums:
    """The losses of a part's rows, summed chunk by chunk, from their products with w.

    A product is off by at most ``error`` unit roundoffs of (n_k + 2) |y_k|: a row beyond the margin
    by more than the slack has no loss, and no error in it either.
    """
    starts, slack = part.rows.chunk_starts, rounding.rounding_slack(error, part.largest_rounding)
    weights, roundings = part.weights, part.loss_roundings
    sums, masses = np.empty((2, starts.size - 1))

    def sum_chunks(first: int, last: int) -> None:
        loss_sums(loss, products, weights, starts, first, last, slack, roundings, sums, masses)

    team.share(sum_chunks, starts.size - 1, part.rows.n_stored)
    return LossSums((sum_of_parts(sums),), (sum_of_parts(masses),), part.rows.longest_chunk)


def multiply(part: Part, w: Vector, out: Vector | None = None, team: Team = ALONE) -> Vector:
    """Return w.y_k for the rows of a part; 1 for rows of weight zero."""
    starts, products = part.rows.chunk_starts, np.empty(part.rows.n_rows) if out is None else out

    def multiply_chunks(first: int, last: int) -> None:
        margins(part.rows.arrays, part.signed_weights, w, starts[first], starts[last], products)

    team.share(multiply_chunks, starts.size - 1, part.rows.n_stored)
    return products


def losses_at_multiples(part: Part, team: Team, loss: Loss, w: Vector) -> NDArray[np.object_]:
    """The ``LossSums`` of a part's rows at each of the ``_MULTIPLES`` of w."""
    products = multiply(part, w, team=team)
    at_multiples = [
        losses_of(part, team, loss, factor * products, _error_at(w, factor))
        for factor in _MULTIPLES
    ]
    return np.array(at_multiples, dtype=object)


def best_multiple(
    problem: BaseProblem, w: Vector, losses: NDArray[np.object_]
) -> tuple[Vector, Bound]:
    """The multiple of w with the least J, and J there, given the losses of all rows at each."""
    points = []
    for factor, sums in zip(_MULTIPLES, losses, strict=True):
        longer, error, free = factor * w, _error_at(w, factor), problem.free_intercept
        points.append((longer, sums.primal(problem.C, longer, error, free_intercept=free)))
    return min(points, key=lambda point: point[1].high)


def _error_at(w: Vector, factor: float) -> float:
    """The error of products with a multiple of w, which are multiples of those with w."""
    return rounding.scaled_error(rounding.product_error(w), length(w), factor)


class Products:
    """w.y_k for all rows, and their rounding error.

    J follows from them without a pass over the rows, and so do the products with a linear
    combination of two such vectors.

    ``values`` are w.y_k, and 1 for rows of weight zero. Each is off by at most ``error`` unit
    roundoffs of (n_k + 2) |y_k|.
    """

    def __init__(self, problem: Problem, w: Vector, team: Team = ALONE) -> None:
        self._problem = problem
        self.w = w
        self.values = np.empty(problem.rows.n_rows)
        self.compute(team)

    def compute(self, team: Team = ALONE) -> None:
        """Compute the products with the current w, in one pass."""
        problem = self._problem
        if not self.w.any():
            self.values[:] = problem.signed_weights == 0.0
            self.error = 0.0
            return
        multiply(problem, self.w, self.values, team)
        self.error = rounding.product_error(self.w)

    def copy(self) -> Products:
        """A deep copy, on the same problem."""
        other = object.__new__(Products)
        other._problem, other.error = self._problem, self.error
        other.w, other.values = self.w.copy(), self.values.copy()
        return other

    @np.errstate(over="ignore", invalid="ignore")
    def mix(self, a: float, b: float, other: Products) -> None:
        """Replace w by a w + b w_other, and the products likewise."""
        error = rounding.mixed_error(a, (self.error, self.w), b, (other.error, other.w))
        self.w = a * self.w + b * other.w
        self.values = a * self.values + b * other.values
        if self._problem.m < self.values.size:
            self.values[self._problem.signed_weights == 0.0] = 1.0
        self.error = error

    @property
    def slack(self) -> float:
        """How far beyond the margin a row may seem to be and still have a loss."""
        return rounding.rounding_slack(self.error, self._problem.largest_rounding)

    def primal_bound(self, team: Team = ALONE) -> Bound:
        """J(w)."""
        problem = self._problem
        sums = losses_of(problem, team, problem.loss, self.values, self.error)
        return sums.primal(problem.C, self.w, self.error, free_intercept=problem.free_intercept)


@dataclass(frozen=True)
class LossSums:
    """The losses of parts, one number for each; sums over parts are added with +."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    longest_chunk: int

    def __add__(self, other: LossSums) -> LossSums:
        longest = max(self.longest_chunk, other.longest_chunk)
        return LossSums(self.losses + other.losses, self.masses + other.masses, longest)

    def primal(self, C: float, w: Vector, error: float, *, free_intercept: bool = False) -> Bound:
        """J(w), if these are the losses of all rows at w.

        A loss is off by ``error`` unit roundoffs of (n_k + 2) |y_k|; ``masses`` sums the latter
        over the rows that may have a loss. Weights, the sum over a chunk, the sum over chunks and C
        round the loss, and so does squaring it. |w|^2 is a sum of as many squares as w has entries;
        the regulariser does not contain the last one if the intercept is free.
        """
        regularised = w[:-1] if free_intercept else w
        squared_norm, longest = inner(regularised, regularised), self.longest_chunk
        loss = C * sum_of_parts(self.losses)
        grown = 1.0 + longest * rounding.UNIT_ROUNDOFF
        allowance = C * rounding.per_size(error) * sum_of_parts(self.masses) * grown
        allowance += units(longest + 11, loss) + units(w.size + 4, squared_norm)
        allowance += (1.0 + C) * rounding.UNDERFLOW
        return Bound(0.5 * squared_norm + loss, allowance)
