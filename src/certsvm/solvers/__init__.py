"""The algorithms, and the registry by which they are called."""

from __future__ import annotations

from certsvm.solvers.base import Epoch, Run, Solver, Start
from certsvm.solvers.sgd_m import SGDm
from certsvm.solvers.sgd_r import SGDr
from certsvm.solvers.sgd_s import SGDs

SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in (SGDr, SGDs, SGDm)}

AUTO = SGDm.name
"""What ``solver="auto"`` stands for."""


def make_solver(solver: str | Solver) -> Solver:
    """Return a solver for its name, ``"auto"``, or itself.

    Examples
    --------
    >>> make_solver("sgd-s").name
    'sgd-s'
    """
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str):
        name = AUTO if solver == "auto" else solver
        if name in SOLVERS:
            return SOLVERS[name]()
    known = ", ".join(repr(name) for name in ("auto", *SOLVERS))
    raise ValueError(f"unknown solver {solver!r}: use {known}, or a configured solver object")


__all__ = [
    "AUTO",
    "SOLVERS",
    "Epoch",
    "Run",
    "SGDm",
    "SGDr",
    "SGDs",
    "Solver",
    "Start",
    "make_solver",
]
