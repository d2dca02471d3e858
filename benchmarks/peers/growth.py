"""How our time grows with the rows and with the columns, for a fixed number of passes.

Text-like data, generated; one thread. A pass costs a fixed time per stored value as long as w stays
in the same level of the cache, so the curves should be flat. A step of newton also forms and solves
a system as large as the number of columns: its curve over the columns need not be.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.peers import pictures
from certsvm.demo import text_like
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import make_solver
from certsvm.training.loop import train

FACTORS = (1, 2, 4, 8)
SIZES: dict[str, dict[str, int]] = {
    "working-set": {"n_documents": 20_000, "n_words": 10_000, "length": 85},
    "newton": {"n_documents": 20_000, "n_words": 100, "length": 20},
}
PASSES = 10

Sizes = dict[str, dict[str, int]]


def write(folder: Path, repeats: int, sizes: Sizes = SIZES) -> None:
    """growth.md, growth.json and growth.png."""
    table = list(run(repeats, sizes))
    folder.mkdir(parents=True, exist_ok=True)
    machine_used = machine.describe()
    results = {"machine": machine_used, "table": table}
    (folder / "growth.json").write_text(json.dumps(results, indent=1) + "\n")
    where = ", ".join(f"{key} {value}" for key, value in machine_used.items())
    columns = list(table[0])
    lines = ["# growth", "", str(__doc__).strip(), "", f"Measured on: {where}.", ""]
    lines += ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(str(row[column]) for column in columns) + " |" for row in table]
    (folder / "growth.md").write_text("\n".join([*lines, ""]))
    pictures.growth(table, folder / "growth.png")


def run(repeats: int, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """A row of the table for each solver, each thing that grows, and each factor."""
    for solver, size in sizes.items():
        for growing, parameter in (("rows", "n_documents"), ("columns", "n_words")):
            for factor in FACTORS:
                grown = size | {parameter: factor * size[parameter]}
                row = {"solver": solver, "growing": growing, "times": factor}
                row |= _measure(solver, grown, repeats)
                print(row, file=sys.stderr, flush=True)
                yield row


def _measure(solver: str, size: dict[str, int], repeats: int) -> dict[str, Any]:
    X, y = text_like(**size)
    problem = Problem(Rows(X), y, C=1.0)
    best = float("inf")
    with import_module("threadpoolctl").threadpool_limits(1):
        # The first one compiles.
        for _ in range(1 + repeats):
            began = time.perf_counter()
            result = train(problem, make_solver(solver), tol=0.0, max_iter=PASSES, seed=0)
            best = min(best, time.perf_counter() - began)
    return {
        "rows": X.shape[0],
        "columns": X.shape[1],
        "stored values": X.nnz,
        "passes": result.passes,
        "seconds": round(best, 4),
        "ns per value and pass": round(1e9 * best / (X.nnz * result.passes), 2),
    }
