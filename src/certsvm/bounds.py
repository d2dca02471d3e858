"""J and L, computed, with bounds on the rounding in them.

J is computed over all rows, in float64, from the products of w with them; a guess never enters a
certificate. L comes from what a solver knows of a feasible alpha. Each value carries an allowance:
a bound on how far rounding can have moved it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificate import PRIMAL_ONLY, Certificate
from certsvm.kernels.objective import hinge_sums, losses, margins, margins_of_two, mix, weighted_sum
from certsvm.parallel import ALONE, Team
from certsvm.problem import AnyProblem, Part, Problem
from certsvm.rows import Vector

UNIT_ROUNDOFF = 2.0**-53
# First-order error bounds are used below; this covers their higher orders.
_SLACK = 1.01

# Near zero, rounding is absolute: far more than all of it together, and far less than any J
# that ``Problem`` admits.
_UNDERFLOW = 1e-300

_VALUES_PER_CHUNK = 1 << 16
_MOST_CHUNKS = 1024
# A reading of fewer stored values is not worth sharing among threads.
_LEAST_SHARED = 2_000_000


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


class Response(NamedTuple):
    """A feasible alpha as a function of a weight vector: a proof no longer than the vector.

    alpha_k = clip(C s_k / 2 + sigma s_k (1 - w.y_k), 0, C s_k)
    """

    w: Vector
    sigma: float


@dataclass(frozen=True)
class DualPoint:
    """A feasible alpha, as far as L needs to know it.

    Attributes
    ----------
    alpha_sum : float
        sum_k alpha_k.
    w : ndarray of shape (dimension,)
        sum_k alpha_k y_k.
    source : str
        How feasibility is known, for the certificate.
    alpha_sum_rounding, w_rounding : float
        Bounds on the errors of ``alpha_sum`` and, in norm, of ``w``.
    alpha : callable, default=None
        Returns alpha itself where the solver keeps it.
    response : Response, default=None
        What alpha is a function of, where it is one.
    """

    alpha_sum: float
    w: Vector
    source: str
    alpha_sum_rounding: float = 0.0
    w_rounding: float = 0.0
    alpha: Callable[[], Vector] | None = None
    response: Response | None = None


def total(alpha: Vector) -> Bound:
    """sum_k alpha_k for alpha >= 0. NumPy adds in pairs: the error grows with the log of n."""
    value = float(alpha.sum())
    return Bound(value, 65.0 * UNIT_ROUNDOFF * value)


def sum_of_part(part: Part, alpha: Vector, team: Team = ALONE) -> tuple[Vector, int]:
    """sum_k alpha_k y_k over a part, and through how many additions an entry goes at most."""
    rows = part.rows
    # As long as the number of chunks, or long enough that clearing and adding a vector for each
    # costs little beside its rows.
    per_row = max(1, rows.n_stored // max(1, rows.n_rows))
    chunk = max(math.isqrt(rows.n_rows) + 1, 4 * rows.dimension // per_row)
    chunks = -(-rows.n_rows // chunk)

    def add_up(first: int, last: int) -> Vector:
        partial, out = np.zeros(rows.dimension), np.zeros(rows.dimension)
        begin, end = first * chunk, min(last * chunk, rows.n_rows)
        weighted_sum(rows.arrays, part.signed_weights, alpha, begin, end, chunk, partial, out)
        return out

    sums = worth_sharing(part, team).share(add_up, chunks)
    out = sums[0]
    for other in sums[1:]:
        out += other
    return out, min(chunk, rows.n_rows) + chunks + len(sums)


@dataclass(frozen=True)
class RowSums:
    """What L needs of a feasible alpha, from scratch; those of parts are added.

    Attributes
    ----------
    w : ndarray of shape (dimension,)
        sum_k alpha_k y_k.
    alpha_sums : tuple of Bound
        sum_k alpha_k, of each part.
    path : float
        sum_k alpha_k |y_k|.
    additions : int
        Through how many an entry of w went at most inside a part.
    """

    w: Vector
    alpha_sums: tuple[Bound, ...]
    path: float
    additions: int

    @classmethod
    def of(cls, part: Part, alpha: Vector, team: Team = ALONE) -> RowSums:
        """Those of a part; ``alpha`` is that of its rows."""
        w, additions = sum_of_part(part, alpha, team)
        return cls(w, (total(alpha),), float(alpha @ part.rows.norms), additions)

    def __add__(self, other: RowSums) -> RowSums:
        return RowSums(
            self.w + other.w,
            self.alpha_sums + other.alpha_sums,
            self.path + other.path,
            max(self.additions, other.additions),
        )

    def point(
        self,
        source: str,
        alpha: Callable[[], Vector] | None = None,
        response: Response | None = None,
    ) -> DualPoint:
        """The dual point.

        Entry j of w goes through so many additions of products, and then at most one for each
        part: its error is at most that many units, and one, of sum_k alpha_k |y_kj|, which is no
        longer than sum_k alpha_k |y_k|.
        """
        additions = self.additions + len(self.alpha_sums)
        return DualPoint(
            alpha_sum=math.fsum(s.value for s in self.alpha_sums),
            w=self.w,
            source=source,
            alpha_sum_rounding=math.fsum(s.rounding for s in self.alpha_sums),
            w_rounding=_SLACK * UNIT_ROUNDOFF * additions * self.path,
            alpha=alpha,
            response=response,
        )


def dual_point(problem: AnyProblem, alpha: Vector, source: str, team: Team = ALONE) -> DualPoint:
    """The point of a feasible alpha, from scratch: one reading of the rows it weighs."""
    sums: RowSums = problem.total(_sums_of_span, alpha, team=team)
    return sums.point(source, lambda: alpha)


def _sums_of_span(part: Part, team: Team, alpha: Vector) -> RowSums:
    return RowSums.of(part, alpha[part.span], team)


def moved_point(
    problem: Problem, point: DualPoint, change: Vector, alpha: Vector, team: Team = ALONE
) -> DualPoint:
    """The point of ``alpha`` from one that is known, given their difference.

    Only the rows whose alpha changed are read. The difference was rounded, once for each row; entry
    j of the sum goes through so many additions of products; and it is added to the old w, whose
    error stays in it.
    """
    some, additions = sum_of_part(problem, change, team)
    w = point.w + some
    path = float(np.abs(change) @ problem.rows.norms)
    rounding = moved_rounding(additions, path, w)
    alpha_sum = total(alpha)
    return DualPoint(
        alpha_sum=alpha_sum.value,
        w=w,
        source=point.source,
        alpha_sum_rounding=alpha_sum.rounding,
        w_rounding=point.w_rounding + rounding,
        alpha=lambda: alpha,
    )


def moved_rounding(additions: int, path: float, w: Vector) -> float:
    """What is added to the error of w when the sum of a rounded change of alpha is added to it."""
    return _SLACK * UNIT_ROUNDOFF * ((additions + 2) * path + length(w))


@dataclass(frozen=True)
class DualBound:
    """L at ``scale * alpha``, with everything a certificate says about it."""

    bound: Bound
    scale: float
    source: str
    alpha: Vector | None = None
    response: Response | None = None


def primal_bound(problem: AnyProblem, w: Vector, team: Team = ALONE) -> Bound:
    """J(w), exactly: one reading of all rows.

    The rows are summed in chunks that depend on the data alone, so the result has the same
    bits for any number of threads.
    """
    sums: LossSums = problem.total(losses_at, w, team=team)
    return sums.primal(problem.C, w, length(w))


def losses_at(part: Part, team: Team, w: Vector) -> LossSums:
    """The losses of a part's rows, from one reading of them."""
    chunks = LossChunks(part, length(w))

    def sum_chunks(first: int, last: int) -> None:
        hinge_sums(
            part.rows.arrays, part.signed_weights, w, chunks.starts, first, last,
            chunks.blur, part.loss_roundings, chunks.sums, chunks.masses,
        )  # fmt: skip

    worth_sharing(part, team).share(sum_chunks, chunks.starts.size - 1)
    return chunks.total()


def losses_of(part: Part, team: Team, products: Vector, error: float) -> LossSums:
    """The losses of a part's rows, from products with w that are known already.

    A product is off by at most ``error`` unit roundoffs of (n_k + 2) |y_k|.
    """
    chunks = LossChunks(part, error)

    def sum_chunks(first: int, last: int) -> None:
        losses(
            products, part.weights, chunks.starts, first, last,
            chunks.blur, part.loss_roundings, chunks.sums, chunks.masses,
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


def product_error(w: Vector) -> float:
    """How far a product with w is off, in unit roundoffs of (n_k + 2) |y_k|."""
    return _SLACK * length(w)


def mixed_error(
    a: float, one: tuple[float, Vector], b: float, other: tuple[float, Vector]
) -> float:
    """How far products are off that are a times those of one vector plus b times another's.

    Of both, the errors of their products and the vectors are given. An entry of the combination,
    and likewise a product, goes through two products and a sum: it is off by two roundoffs of
    |a| |w| + |b| |other w|, times |y_k|. That makes four, of which (n_k + 2) |y_k| holds half.
    """
    lengths = abs(a) * length(one[1]) + abs(b) * length(other[1])
    return _SLACK * (abs(a) * one[0] + abs(b) * other[0] + 2.0 * lengths)


def length(w: Vector) -> float:
    """|w|."""
    return math.sqrt(float(w @ w))


class Products:
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
        sums = losses_of(self._problem, team, self.values, self.error)
        return sums.primal(self._problem.C, self.w, self.error)


class LossChunks:
    """The hinge losses of a part, chunk by chunk, to be filled in.

    A product with w is off by at most ``error`` unit roundoffs of (n_k + 2) |y_k|: a row beyond the
    margin by more than ``blur`` has no loss, and no error in it either.
    """

    def __init__(self, part: Part, error: float) -> None:
        self.starts = chunk_starts(part)
        self.sums, self.masses = np.empty((2, self.starts.size - 1))
        self.blur = rounding_blur(error, part.largest_rounding)

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
        """J(w), if these are the losses of all rows at w."""
        squared_norm, longest = float(w @ w), self.longest_chunk
        loss = C * math.fsum(self.losses)
        rounding = (
            C * _per_size(error) * math.fsum(self.masses) * (1.0 + longest * UNIT_ROUNDOFF)
            + _SLACK * UNIT_ROUNDOFF * ((longest + 11) * loss + (w.size + 4) * squared_norm)
            + (1.0 + C) * _UNDERFLOW
        )
        return Bound(0.5 * squared_norm + loss, rounding)


def rounding_blur(error: float, largest_rounding: float) -> float:
    """How far beyond the margin a row may seem to be and still have a loss.

    ``largest_rounding`` is the largest (n_k + 2) |y_k|, of whose unit roundoffs a product may be
    off by ``error``.
    """
    return 2.0 * (_per_size(error) * largest_rounding + UNIT_ROUNDOFF)


def _per_size(error: float) -> float:
    return _SLACK * UNIT_ROUNDOFF * error


def best_scale(A: float, B: float) -> float:
    """The s in [0, 1] that makes s A - s^2 B / 2 largest."""
    return min(1.0, A / B) if B > 0.0 else 1.0


def dual_bound(point: DualPoint, *, scaled: bool = True) -> tuple[Bound, float]:
    """L at the best multiple of a feasible point, and that multiple.

    With A = sum alpha and B = |w_alpha|^2, every s in [0, 1] keeps s alpha in the box, and
    L(s alpha) = s A - s^2 B / 2 is largest at s = min(1, A / B), where it is never negative.
    ``scaled=False`` takes s = 1.
    """
    A = point.alpha_sum
    B = float(point.w @ point.w)
    s = best_scale(A, B) if scaled else 1.0
    # s may be tiny and B huge: s * s alone could underflow.
    sA, ssB = s * A, s * (s * B)
    length, error = s * math.sqrt(B), s * point.w_rounding
    squared_norm_rounding = (2.0 * length + error) * error + UNIT_ROUNDOFF * (
        (point.w.size + 2) * ssB
    )
    rounding = _SLACK * (
        s * point.alpha_sum_rounding
        + 0.5 * squared_norm_rounding
        + 4.0 * UNIT_ROUNDOFF * (sA + ssB)
        + _UNDERFLOW
    )
    return Bound(float(sA - 0.5 * ssB), float(rounding)), s


class Ledger:
    """The bounds found during one training run, and the certificate they amount to.

    Bounds do not depend on the order in which they were found, so by default the best of
    each kind counts. With ``keep_best=False`` only the latest does, as in the paper.
    """

    def __init__(self, problem: AnyProblem, target: float, *, keep_best: bool = True) -> None:
        self.target = target
        # One object, so that an interrupt cannot fall between w and its J.
        self._best: tuple[Vector | None, Bound] = (None, Bound(math.inf, 0.0))
        self.dual: DualBound = DualBound(Bound(0.0, 0.0), 1.0, PRIMAL_ONLY)
        self._problem = problem
        self._keep_best = keep_best

    @property
    def w(self) -> Vector | None:
        """The weight vector that the certificate is about."""
        return self._best[0]

    @property
    def primal(self) -> Bound:
        """J at that weight vector."""
        return self._best[1]

    def offer_primal(self, w: Vector, bound: Bound) -> None:
        """Take note of J at ``w``."""
        if math.isfinite(bound.high) and (not self._keep_best or bound.high < self.primal.high):
            self._best = w.copy(), bound

    def offer_zero(self) -> None:
        """Take note of J at w = 0, which is C sum_k s_k without any computation."""
        value = self._problem.C * self._problem.weight_sum
        rounding = 128.0 * UNIT_ROUNDOFF * value
        self.offer_primal(np.zeros(self._problem.dimension), Bound(value, rounding))

    def offer_dual(self, point: DualPoint) -> None:
        """Take note of a feasible dual point."""
        bound, scale = dual_bound(point, scaled=self._keep_best)
        if not math.isfinite(bound.low):
            return
        # alpha = 0, which the ledger starts with, is feasible too: L = 0. The paper's L is
        # recorded as it is, below zero or not.
        if not self._keep_best or bound.low > self.dual.bound.low:
            alpha = None
            if point.alpha is not None:
                box = self._problem.C * self._problem.weights
                alpha = np.minimum(scale * point.alpha(), box)
            self.dual = DualBound(bound, scale, point.source, alpha, point.response)

    def certificate(self) -> Certificate:
        """What is proved now."""
        primal, dual = self.primal, self.dual
        return Certificate(
            primal=primal.value,
            dual=dual.bound.value,
            target=self.target,
            bound=dual.source,
            scale=dual.scale,
            primal_rounding=primal.rounding,
            dual_rounding=dual.bound.rounding,
            C=self._problem.C,
            bias=self._problem.bias,
        )


def worth_sharing(part: Part, team: Team) -> Team:
    """The team, unless waking its threads takes as long as the work."""
    return team if part.rows.n_stored >= _LEAST_SHARED else ALONE


def chunk_starts(part: Part) -> NDArray[np.int64]:
    """Where the chunks begin in which losses are summed, and the end; it depends on data alone."""
    n_rows = part.rows.n_rows
    n_chunks = min(_MOST_CHUNKS, n_rows, 1 + part.rows.n_stored // _VALUES_PER_CHUNK)
    return np.arange(n_chunks + 1, dtype=np.int64) * n_rows // n_chunks
