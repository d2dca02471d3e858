"""The algorithms, and the registry of their names."""

from __future__ import annotations

from certsvm.solvers.auto import Auto
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.block_dcd import BlockDCD
from certsvm.solvers.dcd import DCD
from certsvm.solvers.newton import Newton
from certsvm.solvers.published.cutting_planes import OCAS, SVMperf
from certsvm.solvers.published.mpu import MPU
from certsvm.solvers.published.scaled_sgd import NORMA, Pegasos, SvmSgd
from certsvm.solvers.published.sgd_qn import SGDQN
from certsvm.solvers.sgd_m import SGDm
from certsvm.solvers.sgd_r import SGDr
from certsvm.solvers.sgd_s import SGDs
from certsvm.solvers.smoothed_newton import SmoothedNewton
from certsvm.solvers.working_set import WorkingSet

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        SGDr, SGDs, SGDm, WorkingSet, DCD, BlockDCD, Newton, SmoothedNewton,
        MPU, OCAS, SVMperf, Pegasos, NORMA, SvmSgd, SGDQN,
    )
}  # fmt: skip


def make_solver(solver: str | Solver) -> Solver:
    """Return the solver of the given name, with default parameters, or a given solver itself.

    Examples
    --------
    >>> make_solver("sgd-s").name, make_solver("auto").name
    ('sgd-s', 'auto')
    """
    if isinstance(solver, Solver):
        return solver
    known: dict[str, type[Solver]] = {Auto.name: Auto, **SOLVERS}
    if isinstance(solver, str) and solver in known:
        return known[solver]()
    names = ", ".join(map(repr, sorted(known)))
    raise ValueError(f"unknown solver {solver!r}: use {names}, or an object such as DCD()")


__all__ = [
    "DCD", "MPU", "NORMA", "OCAS", "SGDQN", "SOLVERS", "Auto", "BlockDCD", "Epoch", "Newton",
    "Options", "Pegasos", "Run", "SGDm", "SGDr", "SGDs", "SVMperf", "SmoothedNewton", "Solver",
    "Start", "SvmSgd", "WorkingSet", "make_solver",
]  # fmt: skip
