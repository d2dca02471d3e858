"""An independent second computation of a certificate, on the workers.

Intervals that contain J of the answer and L of the dual point are computed from the rows as they
are now, by the arithmetic of verification, which shares nothing with training but the rows. Each
block has sums of its own, and they add up (docs/verification.md). An interval that is too wide to
tell, as float64 can be too coarse, refutes nothing. A certificate that contradicts an interval is
refuted: for example, a task that is repeated on another kind of processor rounds differently, and
alpha is no longer what the sums were taken of. The intervals are proofs themselves, so their ends
then replace it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import Response
from certsvm.dask.cluster import AlphaOnWorkers, ClusterProblem, Group
from certsvm.kernels.losses import loss_named
from certsvm.parallel import ALONE
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.solvers.smoothed_newton import alpha_of_part
from certsvm.training.result import Result
from certsvm.verification.interval_arithmetic import ProblemSums
from certsvm.verification.verify import REFUTED, Verification, row_blocks

# Of a recomputed bound, relative to it: other blocks of the same rows give other intervals.
_SLACK = 1e-12


class CertificateRefutedWarning(UserWarning):
    """A certificate was not true of the rows, and the one that is computed again replaces it."""


def recheck(problem: ClusterProblem, result: Result) -> Result:
    """The result, with the recomputed bounds if J or L is refuted.

    Each block is a task, as this takes longer than a pass of training. It counts once, whatever the
    groups are.
    """
    claimed, response = result.certificate, result.response
    alphas: list[tuple[Any, int]] = [(response, 0)] * problem.n_parts
    places = [problem.places[0]] * problem.n_parts
    for number, group in enumerate(problem.groups):
        for place, i in enumerate(group.members):
            places[i] = group.worker
            if isinstance(response, AlphaOnWorkers):
                alphas[i] = response.of_groups[number], place
    scaled = claimed
    if result.alpha is not None:
        # It is multiplied by the scale already.
        scaled = replace(claimed, scale=1.0)
        alphas = [(alpha, 0) for alpha in np.split(result.alpha, problem.firsts[1:-1])]
    w = problem.cluster.argument(result.w)
    tasks = [
        problem.task("recheck", Group(place, [i]), _sums_of_block, *alphas[i], w, scaled)
        for i, place in enumerate(places)
    ]
    sums: ProblemSums = problem.cluster.total(tasks, places)
    checked = Verification(claimed, sums.J(), sums.L(), sums.box_violation, None)
    if checked.verdict != REFUTED:
        return result
    c = checked.recomputed
    c = replace(c, primal_rounding=_SLACK * c.primal, dual_rounding=_SLACK * c.dual)
    proved = result.certified_by(c, vector=None)
    warnings.warn(
        f"the certificate ({claimed}) is not true of the rows: computed again, its J is "
        f"{checked.J}, and its L {checked.L}. It is replaced by what these intervals prove "
        f"({proved.certificate}). A worker on another kind of processor may have repeated the work "
        "of a lost one; or else the program is wrong.",
        CertificateRefutedWarning,
        stacklevel=2,
    )
    return proved


def _sums_of_block(
    parts: Sequence[Part], alpha: Any, place: int, w: Vector, claimed: Certificate
) -> ProblemSums:
    (part,) = parts
    if isinstance(alpha, list):
        alpha = alpha[place]
    elif isinstance(alpha, Response):
        alpha = alpha_of_part(part, ALONE, alpha, loss_named(claimed.loss), claimed.C)
    elif not isinstance(alpha, np.ndarray):
        # There is none, or none of this block.
        alpha = np.zeros(part.rows.n_rows)
    return interval_sums(part, alpha, w, claimed)


def interval_sums(part: Part, alpha: Vector, w: Vector, claimed: Certificate) -> ProblemSums:
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
    alpha = claimed.scale * alpha
    for first, rows in row_blocks(part.rows.matrix):
        span = slice(first, first + rows.n_rows)
        sums.add(rows, part.labels[span], part.weights[span], alpha[span])
    return sums
