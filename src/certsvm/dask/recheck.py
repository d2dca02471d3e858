"""An independent second computation of a certificate, on the workers.

Intervals that contain J of the answer and L of the dual point are computed from the rows as they
are now, by the arithmetic of verification, which shares nothing with training but the rows. Each
block has sums of its own, and they add up (docs/verification.md). A certificate that contradicts an
interval is refuted. An interval that is too wide to tell, as float64 can be too coarse, refutes
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import Response, RowSums, dual_bound, scaled_vector
from certsvm.dask.cluster import TRANSIENT, WorkerGoneError, add_up
from certsvm.dask.cocoa import AlphaOnWorkers, GroupState
from certsvm.dask.problem import ClusterProblem, parts_of
from certsvm.kernels.losses import Loss
from certsvm.parallel import Team
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.training.result import Result
from certsvm.verification.interval_arithmetic import ProblemSums, scaled_alpha
from certsvm.verification.verify import REFUTED, Verification, row_blocks
from certsvm.verification.witness import WeightsWitness


class CertificateRefutedError(RuntimeError):
    """A certificate is not true of the rows: the data changed, or the program is wrong."""


def recheck(problem: ClusterProblem, result: Result) -> Result:
    """Return the result, unless its J or L is refuted.

    If the best alpha was lost with a worker after the last round, the certificate and the vector of
    the dual point are replaced by those that the last copy of alpha proves.

    Raises
    ------
    CertificateRefutedError
        If J or L is not what the certificate says, or alpha is not in its box.
    """
    place, zeros = result.response, [np.zeros(size) for size in np.diff(problem.firsts)]
    if isinstance(place, AlphaOnWorkers):
        try:
            return _confirmed(problem, result, _alphas_at(problem, place, zeros))
        except TRANSIENT:
            copy = place.copy or zeros
            result, alphas = _proved_by(problem, copy, result), copy
    elif result.alpha is not None:
        alphas = np.split(result.alpha, problem.firsts[1:-1])
    else:
        alphas = zeros if place is None else [place] * problem.n_parts
    cluster = problem.cluster
    checked: Result = cluster.insistent(
        lambda: _confirmed(problem, result, alphas), problem.regroup
    )
    return checked


def _confirmed(problem: ClusterProblem, result: Result, alphas: Sequence[Any]) -> Result:
    """The result, unless it is refuted, given each block's alpha or what it is a function of.

    A block is a task of its own, as this takes longer than a pass of training.
    """
    cluster, groups, claimed = problem.cluster, problem.groups(), result.certificate
    # An alpha that was kept is multiplied by the scale already.
    scaled = claimed if result.alpha is None else replace(claimed, scale=1.0)
    w = cluster.send(result.w, groups)
    places = {i: group for group in groups for i in group.members}
    at = [places.get(i, groups[0]) for i in range(problem.n_parts)]
    tasks = [
        cluster.task(
            "recheck", _sums_of_block, problem.inputs([i]), alpha, w, scaled, at=group.worker
        )
        for i, (alpha, group) in enumerate(zip(alphas, at, strict=True))
    ]
    cluster.count(rounds=1)
    sums = add_up(cluster.results(cluster.begin(cluster.summed(tasks, at)), groups))
    checked = Verification(claimed, sums.J(), sums.L(), sums.box_violation, None)
    if checked.verdict == REFUTED:
        feasible = checked.box_violation == 0.0
        dual = f"its L is {checked.L}" if feasible else "its dual point is not feasible"
        raise CertificateRefutedError(
            f"the certificate ({claimed}) is not true of the rows as they are now: its J is "
            f"{checked.J}, {dual}. The data changed during training, or the program is wrong."
        )
    return result


def _sums_of_block(
    inputs: Sequence[Any], alpha: Vector | Response, w: Vector, claimed: Certificate
) -> ProblemSums:
    (part,) = parts_of(inputs)
    return interval_sums(part, alpha, w, claimed)


def interval_sums(
    part: Part, alpha: Vector | Response, w: Vector, claimed: Certificate
) -> ProblemSums:
    """The sums over one block; its alpha is yet to be multiplied by the scale of the certificate.

    Examples
    --------
    >>> from certsvm.problem.rows import Rows
    >>> part = Part(Rows(np.array([[2.0], [1.0]])), np.array([1.0, -1.0]))
    >>> claimed = Certificate(2.0, 1.5, target=0.1)
    >>> sums = interval_sums(part, np.ones(2), np.zeros(1), claimed)
    >>> print(sums.J(), "and", sums.L())
    from 2 to 2 and from 1.5 to 1.5
    """
    n, rho = part.rows.n_columns, part.rows.intercept_scaling
    claimed = replace(claimed, intercept_scaling=rho)
    sums = ProblemSums(claimed, w[:n], rho * float(w[n]) if rho > 0 else 0.0)
    for first, rows in row_blocks(part.rows.matrix):
        span = slice(first, first + rows.n_rows)
        signs, weights = part.labels[span], part.weights[span]
        if isinstance(alpha, Response):
            witness = WeightsWitness(alpha.w[np.newaxis], np.array([alpha.sigma]))
            # The certificate is about the alpha that training has computed.
            here, _, trained = witness.alpha_of(0, claimed, rows, signs, weights, first)
            point = here, trained
        else:
            point = scaled_alpha(alpha[span], claimed.scale)
        sums.add(rows, signs, weights, *point)
    return sums


def _alphas_at(
    problem: ClusterProblem, alpha: AlphaOnWorkers, default: Sequence[Vector]
) -> list[Any]:
    """Tasks that return the alpha of each block, which the workers keep."""
    if not alpha.states:
        raise WorkerGoneError("the best alpha was lost with a worker")
    tasks: list[Any] = list(default)
    for group, state in zip(alpha.groups, alpha.states, strict=True):
        for place, i in enumerate(group.members):
            tasks[i] = problem.cluster.task("alpha", _alpha_at, state, place, at=group.worker)
    return tasks


def _alpha_at(state: GroupState, place: int) -> Vector:
    return state.alphas[place]


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
