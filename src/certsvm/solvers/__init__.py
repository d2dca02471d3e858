"""The algorithms, and the registry by which they are called."""

from __future__ import annotations

from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.dcd import DCD
from certsvm.solvers.mpu import MPU
from certsvm.solvers.newton import Newton
from certsvm.solvers.norma import NORMA
from certsvm.solvers.ocas import OCAS
from certsvm.solvers.pegasos import Pegasos
from certsvm.solvers.sgd_m import SGDm
from certsvm.solvers.sgd_qn import SGDQN
from certsvm.solvers.sgd_r import SGDr
from certsvm.solvers.sgd_s import SGDs
from certsvm.solvers.svmperf import SVMperf
from certsvm.solvers.svmsgd import SvmSgd

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (SGDr, SGDs, SGDm, DCD, Newton, MPU, OCAS, SVMperf, Pegasos, NORMA, SvmSgd, SGDQN)
}

AUTO = DCD.name
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
    "DCD",
    "MPU",
    "NORMA",
    "OCAS",
    "SGDQN",
    "SOLVERS",
    "Epoch",
    "Newton",
    "Options",
    "Pegasos",
    "Run",
    "SGDm",
    "SGDr",
    "SGDs",
    "SVMperf",
    "Solver",
    "Start",
    "SvmSgd",
    "make_solver",
]  # fmt: skip
