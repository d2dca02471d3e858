"""Certified intervals against known optima: auto, and SGD with and without windows.

To a proved 1 % unless stated otherwise, in at most 5 seconds and 5000 passes, on one thread.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.data import OPTIMA, available
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Auto, Newton, SGDm, SGDs, Solver
from certsvm.training.loop import train

SOLVERS: dict[str, tuple[Solver, float]] = {
    "auto": (Auto(), 0.01),
    "auto, 1e-6": (Auto(), 1e-6),
    "sgd-s": (SGDs(), 0.01),
    "sgd-m": (SGDm(), 0.01),
    "sgd-s, no windows": (SGDs(windows=0), 0.01),
    "sgd-m, no windows": (SGDm(windows=0), 0.01),
}
MAX_SECONDS = 5.0


def run(folder: Path | None) -> list[dict[str, Any]]:
    table = []
    for name, X, y in available(folder):
        rows = Rows(X)
        for solver, tol in SOLVERS.values():  # compile
            train(Problem(rows, y, C=1e-3), solver, tol=tol, max_iter=1, seed=0)
        if rows.dimension <= 5000:
            train(Problem(rows, y, C=1e-3), Newton(), max_iter=1, seed=0)
        for C, (low, high) in OPTIMA[name].items():
            problem = Problem(rows, y, C=C)
            for solver_name, (solver, tol) in SOLVERS.items():
                began = time.perf_counter()
                result = train(
                    problem, solver, tol=tol, seed=0, max_iter=5000, max_time=MAX_SECONDS
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
