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
from certsvm.certificates.dual import Response, RowSums, best_scale, dual_bound
from certsvm.certificates.verification import RECOMPUTATION_TOLERANCE
from certsvm.dask.cluster import TRANSIENT, WorkerGoneError, add_up
from certsvm.dask.cocoa import AlphaOnWorkers, GroupState
from certsvm.dask.problem import ClusterProblem, parts_of
from certsvm.kernels.losses import Loss
from certsvm.parallel import ALONE, Team, single_threaded_blas
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.training.result import Result

# Rows at a time.
_SLICE = 8192

OfRows: TypeAlias = Callable[[slice], Vector]


class CertificateRefutedError(RuntimeError):
    """A certificate could not be confirmed: the data changed, or the program is wrong."""


@dataclass
class RecheckSums:
    """Sums over the rows of a part: their number, their losses, alpha_k and alpha_k y_k."""

    n_rows: int
    loss: float
    alpha_sum: float
    w: Vector

    def __iadd__(self, other: RecheckSums) -> RecheckSums:
        self.n_rows += other.n_rows
        self.loss += other.loss
        self.alpha_sum += other.alpha_sum
        self.w = self.w + other.w
        return self


def recheck(problem: ClusterProblem, result: Result) -> Result:
    """Return the result if its J and L are confirmed.

    If the best alpha was lost with a worker after the last round, the certificate is replaced by
    the one that the last copy of alpha proves.

    Raises
    ------
    CertificateRefutedError
        If J is larger or L smaller than the certificate says, or rows are missing.
    """
    certificate, response, w, C = result.certificate, result.response, result.w, problem.C
    if isinstance(response, AlphaOnWorkers):
        try:
            sums = _recheck_states(problem, response, w)
        except TRANSIENT:
            sizes = np.diff(problem.firsts)
            copy = response.copy or [np.zeros(size) for size in sizes]
            sums = problem.total(recheck_alpha, w, C, each=copy)
            certificate = _proved_by(problem, copy, certificate)
    elif result.alpha is not None:
        each = np.split(result.alpha, problem.firsts[1:-1])
        sums = problem.total(recheck_alpha, w, C, each=each)
    else:
        sums = problem.total(recheck_response, w, C, response)
    errors = _errors(problem, certificate, w, sums)
    if errors:
        raise CertificateRefutedError(
            f"the certificate ({certificate}) cannot be confirmed: {'; '.join(errors)}"
        )
    return replace(result, certificate=certificate)


def _errors(
    problem: ClusterProblem, certificate: Certificate, w: Vector, sums: RecheckSums
) -> list[str]:
    errors = []
    if sums.n_rows != problem.n_rows:
        errors.append(f"there are {sums.n_rows} rows, not {problem.n_rows}")
    J = 0.5 * float(w @ w) + problem.C * sums.loss
    # Each of the two computations may be off by its allowance.
    slack = RECOMPUTATION_TOLERANCE
    high = (1.0 + slack) * certificate.primal + 2.0 * certificate.primal_rounding
    if not (math.isfinite(J) and high >= J):
        errors.append(f"J is {J!r}, not {certificate.primal!r}")
    square = float(sums.w @ sums.w)
    scale = best_scale(sums.alpha_sum, square)
    L = scale * sums.alpha_sum - 0.5 * scale * scale * square
    if not (1.0 - slack) * certificate.dual - 2.0 * certificate.dual_rounding <= L:
        errors.append(f"L is {L!r}, not {certificate.dual!r}")
    return errors


def _recheck_states(problem: ClusterProblem, alpha: AlphaOnWorkers, w: Vector) -> RecheckSums:
    """The sums for the alpha that the workers keep."""
    cluster, groups = problem.cluster, alpha.groups
    if not alpha.states:
        raise WorkerGoneError("the best alpha was lost with a worker")
    sent = cluster.send(w, groups)
    tasks = [
        cluster.task(
            "recheck-alpha", _recheck_group, problem.inputs(group.members), state, sent, problem.C,
            at=group.worker,
        )
        for group, state in zip(groups, alpha.states, strict=True)
    ]  # fmt: skip
    sums: RecheckSums = add_up(
        cluster.results(cluster.begin(cluster.summed(tasks, groups)), groups)
    )
    return sums


def _proved_by(
    problem: ClusterProblem, alphas: Sequence[Vector], certificate: Certificate
) -> Certificate:
    """The certificate with the dual bound of another alpha, one array for each part."""
    sums: RowSums = problem.total(_row_sums, problem.loss, problem.C, each=alphas)
    bound, scale = dual_bound(sums.point(certificate.bound))
    return replace(certificate, dual=bound.value, dual_rounding=bound.rounding, scale=scale)


def _row_sums(part: Part, team: Team, alpha: Vector, loss: Loss, C: float) -> RowSums:
    return RowSums.of(part, alpha, loss, C, team)


def _recheck_group(inputs: Sequence[Any], state: GroupState, w: Vector, C: float) -> RecheckSums:
    pairs = zip(parts_of(inputs), state.alphas, strict=True)
    return functools.reduce(
        operator.iadd, (recheck_alpha(part, ALONE, alpha, w, C) for part, alpha in pairs)
    )


@single_threaded_blas()
def recheck_alpha(part: Part, team: Team, alpha: Vector, w: Vector, C: float) -> RecheckSums:
    """The sums over one part, for a given alpha of its rows."""
    return _recheck(part, _margins(part, w), C, lambda rows: np.asarray(alpha)[rows])


@single_threaded_blas()
def recheck_response(
    part: Part, team: Team, w: Vector, C: float, response: Response | None
) -> RecheckSums:
    """The sums over one part, for an alpha that is a function of a vector; zero for None."""
    margins = _margins(part, w)
    if response is None:
        return _recheck(part, margins, C, lambda rows: np.zeros(part.signed_weights[rows].size))
    same = np.array_equal(response.w, w)
    margins_there = margins if same else _margins(part, response.w)

    def alpha(rows: slice) -> Vector:
        s = np.abs(part.signed_weights[rows])
        unclipped = 0.5 * C * s + response.sigma * s * (1.0 - margins_there(rows))
        clipped: Vector = np.clip(unclipped, 0.0, C * s)
        return clipped

    return _recheck(part, margins, C, alpha)


def _recheck(part: Part, margins: OfRows, C: float, alpha_of: OfRows) -> RecheckSums:
    X, rho, n_rows = part.rows.matrix, part.rows.intercept_scaling, part.rows.n_rows
    signed, losses, alpha_sums = np.zeros(n_rows), [], []
    # In slices that stay in a cache: fresh memory for all rows takes longer than the work.
    for first in range(0, n_rows, _SLICE):
        rows = slice(first, first + _SLICE)
        s, alpha = np.abs(part.signed_weights[rows]), alpha_of(rows)
        if not ((alpha >= 0.0) & (alpha <= C * s)).all():
            raise CertificateRefutedError("the dual point is not feasible")
        losses.append(float(s @ np.maximum(0.0, 1.0 - margins(rows))))
        alpha_sums.append(float(alpha.sum()))
        signed[rows] = np.sign(part.signed_weights[rows]) * alpha
    w_alpha = np.asarray(X.T @ signed, dtype=np.float64)
    if rho > 0:
        w_alpha = np.append(w_alpha, rho * signed.sum())
    return RecheckSums(n_rows, math.fsum(losses), math.fsum(alpha_sums), w_alpha)


def _margins(part: Part, w: Vector) -> OfRows:
    """The function that returns w.y_k for a slice of the rows."""
    n, rho = part.rows.n_columns, part.rows.intercept_scaling
    products = part.rows.matrix @ w[:n]
    shift = rho * w[n] if rho > 0 else 0.0
    return lambda rows: np.sign(part.signed_weights[rows]) * (products[rows] + shift)
