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
from certsvm.certificates.dual import Response
from certsvm.dask.cluster import Group
from certsvm.dask.cocoa import AlphaOnWorkers, GroupState
from certsvm.dask.problem import ClusterProblem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.training.result import Result
from certsvm.verification.interval_arithmetic import ProblemSums, scaled_alpha
from certsvm.verification.verify import REFUTED, Verification, row_blocks
from certsvm.verification.witness import WeightsWitness


class CertificateRefutedError(RuntimeError):
    """A certificate is not true of the rows: the data changed, or the program is wrong."""


def recheck(problem: ClusterProblem, result: Result) -> None:
    """Raise ``CertificateRefutedError`` if J or L is refuted, or alpha is not in its box.

    Each block is a task, as this takes longer than a pass of training.
    """
    claimed, cluster = result.certificate, problem.cluster
    # An alpha that was kept is multiplied by the scale already.
    scaled = claimed if result.alpha is None else replace(claimed, scale=1.0)
    w, response = cluster.argument(result.w), result.response
    # Each block counts once, whatever the groups are.
    groups = [Group(problem.groups[0].worker, [i]) for i in range(problem.n_parts)]
    alphas: list[tuple[Any, int]] = [(response, 0) for _ in groups]
    for number, group in enumerate(problem.groups):
        for place, i in enumerate(group.members):
            groups[i] = Group(group.worker, [i])
            if isinstance(response, AlphaOnWorkers):
                alphas[i] = response.states[number], place
    if result.alpha is not None:
        alphas = [(alpha, 0) for alpha in np.split(result.alpha, problem.firsts[1:-1])]
    tasks = [
        problem.task("recheck", group, _sums_of_block, *alpha, w, scaled)
        for group, alpha in zip(groups, alphas, strict=True)
    ]
    places = [group.worker for group in groups]
    sums: ProblemSums = cluster.total(tasks, places)
    checked = Verification(claimed, sums.J(), sums.L(), sums.box_violation, None)
    if checked.verdict == REFUTED:
        feasible = checked.box_violation == 0.0
        dual = f"its L is {checked.L}" if feasible else "its dual point is not feasible"
        raise CertificateRefutedError(
            f"the certificate ({claimed}) is not true of the rows as they are now: its J is "
            f"{checked.J}, {dual}. The data changed during training, or the program is wrong."
        )


def _sums_of_block(
    parts: Sequence[Part], alpha: Any, place: int, w: Vector, claimed: Certificate
) -> ProblemSums:
    (part,) = parts
    if isinstance(alpha, GroupState):
        alpha = alpha.alphas[place]
    elif not isinstance(alpha, Response | np.ndarray):
        # There is none, or none of this block.
        alpha = np.zeros(part.rows.n_rows)
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
