"""The algorithms, and the registry by which they are called."""

from __future__ import annotations

from certsvm.solvers.auto import Auto
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
from certsvm.solvers.smoothed_newton import SmoothedNewton
from certsvm.solvers.svmperf import SVMperf
from certsvm.solvers.svmsgd import SvmSgd
from certsvm.solvers.working_set import WorkingSet

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        SGDr,
        SGDs,
        SGDm,
        WorkingSet,
        DCD,
        Newton,
        SmoothedNewton,
        MPU,
        OCAS,
        SVMperf,
        Pegasos,
        NORMA,
        SvmSgd,
        SGDQN,
    )
}


def make_solver(solver: str | Solver) -> Solver:
    """Return a solver for its name, ``"auto"``, or itself.

    Examples
    --------
    >>> make_solver("sgd-s").name, make_solver("auto").name
    ('sgd-s', 'auto')
    """
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str):
        if solver == Auto.name:
            return Auto()
        if solver in SOLVERS:
            return SOLVERS[solver]()
    known = ", ".join(repr(name) for name in (Auto.name, *SOLVERS))
    raise ValueError(f"unknown solver {solver!r}: use {known}, or a configured solver object")


__all__ = [
    "DCD",
    "MPU",
    "NORMA",
    "OCAS",
    "SGDQN",
    "SOLVERS",
    "Auto",
    "Epoch",
    "Newton",
    "Options",
    "Pegasos",
    "Run",
    "SGDm",
    "SGDr",
    "SGDs",
    "SVMperf",
    "SmoothedNewton",
    "Solver",
    "Start",
    "SvmSgd",
    "WorkingSet",
    "make_solver",
]  # fmt: skip
