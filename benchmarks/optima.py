"""Certified intervals against known optima, and passes with and without windows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.data import OPTIMA, available
from certsvm.problem import Problem
from certsvm.rows import Rows
from certsvm.solvers import SGDm, SGDs, Solver
from certsvm.training import train

SOLVERS: dict[str, Solver] = {
    "sgd-s": SGDs(),
    "sgd-m": SGDm(),
    "sgd-s, published": SGDs(published=True),
    "sgd-m, published": SGDm(published=True),
}
MAX_SECONDS = 20.0


def run(folder: Path | None) -> list[dict[str, Any]]:
    table = []
    for name, X, y in available(folder):
        rows = Rows(X)
        for C, (low, high) in OPTIMA[name].items():
            problem = Problem(rows, y, C=C)
            for solver_name, solver in SOLVERS.items():
                began = time.perf_counter()
                result = train(
                    problem, solver, tol=0.01, seed=0, max_iter=5000, max_time=MAX_SECONDS
                )
                c = result.certificate
                contains = c.dual - c.dual_rounding <= high and c.primal + c.primal_rounding >= low
                table.append(
                    {
                        "data": name,
                        "C": C,
                        "solver": solver_name,
                        "passes": result.passes,
                        "seconds": round(time.perf_counter() - began, 2),
                        "L": f"{c.dual:.8g}",
                        "J": f"{c.primal:.8g}",
                        "gap": f"{c.relative_gap:.3g}",
                        "ended": result.reason,
                        "optimum inside": contains,
                    }
                )
                print(table[-1], flush=True)
    return table
