"""The algorithms, and the registry of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from certsvm.scalars import plain_numbers
from certsvm.solvers.auto import Auto
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start

if TYPE_CHECKING:
    from certsvm.solvers.block_dcd import BlockDCD
    from certsvm.solvers.dcd import DCD
    from certsvm.solvers.newton import Newton
    from certsvm.solvers.published.mpu import MPU
    from certsvm.solvers.published.norma import NORMA
    from certsvm.solvers.published.ocas import OCAS
    from certsvm.solvers.published.pegasos import Pegasos
    from certsvm.solvers.published.sgd_qn import SGDQN
    from certsvm.solvers.published.svmperf import SVMperf
    from certsvm.solvers.published.svmsgd import SvmSgd
    from certsvm.solvers.sgd_m import SGDm
    from certsvm.solvers.sgd_r import SGDr
    from certsvm.solvers.sgd_s import SGDs
    from certsvm.solvers.smoothed_newton import SmoothedNewton
    from certsvm.solvers.working_set import WorkingSet

# The class of each solver and its module, which is loaded when the solver is first used.
_HOMES = {
    "sgd-r": ("SGDr", "sgd_r"),
    "sgd-s": ("SGDs", "sgd_s"),
    "sgd-m": ("SGDm", "sgd_m"),
    "working-set": ("WorkingSet", "working_set"),
    "dcd": ("DCD", "dcd"),
    "block-dcd": ("BlockDCD", "block_dcd"),
    "newton": ("Newton", "newton"),
    "smoothed-newton": ("SmoothedNewton", "smoothed_newton"),
    "mpu": ("MPU", "published.mpu"),
    "ocas": ("OCAS", "published.ocas"),
    "svmperf": ("SVMperf", "published.svmperf"),
    "pegasos": ("Pegasos", "published.pegasos"),
    "norma": ("NORMA", "published.norma"),
    "svmsgd": ("SvmSgd", "published.svmsgd"),
    "sgd-qn": ("SGDQN", "published.sgd_qn"),
}


class _Registry(Mapping[str, type[Solver]]):
    """The classes of solvers by their names."""

    def __getitem__(self, name: str) -> type[Solver]:
        solver, module = _HOMES[name]
        return getattr(import_module(f"{__name__}.{module}"), solver)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


SOLVERS: Mapping[str, type[Solver]] = _Registry()


def __getattr__(attribute: str) -> Any:
    for name, (solver, _) in _HOMES.items():
        if solver == attribute:
            return SOLVERS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")


def make_solver(solver: str | Solver) -> Solver:
    """Return the solver of the given name, with default parameters, or a given solver itself.

    Examples
    --------
    >>> make_solver("sgd-s").name, make_solver("auto").name
    ('sgd-s', 'auto')
    """
    if isinstance(solver, Solver):
        if is_dataclass(solver) and (numbers := plain_numbers(solver)):
            solver = replace(solver, **numbers)
        return solver
    if solver == Auto.name:
        return Auto()
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    known = sorted((Auto.name, *SOLVERS))
    similar = get_close_matches(solver.lower(), known, 1) if isinstance(solver, str) else ()
    guess = f". Did you mean {similar[0]!r}?" if similar else ""
    raise ValueError(
        f"unknown solver {solver!r}: use {', '.join(map(repr, known))}, or a configured solver "
        f"object such as DCD(){guess}"
    )


__all__ = [
    "DCD", "MPU", "NORMA", "OCAS", "SGDQN", "SOLVERS", "Auto", "BlockDCD", "Epoch", "Newton",
    "Options", "Pegasos", "Run", "SGDm", "SGDr", "SGDs", "SVMperf", "SmoothedNewton", "Solver",
    "Start", "SvmSgd", "WorkingSet", "make_solver",
]  # fmt: skip
