"""Table 1: the epochs to a proved 1e-5, at C = 0.1.

J is computed when its estimate is within f eps of the dual bound. With a larger f it is computed
more often and the run stops sooner, up to a point: the paper raises f until T does not change any
more. The iterates do not depend on f, so one run with the largest f, here 10, shows for each f
where it would have stopped. If T still changes up to 10, a larger f could stop sooner yet.

SGD-m serves the claim that multiple updates take more epochs, and windows show what they gain.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from benchmarks.paper.systems import AS_PUBLISHED, Look, published, trained
from certsvm.certificates.certificate import relative_gap
from certsvm.problem.problems import Problem
from certsvm.resources import single_threaded_blas
from certsvm.solvers import SGDm, SGDs

C = 0.1
GAP = 1e-5
COEFFICIENTS = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
SOLVERS = {
    "SGD-s": SGDs(**AS_PUBLISHED),
    "SGD-m": SGDm(**AS_PUBLISHED),
    "SGD-s, windows": SGDs(f=COEFFICIENTS[-1]),
}


def measure(
    problem: Problem, system: str, seconds: float, seed: int, gap: float = GAP
) -> dict[str, Any]:
    """J, L and T; as published, also T for each f, and the least f from which on T is the same."""
    solver = SOLVERS[system]
    with single_threaded_blas():
        if solver.windows:
            result = trained(problem, solver, gap, seconds, seed)
            J, L = result.certificate.primal, result.certificate.dual
            epochs, took = result.epochs, result.history[-1].seconds
        else:
            looks = list(published(problem, solver, gap, COEFFICIENTS[-1], seconds, seed))
            _, epochs, _, L, J, took = looks[-1]
    reached = relative_gap(J, L)
    cell: dict[str, Any] = {"J": J, "L": L, "gap": reached, "epochs": epochs, "seconds": took}
    if not reached <= gap:
        return cell | {"failure": f"not reached in {epochs:,} epochs"}
    if solver.windows:
        return cell
    ends = {f: stopping_epoch(looks, f, gap) for f in COEFFICIENTS}
    return cell | {"f": stable(ends), "T by f": {str(f): T for f, T in ends.items()}}


def stopping_epoch(looks: Iterable[Look], f: float, gap: float) -> int | None:
    """T at the first pass whose estimate and whose J are low enough; None if there is none."""
    for look in looks:
        if (
            look.dual > 0.0
            and look.guess / look.dual - 1.0 <= f * gap
            and look.primal / look.dual - 1.0 <= gap
        ):
            return look.epochs
    return None


def stable(ends: dict[float, int | None]) -> float | None:
    """The smallest coefficient from which on nothing changes; None if the last one still did."""
    f = None
    for lower, higher in reversed(list(pairwise(ends))):
        if ends[lower] != ends[higher]:
            break
        f = lower
    return f
