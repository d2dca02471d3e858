"""What benchopt measured, in short: ``python -m benchmarks.benchopt.summary RESULT.parquet ...``.

For each data set, C and solver: the seconds to objective values within some relative distances of
the least value that any solver had there (the fastest point that is as good, median over the
repetitions; nothing if a repetition has none), and how near the solver came at all. The seconds
are those of ``run``, as benchopt takes them.
"""

from __future__ import annotations

import argparse
import json
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
    """Those of the packages that are there."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
