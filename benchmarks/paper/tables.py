"""The tables: their systems and values of C, and the measurement of their cells."""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import certsvm
from benchmarks.data import DataSet
from benchmarks.paper import accurate, systems, unfolded
from benchmarks.paper.sets import Recipe
from benchmarks.paper.systems import SYSTEMS, Outcome, Task
from benchmarks.reference import Reference, fingerprint, reference
from benchmarks.store import Store
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows

# The optimum is computed a hundred times as accurately as this: to 1e-8.
_OPTIMUM = 1e-6
# Steps in which the scale of Pegasos vanishes, if it does.
_UNFOLDED_STEPS = 20_000


@dataclass(frozen=True)
class Table:
    """Systems at some values of C, to a true accuracy of one per cent."""

    number: int
    title: str
    C: tuple[float, ...]
    systems: tuple[str, ...]


_SGD = ("Pegasos", "SGD-r", "SGD-s", "SGD-m")
_LINEAR = ("SVMperf", "OCAS", "DCD", "MPU")
_SINGLE = (
    "SvmSgd, single", "SGD-QN, single", "SGD-QN, single, never shrinking", "SGD-m, single",
    "MPU, single",
)  # fmt: skip
_BEYOND = ("SGD-s, windows", "SGD-m, windows", "Newton", "auto")
TABLE_1 = Table(1, "SGD-s to a proved relative gap of 1e-5", (accurate.C,), ("SGD-s",))
TABLES = {
    table.number: table
    for table in (
        TABLE_1,
        Table(2, "SGD algorithms to 1 %", (1.0,), _SGD),
        Table(3, "linear SVMs to 1 %", (1.0,), _LINEAR),
        Table(4, "SGD algorithms to 1 %", (10.0,), _SGD),
        Table(5, "linear SVMs to 1 %", (10.0,), _LINEAR),
        Table(6, "SGD algorithms to 1 %", (0.05,), _SGD),
        Table(7, "linear SVMs to 1 %", (0.05,), _LINEAR),
        Table(8, "single precision, to 1 %", (1.0,), _SINGLE),
        Table(9, "what the paper could not show, to a proved 1 %", (0.05, 1.0, 10.0), _BEYOND),
    )
}


@dataclass(frozen=True)
class Settings:
    """How thoroughly to measure.

    Attributes
    ----------
    seconds : float
        That a run may take.
    accurate_seconds, optimum_seconds : float
        The same, for Table 1, and for the optimum of a set and a C.
    repeats : int
        Runs of which the best counts.
    """

    seconds: float
    accurate_seconds: float
    optimum_seconds: float
    repeats: int


@dataclass
class Bench:
    """The cells of one data set; what has been measured before comes from the store."""

    recipe: Recipe
    data: DataSet
    settings: Settings
    store: Store
    _problems: dict[tuple[float, bool], Problem] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._identity = f"{self.data.name} {fingerprint(self.data.X, self.data.y)}"

    def cells(self, table: Table) -> list[dict[str, Any]]:
        """All cells of a table."""
        return [self._cell(table, C, name) for C in table.C for name in table.systems]

    def describe(self) -> dict[str, Any]:
        """The data set in figures."""
        X = self.data.X
        return {
            "set": self.data.name,
            "of": self.recipe.of,
            "note": self.recipe.note,
            "rows": X.shape[0],
            "columns": X.shape[1],
            "nonzeros": int(X.nnz),
        }

    def _cell(self, table: Table, C: float, system: str) -> dict[str, Any]:
        first = table is TABLE_1
        seconds = self.settings.accurate_seconds if first else self.settings.seconds
        key = (
            f"{self._identity} table={table.number if first else 'other'} C={C:g} {system} "
            f"limit={seconds:g} repeats={self.settings.repeats}: {sources()}"
        )
        cell = self.store.get("cells", key)
        if cell is None:
            began = time.perf_counter()
            measured = self._table_1(C) if first else self._measure(C, system)
            cell = {"set": self.data.name, "C": C, "system": system} | measured
            self.store.put("cells", key, cell)
            took = time.perf_counter() - began
            _say(f"{self.data.name}, C = {C:g}, {system}: {summary(cell)} (took {took:.1f} s)")
        result: dict[str, Any] = cell
        return result

    def _table_1(self, C: float) -> dict[str, Any]:
        return accurate.measure(self._problem(C, single=False), self.settings.accurate_seconds)

    def _measure(self, C: float, name: str) -> dict[str, Any]:
        system = SYSTEMS[name]
        problem = self._problem(C, single=system.single)
        optimum = self._optimum(C)
        task = Task(problem, optimum, self.settings.seconds)
        try:
            outcome = system.measure(task, self.settings.repeats)
        except ValueError as refusal:
            outcome = Outcome(failure=str(refusal))
        cell: dict[str, Any] = {"parameter": system.parameter, "optimum gap": optimum.gap}
        cell |= outcome.describe()
        if name == "Pegasos":
            cell["unfolded fails at step"] = unfolded.steps_until_failure(
                self.data.X, self.data.y, C, _UNFOLDED_STEPS
            )
        return cell

    def _optimum(self, C: float) -> Reference:
        return reference(self.data, C, _OPTIMUM, self.settings.optimum_seconds, self.store)

    def _problem(self, C: float, *, single: bool) -> Problem:
        if (C, single) not in self._problems:
            X = self.data.X.astype(np.float32) if single else self.data.X
            self._problems = {(C, single): Problem(Rows(X), self.data.y, C=C)}
        return self._problems[C, single]


def summary(cell: dict[str, Any]) -> str:
    """A cell in one line."""
    if "failure" in cell:
        return str(cell["failure"])
    value = f"{cell['parameter']} {cell['value']:g}, " if cell.get("value") else ""
    accuracy = f", accuracy {cell['accuracy']:.1e}" if "accuracy" in cell else ""
    return f"{value}{cell['seconds']:.3g} s{accuracy}"


@cache
def sources() -> str:
    """Version and digest of everything measured: the library, and how systems are run."""
    digest = hashlib.sha256()
    files = sorted(Path(certsvm.__file__).parent.rglob("*.py"))
    for path in [*files, Path(systems.__file__), Path(accurate.__file__), Path(unfolded.__file__)]:
        digest.update(path.read_bytes())
    return f"{certsvm.__version__}+{digest.hexdigest()[:8]}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
