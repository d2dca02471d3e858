"""J(w) and its rounding.

J is computed over all rows, in float64, from the products of w with them; an estimate never enters
a certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.rounding import (
    UNDERFLOW,
    UNIT_ROUNDOFF,
    Bound,
    length,
    mixed_error,
    per_size,
    product_error,
    rounding_slack,
    units,
)
from certsvm.kernels.losses import HINGE, Loss, loss_value
from certsvm.kernels.objective import loss_sums, loss_sums_of, margins, margins_of_two, mix
from certsvm.parallel import ALONE, Team
from certsvm.problem.base import SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.storage.fields import array, number
from certsvm.storage.state import State, Stateful

_VALUES_PER_CHUNK = 1 << 16


_MOST_CHUNKS = 1024


# A reading of fewer stored values is not worth sharing among threads.
_LEAST_SHARED = 2_000_000


def primal_bound(problem: SummableProblem, w: Vector, team: Team = ALONE) -> Bound:
    """J(w), exactly: one reading of all rows.

    The rows are summed in chunks that depend on the data alone, so the result has the same
    bits for any number of threads.
    """
    sums: LossSums = problem.total(losses_at, problem.loss, w, team=team)
    return sums.primal(problem.C, w, length(w))


def zero_bound(C: float, weight_sum: float, loss: Loss = HINGE) -> Bound:
    """J at w = 0, which is C sum_k s_k times the loss at zero.

    Weights are added in pairs (``dual.total``), part by part, and then multiplied; or what is given
    is not less than their sum.
    """
    value = C * weight_sum * loss_value(loss, 0.0)
    return Bound(value, units(128, value))


def losses_at(part: Part, team: Team, loss: Loss, w: Vector) -> LossSums:
    """The losses of a part's rows, from one reading of them."""
    chunks = LossChunks(part, length(w))

    def sum_chunks(first: int, last: int) -> None:
        loss_sums(
            loss, part.rows.arrays, part.signed_weights, w, chunks.starts, first, last,
            chunks.margin_slack, part.loss_roundings, chunks.sums, chunks.masses,
        )  # fmt: skip

    worth_sharing(part, team).share(sum_chunks, chunks.starts.size - 1)
    return chunks.total()


def losses_of(part: Part, team: Team, loss: Loss, products: Vector, error: float) -> LossSums:
    """The losses of a part's rows, from products with w that are known already.

    A product is off by at most ``error`` unit roundoffs of (n_k + 2) |y_k|.
    """
    chunks = LossChunks(part, error)

    def sum_chunks(first: int, last: int) -> None:
        loss_sums_of(
            loss, products, part.weights, chunks.starts, first, last,
            chunks.margin_slack, part.loss_roundings, chunks.sums, chunks.masses,
        )  # fmt: skip

    worth_sharing(part, team).share(sum_chunks, chunks.starts.size - 1)
    return chunks.total()


def multiply(part: Part, w: Vector, out: Vector, team: Team = ALONE) -> None:
    """w.y_k for the rows of a part; 1 for those of weight zero."""
    starts = chunk_starts(part)

    def some(first: int, last: int) -> None:
        arrays, signed = part.rows.arrays, part.signed_weights
        margins(arrays, signed, w, starts[first], starts[last], out)

    worth_sharing(part, team).share(some, starts.size - 1)


def multiply_two(
    part: Part, v: Vector, w: Vector, of_v: Vector, of_w: Vector, team: Team = ALONE
) -> None:
    """v.y_k and w.y_k for the rows of a part, from one reading of them."""
    starts = chunk_starts(part)

    def some(first: int, last: int) -> None:
        arrays, signed = part.rows.arrays, part.signed_weights
        margins_of_two(arrays, signed, v, w, starts[first], starts[last], of_v, of_w)

    worth_sharing(part, team).share(some, starts.size - 1)


class Products(Stateful):
    """w.y_k for all rows, and how far rounding can have moved them.

    With them J takes no reading of the rows, and neither do the products of a combination of
    two vectors whose products are known.

    Attributes
    ----------
    w : ndarray of shape (dimension,)
        The weight vector.
    values : ndarray of shape (n_rows,)
        w.y_k; 1 for rows of weight zero.
    error : float
        Each value is off by at most this many unit roundoffs of (n_k + 2) |y_k|.
    """

    STATE = State(w=array("dimension"), values=array("n_rows"), error=number(low=0.0))

    def __init__(self, problem: Problem, w: Vector, team: Team = ALONE) -> None:
        self._problem = problem
        self.w = w
        self.values = np.empty(problem.rows.n_rows)
        self.compute(team)

    def compute(self, team: Team = ALONE) -> None:
        """Compute the products with w as it is now: one reading of all rows."""
        problem = self._problem
        if not self.w.any():
            self.values[:] = problem.signed_weights == 0.0
            self.error = 0.0
            return
        multiply(problem, self.w, self.values, team)
        self.error = product_error(self.w)

    def copy(self) -> Products:
        """The same, in memory of its own."""
        other = object.__new__(Products)
        other._problem, other.error = self._problem, self.error
        other.w, other.values = self.w.copy(), self.values.copy()
        return other

    def mix(self, a: float, b: float, other: Products) -> None:
        """Become a times this plus b times the other.

        The error is that of ``mixed_error``.
        """
        error = mixed_error(a, (self.error, self.w), b, (other.error, other.w))
        mix(a, self.w, b, other.w)
        mix(a, self.values, b, other.values)
        idle = self._problem.m < self.values.size
        if idle:
            self.values[self._problem.signed_weights == 0.0] = 1.0
        self.error = error

    def primal_bound(self, team: Team = ALONE) -> Bound:
        """J(w)."""
        problem = self._problem
        sums = losses_of(problem, team, problem.loss, self.values, self.error)
        return sums.primal(problem.C, self.w, self.error)


class LossChunks:
    """The losses of a part, chunk by chunk, to be filled in.

    A product with w is off by at most ``error`` unit roundoffs of (n_k + 2) |y_k|: a row beyond the
    margin by more than ``margin_slack`` has no loss, and no error in it either.
    """

    def __init__(self, part: Part, error: float) -> None:
        self.starts = chunk_starts(part)
        self.sums, self.masses = np.empty((2, self.starts.size - 1))
        self.margin_slack = rounding_slack(error, part.largest_rounding)

    def total(self) -> LossSums:
        """The part's losses, and what rounding in them is proportional to."""
        return LossSums(
            (math.fsum(self.sums),), (math.fsum(self.masses),), int(np.diff(self.starts).max())
        )


@dataclass(frozen=True)
class LossSums:
    """The losses of parts, one number for each; and J from them. Those of parts are added."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    longest_chunk: int

    def __add__(self, other: LossSums) -> LossSums:
        return LossSums(
            self.losses + other.losses,
            self.masses + other.masses,
            max(self.longest_chunk, other.longest_chunk),
        )

    def primal(self, C: float, w: Vector, error: float) -> Bound:
        """J(w), if these are the losses of all rows at w.

        A loss is off by ``error`` unit roundoffs of (n_k + 2) |y_k|, and ``masses`` sums these
        over the rows that may have one. Weights, the sum over a chunk, the sum over chunks and C
        round the loss; |w|^2 is a sum of as many squares as w has entries.
        """
        squared_norm, longest = float(w @ w), self.longest_chunk
        loss = C * math.fsum(self.losses)
        rounding = (
            C * per_size(error) * math.fsum(self.masses) * (1.0 + longest * UNIT_ROUNDOFF)
            + units(longest + 11, loss)
            + units(w.size + 4, squared_norm)
            + (1.0 + C) * UNDERFLOW
        )
        return Bound(0.5 * squared_norm + loss, rounding)


def worth_sharing(part: Part, team: Team) -> Team:
    """The team, unless waking its threads takes as long as the work."""
    return team if part.rows.n_stored >= _LEAST_SHARED else ALONE


def chunk_starts(part: Part) -> NDArray[np.int64]:
    """Where the chunks begin in which losses are summed, and the end; it depends on data alone."""
    n_rows = part.rows.n_rows
    n_chunks = min(_MOST_CHUNKS, n_rows, 1 + part.rows.n_stored // _VALUES_PER_CHUNK)
    return np.arange(n_chunks + 1, dtype=np.int64) * n_rows // n_chunks
