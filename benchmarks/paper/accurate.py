"""Table 1: how many epochs SGD-s takes to a proved 1e-5, at C = 0.1.

J is computed when the guess at it is within f eps of the dual bound. With a larger f it is
computed more often, and the end is noticed sooner, up to a point: the paper raises f until T does
not change any more. The iterates do not depend on f, so one run with the largest f tells for all
whether they would have ended there, or later.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from benchmarks.paper.systems import NO_LIMIT, SEED, uninterrupted
from certsvm.parallel import single_threaded_blas
from certsvm.problem.memory import Problem
from certsvm.solvers import SGDs
from certsvm.training.history import History
from certsvm.training.loop import train

C = 0.1
GAP = 1e-5
COEFFICIENTS = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0)


def measure(problem: Problem, seconds: float, gap: float = GAP) -> dict[str, Any]:
    """J, L and T for the f from which on T does not change; T for all f that have ended by then."""
    with single_threaded_blas():
        result = uninterrupted(
            train(
                problem, SGDs(published=True, f=COEFFICIENTS[-1]), tol=gap, max_iter=NO_LIMIT,
                max_time=seconds, seed=SEED,
            )
        )  # fmt: skip
    certificate, last = result.certificate, result.history[-1]
    cell: dict[str, Any] = {
        "J": certificate.primal,
        "L": certificate.dual,
        "gap": certificate.relative_gap,
        "T": result.epochs,
        "seconds": last.seconds,
    }
    if not certificate.relative_gap <= gap:
        return cell | {"failure": f"not reached in {result.passes:,} passes"}
    ends = {f: end(result.history, f, gap) for f in COEFFICIENTS}
    return cell | {"f": stable(ends), "T by f": {str(f): T for f, T in ends.items()}}


def end(history: History, f: float, gap: float) -> int | None:
    """T at the first pass whose guess lets J be computed, and whose J is good enough.

    None if there is no such pass yet.
    """
    for record in history:
        if record.dual <= 0.0 or math.isnan(record.primal):
            continue
        if (
            record.primal_estimate / record.dual - 1.0 <= f * gap
            and record.primal / record.dual - 1.0 <= gap
        ):
            return record.epochs
    return None


def stable(ends: dict[float, int | None]) -> float:
    """The smallest coefficient from which on nothing changes."""
    f = list(ends)[-1]
    for lower, higher in reversed(list(pairwise(ends))):
        if ends[lower] != ends[higher]:
            break
        f = lower
    return f
