"""The tables: their systems and values of C, and how the runs of several seeds make a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmarks.paper import accurate


@dataclass(frozen=True)
class Table:
    """Systems at some values of C.

    ``kind`` tells what is measured: the time to a true accuracy of one per cent, the epochs to a
    proved gap, or the length of w.
    """

    number: int
    title: str
    C: tuple[float, ...]
    systems: tuple[str, ...]
    kind: Literal["accuracy", "gap", "length"] = "accuracy"

    def limited_to(self, systems: Sequence[str]) -> Table:
        """The table with these of its systems; all, if there are none."""
        chosen = tuple(system for system in self.systems if system in systems)
        return replace(self, systems=chosen) if systems else self


_SGD = ("Pegasos", "SGD-r", "SGD-s", "SGD-m")
_LINEAR = ("SVMperf", "OCAS", "DCD", "MPU")
_SINGLE = (
    "SvmSgd, single", "SGD-QN, single", "SGD-QN, single, corrected", "SGD-m, single", "MPU, single",
)  # fmt: skip
_BEYOND = ("SGD-s, windows", "SGD-m, windows", "Newton", "auto")
TABLES = {
    table.number: table
    for table in (
        Table(1, "to a proved relative gap of 1e-5", (accurate.C,), (*accurate.SOLVERS,), "gap"),
        Table(2, "SGD algorithms to 1 %", (1.0,), _SGD),
        Table(3, "linear SVMs to 1 %", (1.0,), _LINEAR),
        Table(4, "SGD algorithms to 1 %", (10.0,), _SGD),
        Table(5, "linear SVMs to 1 %", (10.0,), _LINEAR),
        Table(6, "SGD algorithms to 1 %", (0.05,), _SGD),
        Table(7, "linear SVMs to 1 %", (0.05,), _LINEAR),
        Table(8, "single precision, to 1 %", (1.0,), _SINGLE),
        Table(9, "what the paper could not show, to a proved 1 %", (0.05, 1.0, 10.0), _BEYOND),
        Table(10, "the length of w", (0.05, 1.0, 10.0), ("SGD-s",), "length"),
    )
}
TABLE_1 = TABLES[1]


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
        Runs of a seed of which the best counts.
    seeds : int
        The number of seeds; Table 1 has only the first.
    jobs : int
        Runs at a time.
    """

    seconds: float
    accurate_seconds: float
    optimum_seconds: float
    repeats: int
    seeds: int
    jobs: int = 1


def combined(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The run with the median time, the ranges, and how many seeds there were and failed.

    A failure takes forever. Of an even number the slower run in the middle is taken, so that a cell
    fails if half of its runs do.
    """
    by_time = sorted(runs, key=seconds)
    cell = dict(by_time[len(runs) // 2]) | {"seeds": len(runs)}
    reached = [run for run in runs if "failure" not in run]
    for key in ("seconds", "epochs"):
        values = [run[key] for run in reached if key in run]
        if values:
            cell[f"{key} range"] = [min(values), max(values)]
    if len(reached) < len(runs):
        cell["failures"] = len(runs) - len(reached)
    for key in ("R / lambda", "proposition", "after one pass", "after ten passes"):
        if key in cell:
            cell[key] = max(run[key] for run in runs)
    steps = [run["unfolded fails at step"] for run in runs if "unfolded fails at step" in run]
    if steps:
        cell["unfolded fails at step"] = steps
    return cell


def seconds(run: dict[str, Any]) -> float:
    """The time of a run, or of a cell; infinite if it failed."""
    return math.inf if "failure" in run else float(run.get("seconds", 0.0))


def summary(cell: dict[str, Any]) -> str:
    """A run or a cell in one line."""
    if "failure" in cell:
        return str(cell["failure"])
    if "after one pass" in cell:
        return f"|w| sqrt(lambda) = {cell['after one pass']:.3g} after one pass"
    value = f"{cell['parameter']} {cell['value']:g}, " if cell.get("value") else ""
    accuracy = f", accuracy {cell['accuracy']:.1e}" if "accuracy" in cell else ""
    return f"{value}{cell['seconds']:.3g} s{accuracy}"
