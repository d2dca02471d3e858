"""An independent second computation of a certificate, on the workers.

J of the answer and L of the dual point are computed again with NumPy and SciPy from the rows as
they are now, by tasks that share nothing with those of the training but the rows.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import (
    Response,
    RowSums,
    best_scale,
    dual_bound,
    largest_multiple,
    scaled_vector,
)
from certsvm.certificates.verification import RECOMPUTATION_TOLERANCE
from certsvm.dask.cluster import TRANSIENT, WorkerGoneError, add_up
from certsvm.dask.cocoa import AlphaOnWorkers, GroupState
from certsvm.dask.problem import ClusterProblem, parts_of
from certsvm.kernels.losses import Loss
from certsvm.parallel import ALONE, Team, single_threaded_blas
from certsvm.problem.base import BaseProblem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.training.result import Result

# Rows at a time.
_SLICE = 8192

OfRows: TypeAlias = Callable[[slice], Vector]


class CertificateRefutedError(RuntimeError):
    """A certificate could not be confirmed: the data changed, or the program is wrong."""


@dataclass(frozen=True)
class Recomputed:
    """What is recomputed: the parameters of J, without the classes and functions of training."""

    C: float
    squared: bool
    """Whether the loss is the square of the hinge."""
    free_intercept: bool

    @classmethod
    def of(cls, problem: BaseProblem) -> Recomputed:
        """The parameters of a problem."""
        return cls(problem.C, problem.loss.is_smooth, problem.free_intercept)

    def losses(self, margins: Vector) -> Vector:
        """The losses of rows with these margins."""
        hinge: Vector = np.maximum(0.0, 1.0 - margins)
        return hinge * hinge if self.squared else hinge

    def response(self, margins: Vector, weights: Vector, sigma: float) -> Vector:
        """The alpha of rows with these margins and weights."""
        if self.squared:
            return 2.0 * self.C * weights * np.maximum(0.0, 1.0 - margins)
        unclipped = 0.5 * self.C * weights + sigma * weights * (1.0 - margins)
        clipped: Vector = np.clip(unclipped, 0.0, self.C * weights)
        return clipped

    def is_feasible(self, alpha: Vector, weights: Vector) -> bool:
        """Whether alpha is in the box; rows without weight have no alpha."""
        most = np.where(weights > 0.0, np.inf, 0.0) if self.squared else self.C * weights
        return bool(((alpha >= 0.0) & (alpha <= most) & np.isfinite(alpha)).all())

    def penalty(self, alpha: Vector, weights: Vector) -> float:
        """The sum of what the loss takes off L for each row."""
        if not self.squared:
            return 0.0
        # Rows without weight have no alpha.
        divisors = 4.0 * self.C * np.where(weights > 0.0, weights, 1.0)
        return float((alpha * (alpha / divisors)).sum())


@dataclass
class SideSums:
    """Sums over rows: alpha_k, the penalties, and alpha_k y_k."""

    alpha_sum: float
    penalty: float
    w: Vector

    def __iadd__(self, other: SideSums) -> SideSums:
        self.alpha_sum += other.alpha_sum
        self.penalty += other.penalty
        self.w = self.w + other.w
        return self


@dataclass
class RecheckSums:
    """Sums over the rows of a part: their number, their losses, and those of the dual point.

    If the intercept is free, ``sides`` are those of the rows of either label, which have to be
    balanced. Otherwise there is one, of all rows.
    """

    n_rows: int
    loss: float
    sides: tuple[SideSums, ...]

    def __iadd__(self, other: RecheckSums) -> RecheckSums:
        self.n_rows += other.n_rows
        self.loss += other.loss
        for side, added in zip(self.sides, other.sides, strict=True):
            side += added
        return self

    def primal(self, w: Vector, recomputed: Recomputed) -> float:
        """J(w)."""
        regularised = w[:-1] if recomputed.free_intercept else w
        return 0.5 * float(regularised @ regularised) + recomputed.C * self.loss

    def dual(self, most: float) -> float:
        """L at the best multiple of alpha, up to ``most``, with its sides balanced."""
        least = min(side.alpha_sum for side in self.sides)
        factors = [least / side.alpha_sum if least > 0.0 else 0.0 for side in self.sides]
        pairs = list(zip(factors, self.sides, strict=True))
        w = np.sum([factor * side.w for factor, side in pairs], axis=0)
        if len(self.sides) > 1:
            # Balanced, the last entry is zero, but for rounding.
            w = w[:-1]
        A = sum(factor * side.alpha_sum for factor, side in pairs)
        Q = sum(factor * factor * side.penalty for factor, side in pairs)
        B = float(w @ w)
        scale = best_scale(A, B + 2.0 * Q, most)
        return scale * A - scale * scale * (0.5 * B + Q)


def recheck(problem: ClusterProblem, result: Result) -> Result:
    """Return the result if its J and L are confirmed.

    If the best alpha was lost with a worker after the last round, the certificate and the vector of
    the dual point are replaced by those that the last copy of alpha proves.

    Raises
    ------
    CertificateRefutedError
        If J is larger or L smaller than the certificate says, or rows are missing.
    """
    response, w, recomputed = result.response, result.w, Recomputed.of(problem)
    if isinstance(response, AlphaOnWorkers):
        try:
            sums = _recheck_states(problem, response, w)
        except TRANSIENT:
            sizes = np.diff(problem.firsts)
            copy = response.copy or [np.zeros(size) for size in sizes]
            sums = problem.total(recheck_alpha, w, recomputed, each=copy)
            result = _proved_by(problem, copy, result)
    elif result.alpha is not None:
        each = np.split(result.alpha, problem.firsts[1:-1])
        sums = problem.total(recheck_alpha, w, recomputed, each=each)
    else:
        sums = problem.total(recheck_response, w, recomputed, response)
    errors = _errors(problem, result.certificate, w, sums)
    if errors:
        raise CertificateRefutedError(
            f"the certificate ({result.certificate}) cannot be confirmed: {'; '.join(errors)}"
        )
    return result


def _errors(
    problem: ClusterProblem, certificate: Certificate, w: Vector, sums: RecheckSums
) -> list[str]:
    errors = []
    if sums.n_rows != problem.n_rows:
        errors.append(f"there are {sums.n_rows} rows, not {problem.n_rows}")
    J = sums.primal(w, Recomputed.of(problem))
    # Each of the two computations may be off by its allowance.
    slack = RECOMPUTATION_TOLERANCE
    high = (1.0 + slack) * certificate.primal + 2.0 * certificate.primal_rounding
    if not (math.isfinite(J) and high >= J):
        errors.append(f"J is {J!r}, not {certificate.primal!r}")
    L = sums.dual(largest_multiple(problem.loss))
    if not (1.0 - slack) * certificate.dual - 2.0 * certificate.dual_rounding <= L:
        errors.append(f"L is {L!r}, not {certificate.dual!r}")
    return errors


def _recheck_states(problem: ClusterProblem, alpha: AlphaOnWorkers, w: Vector) -> RecheckSums:
    """The sums for the alpha that the workers keep."""
    cluster, groups, recomputed = problem.cluster, alpha.groups, Recomputed.of(problem)
    if not alpha.states:
        raise WorkerGoneError("the best alpha was lost with a worker")
    sent = cluster.send(w, groups)
    tasks = [
        cluster.task(
            "recheck-alpha", _recheck_group, problem.inputs(group.members), state, sent, recomputed,
            at=group.worker,
        )
        for group, state in zip(groups, alpha.states, strict=True)
    ]  # fmt: skip
    sums: RecheckSums = add_up(
        cluster.results(cluster.begin(cluster.summed(tasks, groups)), groups)
    )
    return sums


def _proved_by(problem: ClusterProblem, alphas: Sequence[Vector], result: Result) -> Result:
    """The result with the dual bound and vector of another alpha, one array for each part."""
    sums: RowSums = problem.total(_row_sums, problem.loss, problem.C, each=alphas)
    point = sums.point(result.certificate.bound)
    bound, scale = dual_bound(point)
    certificate = replace(
        result.certificate, dual=bound.value, dual_rounding=bound.rounding, scale=scale
    )
    vector = None if result.vector is None else scaled_vector(point, scale)
    return result.certified_by(certificate, vector)


def _row_sums(part: Part, team: Team, alpha: Vector, loss: Loss, C: float) -> RowSums:
    return RowSums.of(part, alpha, loss, C, team)


def _recheck_group(
    inputs: Sequence[Any], state: GroupState, w: Vector, recomputed: Recomputed
) -> RecheckSums:
    pairs = zip(parts_of(inputs), state.alphas, strict=True)
    return functools.reduce(
        operator.iadd, (recheck_alpha(part, ALONE, alpha, w, recomputed) for part, alpha in pairs)
    )


@single_threaded_blas()
def recheck_alpha(
    part: Part, team: Team, alpha: Vector, w: Vector, recomputed: Recomputed
) -> RecheckSums:
    """The sums over one part, for a given alpha of its rows."""
    return _recheck(part, _margins(part, w), recomputed, lambda rows: np.asarray(alpha)[rows])


@single_threaded_blas()
def recheck_response(
    part: Part, team: Team, w: Vector, recomputed: Recomputed, response: Response | None
) -> RecheckSums:
    """The sums over one part, for an alpha that is a function of a vector; zero for None."""
    margins = _margins(part, w)
    if response is None:
        return _recheck(
            part, margins, recomputed, lambda rows: np.zeros(part.signed_weights[rows].size)
        )
    same = np.array_equal(response.w, w)
    margins_there = margins if same else _margins(part, response.w)

    def alpha(rows: slice) -> Vector:
        weights = np.abs(part.signed_weights[rows])
        return recomputed.response(margins_there(rows), weights, response.sigma)

    return _recheck(part, margins, recomputed, alpha)


def _recheck(part: Part, margins: OfRows, recomputed: Recomputed, alpha_of: OfRows) -> RecheckSums:
    n_rows = part.rows.n_rows
    signed, losses = np.zeros(n_rows), []
    # In slices that stay in a cache: fresh memory for all rows takes longer than the work.
    for first in range(0, n_rows, _SLICE):
        rows = slice(first, first + _SLICE)
        s, alpha = np.abs(part.signed_weights[rows]), alpha_of(rows)
        if not recomputed.is_feasible(alpha, s):
            raise CertificateRefutedError("the dual point is not feasible")
        losses.append(float(s @ recomputed.losses(margins(rows))))
        signed[rows] = np.sign(part.signed_weights[rows]) * alpha
    sides = [signed]
    if recomputed.free_intercept:
        sides = [np.maximum(signed, 0.0), np.minimum(signed, 0.0)]
    return RecheckSums(
        n_rows, math.fsum(losses), tuple(_sums_of_side(part, side, recomputed) for side in sides)
    )


def _sums_of_side(part: Part, signed: Vector, recomputed: Recomputed) -> SideSums:
    """The sums over rows, given label_k alpha_k."""
    rho, alpha = part.rows.intercept_scaling, np.abs(signed)
    w = np.asarray(part.rows.matrix.T @ signed, dtype=np.float64)
    if rho > 0:
        w = np.append(w, rho * signed.sum())
    penalty = recomputed.penalty(alpha, np.abs(part.signed_weights))
    return SideSums(float(alpha.sum()), penalty, w)


def _margins(part: Part, w: Vector) -> OfRows:
    """The function that returns w.y_k for a slice of the rows."""
    n, rho = part.rows.n_columns, part.rows.intercept_scaling
    products = part.rows.matrix @ w[:n]
    shift = rho * w[n] if rho > 0 else 0.0
    return lambda rows: np.sign(part.signed_weights[rows]) * (products[rows] + shift)
