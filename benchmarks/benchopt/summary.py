"""A summary of benchopt's results: ``python -m benchmarks.benchopt.summary RESULT.parquet ...``.

For each data set, C and solver it has the seconds to several relative accuracies and the accuracy
reached. Accuracies are relative to the least objective value of any solver. The time to an accuracy
is that of the fastest point that is as good, as a median over the repetitions; it is missing if a
repetition has no such point. Times are those of ``run``, measured by benchopt.
"""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from benchmarks import machine

ACCURACIES = (1e-2, 1e-4, 1e-6)
RESULTS = Path(__file__).parents[1] / "results"


def summarise(points: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each curve.

    Parameters
    ----------
    points : DataFrame
        One row for each point of a curve, with benchopt's columns.
    """
    rows = []
    for (data, C), problem in points.groupby(["dataset_name", "p_obj_C"]):
        best = float(problem["objective_value"].min())
        for solver, curve in problem.groupby("solver_name"):
            least = float(curve["objective_value"].min())
            row = {"data": data, "C": float(C), "solver": solver}
            row |= {
                f"s to {accuracy:g}": _seconds(curve, best, accuracy) for accuracy in ACCURACIES
            }
            rows.append(
                row
                | {
                    "repetitions": int(curve["idx_rep"].nunique()),
                    "points": len(curve),
                    "objective": least,
                    "best seen": best,
                    "above it": float(f"{least / best - 1:.1e}"),
                }
            )
    return rows


def _seconds(curve: pd.DataFrame, best: float, accuracy: float) -> float | None:
    repetitions = curve["idx_rep"].nunique()
    enough = curve[curve["objective_value"] <= (1 + accuracy) * best]
    fastest = enough.groupby("idx_rep")["time"].min()
    return round(float(median(fastest)), 4) if len(fastest) == repetitions else None


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.benchopt.summary")
    parser.add_argument("results", type=Path, nargs="+", help="what benchopt wrote")
    parser.add_argument("--out", type=Path, default=RESULTS / "benchopt.json")
    parsed = parser.parse_args(arguments)
    table = summarise(pd.concat([pd.read_parquet(result) for result in parsed.results]))
    described = machine.describe() | _versions("benchopt", "certsvm")
    parsed.out.write_text(json.dumps({"machine": described, "table": table}, indent=1) + "\n")


def _versions(*names: str) -> dict[str, str]:
    """The versions of the packages that are installed."""
    versions = {}
    for name in names:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


if __name__ == "__main__":
    main()
