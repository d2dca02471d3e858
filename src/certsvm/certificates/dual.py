"""L(alpha) and its rounding, from what a solver knows of a feasible alpha."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.primal import worth_sharing
from certsvm.certificates.rounding import (
    SLACK,
    UNDERFLOW,
    UNIT_ROUNDOFF,
    Bound,
    moved_rounding,
    units,
)
from certsvm.kernels.losses import Loss, dual_value
from certsvm.kernels.objective import weighted_sum
from certsvm.parallel import ALONE, Team
from certsvm.problem.base import SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector

_SUM_IN_PAIRS = 65


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
        sum_k alpha_k for the hinge; of any loss, the sum of what the alpha_k add to L
        (``dual_value``).
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


@dataclass(frozen=True)
class DualBound:
    """L at ``scale * alpha``, with everything a certificate says about it."""

    bound: Bound
    scale: float
    source: str
    alpha: Vector | None = None
    response: Response | None = None


def total(alpha: Vector) -> Bound:
    """sum_k alpha_k for alpha >= 0.

    NumPy adds in pairs, down to blocks of 128 numbers in eight sums: a number goes through some
    twenty additions, and one more for each doubling of n.
    """
    value = float(alpha.sum())
    return Bound(value, units(_SUM_IN_PAIRS, value))


def dual_sum(problem: Problem, alpha: Vector) -> Bound:
    """What a feasible alpha adds to L besides -|w|^2 / 2."""
    return total(dual_value(problem.loss, alpha, problem.C, problem.weights))


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
        The ``alpha_sum`` of a ``DualPoint``, of each part.
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
    def of(cls, part: Part, alpha: Vector, loss: Loss, C: float, team: Team = ALONE) -> RowSums:
        """Those of a part; ``alpha`` is that of its rows."""
        w, additions = sum_of_part(part, alpha, team)
        alpha_sum = total(dual_value(loss, alpha, C, part.weights))
        return cls(w, (alpha_sum,), float(alpha @ part.rows.norms), additions)

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
            w_rounding=units(additions, self.path),
            alpha=alpha,
            response=response,
        )


def dual_point(
    problem: SummableProblem, alpha: Vector, source: str, team: Team = ALONE
) -> DualPoint:
    """The point of a feasible alpha, from scratch: one reading of the rows it weighs."""
    sums: RowSums = problem.total(_sums_of_span, alpha, problem.loss, problem.C, team=team)
    return sums.point(source, lambda: alpha)


def _sums_of_span(part: Part, team: Team, alpha: Vector, loss: Loss, C: float) -> RowSums:
    return RowSums.of(part, alpha[part.span], loss, C, team)


def moved_point(
    problem: Problem, point: DualPoint, change: Vector, alpha: Vector, team: Team = ALONE
) -> DualPoint:
    """The point of ``alpha`` from one that is known, given their difference.

    Only the rows whose alpha changed are read.
    """
    moved, additions = sum_of_part(problem, change, team)
    path = float(np.abs(change) @ problem.rows.norms)
    return moved_sum_point(
        point, point.w + moved, dual_sum(problem, alpha), additions, path, lambda: alpha
    )


def moved_sum_point(
    point: DualPoint,
    w: Vector,
    alpha_sum: Bound,
    additions: int,
    path: float,
    alpha: Callable[[], Vector] | None = None,
) -> DualPoint:
    """The point whose w is that of a known one plus the sum of a change of alpha.

    Parameters
    ----------
    point : DualPoint
        The known one. Its error stays in w.
    w : ndarray of shape (dimension,)
        Its w plus sum_k change_k y_k.
    alpha_sum : Bound
        sum_k alpha_k after the change.
    additions : int
        Through how many an entry of sum_k change_k y_k went at most.
    path : float
        sum_k |change_k| |y_k|.
    alpha : callable, default=None
        Returns alpha.
    """
    return DualPoint(
        alpha_sum=alpha_sum.value,
        w=w,
        source=point.source,
        alpha_sum_rounding=alpha_sum.rounding,
        w_rounding=point.w_rounding + moved_rounding(additions, path, w),
        alpha=alpha,
    )


def point_of(
    problem: Problem,
    alpha: Vector,
    w: Vector,
    w_rounding: float,
    source: str,
    *,
    keep_alpha: bool,
) -> DualPoint:
    """The point of an alpha whose w was kept up to date, and is off by ``w_rounding``."""
    alpha_sum = dual_sum(problem, alpha)
    return DualPoint(
        alpha_sum=alpha_sum.value,
        w=w,
        source=source,
        alpha_sum_rounding=alpha_sum.rounding,
        w_rounding=w_rounding,
        alpha=alpha.copy if keep_alpha else None,
    )


def counts_point(
    factor: float,
    count_sum: Bound,
    a: Vector,
    a_rounding: float,
    size: float,
    source: str,
    alpha: Callable[[], Vector] | None = None,
) -> DualPoint:
    """The point alpha_k = factor * s_k I_k, where rows were counted I_k times.

    Four roundings are allowed for: of s_k I_k, of a difference of counts, of the factor (C over a
    number, as a quotient), and of the product with it.

    Parameters
    ----------
    factor : float
        What keeps alpha in the box.
    count_sum : Bound
        sum_k s_k I_k.
    a : ndarray of shape (dimension,)
        sum_k s_k I_k y_k.
    a_rounding : float
        How far a is off, in norm.
    size : float
        What entries of a are rounded in proportion to: |a|, or sum_k s_k I_k |y_k|.
    source : str
        How feasibility is known.
    alpha : callable, default=None
        Returns alpha.
    """
    return DualPoint(
        alpha_sum=factor * count_sum.value,
        w=factor * a,
        source=source,
        alpha_sum_rounding=factor * (count_sum.rounding + units(4, count_sum.value)),
        w_rounding=factor * (a_rounding + units(4, size)),
        alpha=alpha,
    )


def shares_within(shares: Vector, most: float) -> Vector:
    """The shares, made smaller if they are more than ``most`` together.

    ``fsum`` rounds once, so a sum below ``most`` is below it exactly. Otherwise the sum, the
    quotient and two products round, which four unit roundoffs make up for.
    """
    if (mass := math.fsum(shares)) < most:
        return shares
    return shares * (most / mass * (1.0 - 4.0 * UNIT_ROUNDOFF))


def mixed_point(
    shares: Vector,
    alpha_sums: Vector,
    vectors: NDArray[np.float64],
    lengths: Vector,
    roundings: Vector,
    source: str,
    alpha: Callable[[], Vector] | None = None,
) -> DualPoint:
    """The combination of n points, with nonnegative shares.

    It inherits the errors of the points, by their shares. Sums of n products, in any order, add n
    units; ``alpha_sums`` are those of ``total``.

    Parameters
    ----------
    shares : ndarray of shape (n,)
        Of the points.
    alpha_sums, lengths, roundings : ndarray of shape (n,)
        Their sum_k alpha_k, |w| and errors of w.
    vectors : ndarray of shape (n, dimension)
        Their w.
    source : str
        How feasibility is known.
    alpha : callable, default=None
        Returns alpha.
    """
    n, alpha_sum = shares.size, float(shares @ alpha_sums)
    inherited = SLACK * float(shares @ roundings)
    return DualPoint(
        alpha_sum=alpha_sum,
        w=shares @ vectors,
        source=source,
        alpha_sum_rounding=units(n + 1 + _SUM_IN_PAIRS, alpha_sum),
        w_rounding=inherited + units(n + 2, float(shares @ lengths)),
        alpha=alpha,
    )


def best_scale(A: float, B: float) -> float:
    """The s in [0, 1] that makes s A - s^2 B / 2 largest."""
    return min(1.0, max(A, 0.0) / B) if B > 0.0 else 1.0


def dual_bound(point: DualPoint, *, scaled: bool = True) -> tuple[Bound, float]:
    """L at the best multiple of a feasible point, and that multiple.

    With A = sum alpha and B = |w_alpha|^2, every s in [0, 1] keeps s alpha in the box, and
    L(s alpha) = s A - s^2 B / 2 is largest at s = min(1, A / B), where it is never negative.
    ``scaled=False`` takes s = 1. If what alpha adds to L is not linear but concave, L(s alpha) is
    not less than that.
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
    rounding = SLACK * (
        s * point.alpha_sum_rounding
        + 0.5 * squared_norm_rounding
        + 4.0 * UNIT_ROUNDOFF * (sA + ssB)
        + UNDERFLOW
    )
    return Bound(float(sA - 0.5 * ssB), float(rounding)), s
