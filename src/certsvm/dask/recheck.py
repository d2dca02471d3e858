"""The certificate once more, from scratch, on the workers.

The answer's J and the dual point's L are computed again with NumPy and SciPy from the rows as they
are now, by tasks that share nothing with those of the training but the rows.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certsvm.certificates.agreement import RECOMPUTATION_TOLERANCE
from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import Response, RowSums, best_scale, dual_bound
from certsvm.dask.cluster import TRANSIENT, WorkerGoneError, add_up
from certsvm.dask.problem import ClusterProblem, parts_of, sums_of
from certsvm.parallel import ALONE, Team
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.training.loop import Result

# Rows at a time.
_SLICE = 8192


class CertificateRefutedError(RuntimeError):
    """What was proved cannot be confirmed: the data changed, or the program is wrong."""


@dataclass
class Sums:
    """Of a part; those of parts are added."""

    n_rows: int
    loss: float
    alpha_sum: float
    w: Vector

    def __iadd__(self, other: Sums) -> Sums:
        self.n_rows += other.n_rows
        self.loss += other.loss
        self.alpha_sum += other.alpha_sum
        self.w = self.w + other.w
        return self


def recheck(problem: ClusterProblem, result: Result) -> Result:
    """The result, if J and L are what its certificate says, or better.

    Where a worker was lost with the best alpha after the last round, the certificate is that of
    the last copy of alpha.

    Raises
    ------
    CertificateRefutedError
        If they are not.
    """
    certificate = result.certificate
    sums, exact = _sums(problem, result)
    J = 0.5 * float(result.w @ result.w) + problem.C * sums.loss
    wrong = []
    if sums.n_rows != problem.n_rows:
        wrong.append(f"there are {sums.n_rows} rows, not {problem.n_rows}")
    # Each of the two computations may be off by its allowance.
    slack = RECOMPUTATION_TOLERANCE
    if not (1.0 + slack) * certificate.primal + 2.0 * certificate.primal_rounding >= J:
        wrong.append(f"J is {J!r}, not {certificate.primal!r}")
    B = float(sums.w @ sums.w)
    s = best_scale(sums.alpha_sum, B)
    L = s * sums.alpha_sum - 0.5 * s * s * B
    if not exact:
        result = replace(result, certificate=_of_the_copy(problem, certificate))
    elif not (1.0 - slack) * certificate.dual - 2.0 * certificate.dual_rounding <= L:
        wrong.append(f"L is {L!r}, not {certificate.dual!r}")
    if wrong or not math.isfinite(J):
        raise CertificateRefutedError(
            f"the certificate ({certificate}) cannot be confirmed: {'; '.join(wrong)}"
        )
    return result


def _sums(problem: ClusterProblem, result: Result) -> tuple[Sums, bool]:
    """The sums over all rows, and whether they are of the alpha that the certificate is about."""
    best = problem.best_states
    given = result.w, result.response, problem.C
    if best is None or result.alpha is not None:
        each = None if result.alpha is None else np.split(result.alpha, problem.firsts[1:-1])
        sums: Sums = problem.total(recheck_part, *given, each=each)
        return sums, True
    cluster = problem.cluster
    try:
        if not best.states:
            raise WorkerGoneError("the best alpha was lost with a worker")
        sent = [cluster.send(thing, best.groups) for thing in given]
        tasks = [
            cluster.task(
                "recheck-part", _recheck_group, problem.inputs(group.members), state,
                *sent, at=group.worker,
            )
            for group, state in zip(best.groups, best.states, strict=True)
        ]  # fmt: skip
        futures = cluster.begin(cluster.summed(tasks, best.groups))
        return add_up(cluster.results(futures, best.groups)), True
    except TRANSIENT:
        return problem.total(recheck_part, *given, each=_copy_of(problem)), False


def _copy_of(problem: ClusterProblem) -> list[Vector]:
    """The last copy of alpha; zero if there is none."""
    best = problem.best_states
    if best is None or best.copy is None:
        return [np.zeros(size) for size in problem.sizes]
    return best.copy


def _of_the_copy(problem: ClusterProblem, certificate: Certificate) -> Certificate:
    """The certificate with the dual bound of the copy, computed with its rounding."""
    sums: RowSums = problem.total(sums_of, problem.loss, problem.C, each=_copy_of(problem))
    bound, scale = dual_bound(sums.point(certificate.bound))
    return replace(certificate, dual=bound.value, dual_rounding=bound.rounding, scale=scale)


def _recheck_group(inputs: Sequence[Any], state: Any, *given: Any) -> Sums:
    pairs = zip(parts_of(inputs), state.alphas, strict=True)
    return functools.reduce(
        operator.iadd, (recheck_part(part, ALONE, alpha, *given) for part, alpha in pairs)
    )


def recheck_part(part: Part, team: Team, *given: Any) -> Sums:
    """J's losses at w, and what L needs, of one part."""
    own, (w, response, C) = given[:-3], given[-3:]
    X, signed_weights = part.rows.matrix, part.signed_weights
    rho, n, n_rows = part.rows.intercept_scaling, part.rows.n_columns, part.rows.n_rows

    def products(vector: Vector) -> Vector:
        values: Vector = X @ vector[:n]
        return values

    of_w = products(w)
    others = of_w
    if isinstance(response, Response) and not np.array_equal(response.w, w):
        others = products(response.w)
    signed, losses, alpha_sums = np.zeros(n_rows), [], []
    # In slices that stay in a cache: fresh memory for all rows takes longer than the work.
    for first in range(0, n_rows, _SLICE):
        some = slice(first, first + _SLICE)
        signs, s = np.sign(signed_weights[some]), np.abs(signed_weights[some])
        shift = rho * w[n] if rho > 0 else 0.0
        losses.append(float(s @ np.maximum(0.0, 1.0 - signs * (of_w[some] + shift))))
        alpha = np.zeros(s.size)
        if own:
            alpha = np.asarray(own[0])[some]
            if (alpha < 0.0).any() or (alpha > C * s).any():
                raise CertificateRefutedError("the dual point is not feasible")
        elif isinstance(response, Response):
            shift = rho * response.w[n] if rho > 0 else 0.0
            short = 1.0 - signs * (others[some] + shift)
            alpha = np.clip(0.5 * C * s + response.sigma * s * short, 0.0, C * s)
        alpha_sums.append(float(alpha.sum()))
        signed[some] = signs * alpha
    w_alpha = np.asarray(X.T @ signed, dtype=np.float64)
    if rho > 0:
        w_alpha = np.append(w_alpha, rho * signed.sum())
    return Sums(n_rows, math.fsum(losses), math.fsum(alpha_sums), w_alpha)
