"""L(alpha) and its rounding allowance, from what a solver knows of a feasible alpha."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates import rounding
from certsvm.certificates.rounding import SLACK, UNIT_ROUNDOFF, Bound, length, sum_of_parts, units
from certsvm.kernels.losses import Loss
from certsvm.kernels.objective import dual_penalties, weighted_sum
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.rows import Part, Vector
from certsvm.resources import ALONE, Team, single_threaded_blas

_SUM_IN_PAIRS = 65
# An alpha that is kept is rounded after its sums were computed: in products with the factor that
# balances it and with the scale. A quantised one is a product of three, and rounds five times in
# its two evaluations.
_KEPT = 6
# Numbers below this may have lost digits to underflow. Far above it, they have not.
_FEW_DIGITS = 1e-280


class Response(NamedTuple):
    """A feasible alpha as a function of a weight vector: a proof no longer than the vector.

    alpha_k = clip(C s_k / 2 + sigma s_k (1 - w.y_k), 0, C s_k) for the hinge,
    alpha_k = 2 C s_k max(0, 1 - w.y_k) for its square, whatever sigma is.
    """

    w: Vector
    sigma: float


class AlphaSums(NamedTuple):
    """The sums over rows of alpha_k and of ``dual_penalty``: L without its term -|w|^2 / 2."""

    alpha: Bound
    penalty: Bound = rounding.NOTHING

    @property
    def value(self) -> float:
        """The sum of D_k(alpha_k)."""
        return self.alpha.value - self.penalty.value


@dataclass(frozen=True)
class DualPoint:
    """The properties of a feasible alpha that determine L."""

    sums: AlphaSums
    w: Vector
    """sum_k alpha_k y_k."""
    source: str
    """How feasibility is known, for the certificate."""
    w_rounding: float = 0.0
    """Bound on the error of ``w``, in norm."""
    most: float = 1.0
    """The largest multiple of alpha that is feasible, too: infinity if the box has no end."""
    alpha: Callable[[], Vector] | None = None
    """Returns alpha, if the solver keeps it."""
    response: Any = None
    """What alpha can be had from if it is not kept: a ``Response``, or where a solver left it."""

    @property
    def alpha_sum(self) -> float:
        """sum_k alpha_k."""
        return self.sums.alpha.value


class DualVector(NamedTuple):
    """v = sum_k alpha_k y_k of a feasible alpha, and a bound on its error in norm."""

    v: Vector
    rounding: float


@dataclass(frozen=True)
class DualBound:
    """L at ``scale * alpha``, and how that point is known to be feasible."""

    bound: Bound
    scale: float
    source: str
    alpha: Vector | None = None
    response: Any = None
    vector: DualVector | None = None


def total(alpha: Vector) -> Bound:
    """sum_k alpha_k for alpha >= 0.

    NumPy sums pairwise, down to blocks of 128 numbers in eight sums: a number goes through some
    twenty additions, and one more for each doubling of n.
    """
    value = float(alpha.sum())
    return Bound(value, units(_SUM_IN_PAIRS, value))


def alpha_sums(loss: Loss, alpha: Vector, weights: Vector, C: float) -> AlphaSums:
    """The sums over some rows.

    A penalty is two quotients and a product; C s_k is another.
    """
    if not loss.is_smooth:
        return AlphaSums(total(alpha))
    penalties = np.empty(alpha.size)
    dual_penalties(loss, alpha, weights, C, penalties)
    value = float(penalties.sum())
    return AlphaSums(total(alpha), Bound(value, units(_SUM_IN_PAIRS + 4, value)))


def sums_in_any_order(alpha: float, penalty: float, additions: int) -> AlphaSums:
    """The sums over rows, if a term goes through at most so many additions, in an unknown order.

    A penalty rounds as in ``alpha_sums``.
    """
    of_alpha = rounding.sum_in_any_order(alpha, additions)
    return AlphaSums(of_alpha, rounding.sum_in_any_order(penalty, additions + 4))


def dual_sum(problem: BaseProblem, alpha: Vector) -> AlphaSums:
    """The sums over all rows."""
    return alpha_sums(problem.loss, alpha, problem.weights, problem.C)


def sum_of_part(part: Part, alpha: Vector, team: Team = ALONE) -> tuple[Vector, int]:
    """sum_k alpha_k y_k over a part, and the largest number of additions behind an entry."""
    rows = part.rows
    # The root of n_rows minimises the additions. A longer chunk is chosen where clearing and adding
    # its vector would cost more than its rows.
    per_row = max(1, rows.n_stored // max(1, rows.n_rows))
    chunk = max(math.isqrt(rows.n_rows) + 1, 4 * rows.dimension // per_row)
    chunks = -(-rows.n_rows // chunk)

    def add_up(first: int, last: int) -> Vector:
        partial, out = np.zeros(rows.dimension), np.zeros(rows.dimension)
        begin, end = first * chunk, min(last * chunk, rows.n_rows)
        weighted_sum(rows.arrays, part.signed_weights, alpha, begin, end, chunk, partial, out)
        return out

    sums = team.share(add_up, chunks, rows.n_stored)
    out = sums[0]
    for other in sums[1:]:
        out += other
    return out, min(chunk, rows.n_rows) + chunks + len(sums)


@dataclass(frozen=True)
class RowSums:
    """The sums over rows that make a ``DualPoint``; sums over parts are added with +."""

    w: Vector
    """sum_k alpha_k y_k."""
    alpha_sums: tuple[AlphaSums, ...]
    """The sums over each part."""
    path: float
    """sum_k alpha_k |y_k|."""
    additions: int
    """The largest number of additions behind an entry of w, inside one part."""
    most: float = 1.0
    """The ``largest_multiple``."""

    @classmethod
    def of(cls, part: Part, alpha: Vector, loss: Loss, C: float, team: Team = ALONE) -> RowSums:
        """The sums over a part, given alpha of its rows."""
        w, additions = sum_of_part(part, alpha, team)
        sums = alpha_sums(loss, alpha, part.weights, C)
        path = inner(alpha, part.rows.norms)
        return cls(w, (sums,), path, additions, loss.largest_multiple)

    def __add__(self, other: RowSums) -> RowSums:
        sums, additions = self.alpha_sums + other.alpha_sums, max(self.additions, other.additions)
        return RowSums(self.w + other.w, sums, self.path + other.path, additions, self.most)

    def point(
        self, source: str, alpha: Callable[..., Vector] | None = None, response: Any = None
    ) -> DualPoint:
        """The dual point.

        Entry j of w sums rounded products, in at most n ``additions`` inside a part and one for
        each of p parts but the first: its error is at most n + p units of sum_k alpha_k |y_kj|.
        The vector of these sums is no longer than ``path``. An alpha that is kept adds its own.
        """
        additions = self.additions + len(self.alpha_sums) + _KEPT
        sums = AlphaSums(*map(_sum_of_bounds, zip(*self.alpha_sums, strict=True)))
        allowance = units(additions, self.path)
        return DualPoint(sums, self.w, source, allowance, self.most, alpha, response)


def _sum_of_bounds(bounds: Sequence[Bound]) -> Bound:
    """The sum of nonnegative numbers over all parts."""
    return Bound(sum_of_parts(b.value for b in bounds), sum_of_parts(b.rounding for b in bounds))


@dataclass(frozen=True)
class ClassSums:
    """The sums over the rows of either label, for a free intercept; they are added with +.

    Then only alpha with sum_k label_k alpha_k = 0 is feasible. From any alpha in the box, scaling
    that of the label with the larger sum down to the other's sum makes one.
    """

    positive: RowSums
    negative: RowSums

    @classmethod
    def of(cls, part: Part, alpha: Vector, loss: Loss, C: float, team: Team = ALONE) -> ClassSums:
        """The sums over a part, given alpha of its rows."""
        sides = (balanced_alpha(part, alpha, *side) for side in ((1.0, 0.0), (0.0, 1.0)))
        return cls(*(RowSums.of(part, side, loss, C, team) for side in sides))

    def __add__(self, other: ClassSums) -> ClassSums:
        return ClassSums(self.positive + other.positive, self.negative + other.negative)

    @property
    def w(self) -> Vector:
        """sum_k alpha_k y_k, of alpha as it is given."""
        return self.positive.w + self.negative.w

    def point(
        self, source: str, alpha: Callable[..., Vector] | None = None, response: Any = None
    ) -> DualPoint:
        """The dual point of the balanced alpha, which ``alpha`` returns for two factors."""
        positive, negative = self.positive.point(source), self.negative.point(source)
        return balanced_point(positive, negative, alpha, response)


def balanced_point(
    positive: DualPoint, negative: DualPoint, alpha: Callable[..., Vector] | None = None,
    response: Any = None,
) -> DualPoint:  # fmt: skip
    """The dual point of a balanced alpha, given the points of the rows of either label.

    The factors are computed from sums with relative errors of delta and delta', by a quotient that
    rounds: the factors that balance alpha exactly differ from these by no more than delta + delta'
    + 2 unit roundoffs, in proportion, and can be chosen not to exceed one. The sums are
    multiplied and added. The last entry of w is zero exactly.
    """
    a, b = positive.alpha_sum, negative.alpha_sum
    least = min(a, b)
    # An alpha that is zero on one side, or so small there that a factor would underflow, is zero on
    # both.
    if least > _FEW_DIGITS * max(a, b):
        factors = (least / a, least / b)
        off = positive.sums.alpha.rounding / a + negative.sums.alpha.rounding / b
        off = SLACK * off + units(2 + _KEPT, 1.0)
    else:
        least, factors, off = 0.0, (0.0, 0.0), 0.0
    points = tuple(zip(factors, (positive, negative), strict=True))
    w: Vector = sum((f * point.w for f, point in points), np.zeros(positive.w.size))
    w[-1] = 0.0
    lengths = sum(f * length(point.w) for f, point in points)
    penalty = sum(f * (f * point.sums.penalty.value) for f, point in points)
    of_sum = 2.0 * off * least + sum(f * point.sums.alpha.rounding for f, point in points)
    of_penalty = SLACK * sum(f * (f * point.sums.penalty.rounding) for f, point in points)
    of_penalty += SLACK * 2.0 * off * (1.0 + off) * penalty + units(4, penalty)
    of_w = SLACK * sum(f * point.w_rounding for f, point in points)
    of_w += SLACK * off * lengths + units(4, lengths)
    sums = AlphaSums(Bound(2.0 * least, SLACK * of_sum), Bound(penalty, of_penalty))
    balanced = None if alpha is None else lambda: alpha(*factors)
    return DualPoint(sums, w, positive.source, of_w, positive.most, balanced, response)


def dual_point(
    problem: SummableProblem, alpha: Vector, source: str, team: Team = ALONE
) -> DualPoint:
    """The dual point of an alpha in the box, computed from scratch in one pass.

    If the intercept is free, it is the point of the balanced alpha.
    """
    sums = dual_sums(problem, alpha, team, balanced=problem.free_intercept)
    return sums.point(source, balancing(problem, alpha))


def dual_sums(
    problem: SummableProblem, alpha: Vector, team: Team = ALONE, *, balanced: bool
) -> RowSums | ClassSums:
    """The sums over all rows, in one pass; those of either label if alpha is to be ``balanced``."""
    arguments = ClassSums if balanced else RowSums, alpha, problem.loss, problem.C
    sums: RowSums | ClassSums = problem.total(_sums_of_span, *arguments, team=team)
    return sums


def balancing(problem: SummableProblem, alpha: Vector) -> Callable[..., Vector]:
    """Makes an alpha from the factors of both labels; without factors, it is ``alpha``."""

    def balanced(*factors: float) -> Vector:
        if not factors:
            return alpha
        return np.concatenate(problem.of_each(_balanced_span, alpha, *factors))

    return balanced


def _sums_of_span(
    part: Part, team: Team, kind: type[Any], alpha: Vector, loss: Loss, C: float
) -> Any:
    return kind.of(part, alpha[part.span], loss, C, team)


def _balanced_span(
    part: Part, team: Team, alpha: Vector, positive: float, negative: float
) -> Vector:
    return balanced_alpha(part, alpha[part.span], positive, negative)


def balanced_alpha(part: Part, alpha: Vector, positive: float, negative: float) -> Vector:
    """The alpha of a part's rows, times the factor of their label."""
    balanced: Vector = alpha * np.where(part.signed_weights > 0.0, positive, negative)
    return balanced


def point_of(
    problem: BaseProblem, alpha: Vector, w: Vector, error: float, source: str, *, keep_alpha: bool
) -> DualPoint:
    """The dual point of an alpha whose w was kept up to date, with an ``error`` in norm."""
    sums, most = dual_sum(problem, alpha), problem.loss.largest_multiple
    return DualPoint(sums, w, source, error, most, alpha.copy if keep_alpha else None)


def counts_point(
    factor: float, count_sum: Bound, a: Vector, a_rounding: float, size: float, source: str,
    alpha: Callable[[], Vector] | None = None,
) -> DualPoint:  # fmt: skip
    """The dual point alpha_k = factor * s_k I_k, where row k was counted I_k times.

    ``count_sum`` is sum_k s_k I_k, and ``a`` is sum_k s_k I_k y_k with an error of ``a_rounding``
    in norm. Four more roundings are allowed for: of s_k I_k, of a difference of counts, of the
    factor (a quotient C / n), and of the product with it. The entries of a round in proportion to
    ``size``: |a|, or sum_k s_k I_k |y_k|.
    """
    allowance = factor * (count_sum.rounding + units(4 + _KEPT, count_sum.value))
    sums = AlphaSums(Bound(factor * count_sum.value, allowance))
    w_rounding = factor * (a_rounding + units(4 + _KEPT, size))
    return DualPoint(sums, factor * a, source, w_rounding, alpha=alpha)


def shares_within(shares: Vector, most: float) -> Vector:
    """The shares, scaled down if their sum exceeds ``most``.

    ``fsum`` rounds once, so a computed sum below ``most`` is below it exactly. Otherwise the sum,
    the quotient and two products round; the factor is lowered by four unit roundoffs for them.
    """
    if (mass := math.fsum(shares)) < most:
        return shares
    return shares * (most / mass * (1.0 - 4.0 * UNIT_ROUNDOFF))


@single_threaded_blas()
def mixed_point(
    shares: Vector, alpha_sums: Vector, vectors: NDArray[np.float64], lengths: Vector,
    roundings: Vector, source: str, alpha: Callable[[], Vector] | None = None,
) -> DualPoint:  # fmt: skip
    """The combination of n dual points, with nonnegative shares.

    Row i of ``vectors`` is w of point i, of norm ``lengths[i]``, with an error of ``roundings[i]``;
    ``alpha_sums[i]`` was computed by ``total``. The combination inherits the errors in proportion
    to the shares. Its sums of n products, in any order, add n units. An alpha that is kept is
    another such sum. The roundings are ``_KEPT`` and two units of sum_k alpha_k |y_k| or more.
    """
    n, alpha_sum = shares.size, float(shares @ alpha_sums)
    kept = 0 if alpha is None else n + _KEPT
    sums = AlphaSums(Bound(alpha_sum, units(n + 1 + _SUM_IN_PAIRS + kept, alpha_sum)))
    w_rounding = SLACK * float(shares @ roundings) * (1.0 + kept / (2 + _KEPT))
    w_rounding += units(n + 2, float(shares @ lengths))
    return DualPoint(sums, shares @ vectors, source, w_rounding, alpha=alpha)


def best_scale(A: float, B: float, most: float = 1.0) -> float:
    """The s from 0 to ``most`` that makes s A - s^2 B / 2 largest.

    A multiple above one would magnify what underflow did to B.
    """
    if B < _FEW_DIGITS:
        most = min(most, 1.0)
    return min(most, max(A, 0.0) / B) if B > 0.0 else 1.0


def dual_bound(point: DualPoint, *, scaled: bool = True) -> tuple[Bound, float]:
    """L at the best multiple of a feasible point, and that multiple.

    With A = sum alpha, Q the sum of penalties and B = |w_alpha|^2, every s from 0 to ``most`` keeps
    s alpha in the box, and L(s alpha) = s A - s^2 (B / 2 + Q) is largest at s = A / (B + 2 Q) or at
    the end, where it is never negative. ``scaled=False`` takes s = 1.

    alpha is feasible for C s_k as rounded. Clipping it to the exact box lowers L by a unit roundoff
    of s A at most, for which the four units of s A below have room.
    """
    of_alpha, penalty = point.sums
    A, Q = of_alpha.value, penalty.value
    B = inner(point.w, point.w)
    s = best_scale(A, B + 2.0 * Q, point.most) if scaled else 1.0
    # s may be tiny and B huge: s * s alone could underflow.
    sA, ssB, ssQ = s * A, s * (s * B), s * (s * Q)
    size, error = s * math.sqrt(B), s * point.w_rounding
    squared_norm_rounding = (2.0 * size + error) * error + UNIT_ROUNDOFF * (
        (point.w.size + 2) * ssB
    )
    allowance = SLACK * (
        s * of_alpha.rounding
        + 0.5 * squared_norm_rounding
        + s * (s * penalty.rounding)
        + 4.0 * UNIT_ROUNDOFF * (sA + ssB + ssQ)
        + rounding.UNDERFLOW
    )
    return Bound(float(sA - 0.5 * ssB - ssQ), float(allowance)), s


def scaled_vector(point: DualPoint, scale: float) -> DualVector:
    """The sum scale * sum_k alpha_k y_k, whose entries are rounded once more."""
    v = scale * point.w
    return DualVector(v, scale * point.w_rounding + units(2, length(v)))
