"""L(alpha) and its rounding, from what a solver knows of a feasible alpha."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certsvm.certificates.primal import worth_sharing
from certsvm.certificates.rounding import SLACK, UNDERFLOW, UNIT_ROUNDOFF, Bound, moved_rounding
from certsvm.kernels.objective import weighted_sum
from certsvm.parallel import ALONE, Team
from certsvm.problem.base import SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector


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


@dataclass(frozen=True)
class DualBound:
    """L at ``scale * alpha``, with everything a certificate says about it."""

    bound: Bound
    scale: float
    source: str
    alpha: Vector | None = None
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
            w_rounding=SLACK * UNIT_ROUNDOFF * additions * self.path,
            alpha=alpha,
            response=response,
        )


def dual_point(
    problem: SummableProblem, alpha: Vector, source: str, team: Team = ALONE
) -> DualPoint:
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
    rounding = SLACK * (
        s * point.alpha_sum_rounding
        + 0.5 * squared_norm_rounding
        + 4.0 * UNIT_ROUNDOFF * (sA + ssB)
        + UNDERFLOW
    )
    return Bound(float(sA - 0.5 * ssB), float(rounding)), s
