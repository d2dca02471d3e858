"""Table 1: the epochs of SGD-s to a proved 1e-5, at C = 0.1.

J is computed when its estimate is within f eps of the dual bound. With a larger f it is computed
more often and the run stops sooner, up to a point: the paper raises f until T does not change any
more. The iterates do not depend on f, so one run with the largest f shows for each f where it would
have stopped.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from benchmarks.paper.systems import trained
from certsvm.parallel import single_threaded_blas
from certsvm.problem.memory import Problem
from certsvm.solvers import SGDs
from certsvm.training.history import History

C = 0.1
GAP = 1e-5
COEFFICIENTS = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0)


def measure(problem: Problem, seconds: float, gap: float = GAP) -> dict[str, Any]:
    """J, L and T for the least f from which on T does not change, and T for each f that stopped."""
    with single_threaded_blas():
        result = trained(problem, SGDs(published=True, f=COEFFICIENTS[-1]), gap, seconds)
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
    ends = {f: stopping_epoch(result.history, f, gap) for f in COEFFICIENTS}
    return cell | {"f": stable(ends), "T by f": {str(f): T for f, T in ends.items()}}


def stopping_epoch(history: History, f: float, gap: float) -> int | None:
    """T at the first pass whose estimate and whose J are low enough; None if there is none."""
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
