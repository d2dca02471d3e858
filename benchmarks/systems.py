"""Every solver of the paper on four data sets: passes and seconds, at C = 0.05 and 1.

DCD, MPU, OCAS and SVM^perf go to a proved 1e-5, SGD-s and SGD-m to a proved 1e-2 or 1000 passes;
the primal-only solvers make 1000 passes. The true accuracy is relative to the known optimum. The
passes to a true 1e-2 are an upper bound, since J is not computed after each pass.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import OPTIMA, available
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import MPU, SGDQN, SOLVERS, SGDm, Solver, SvmSgd
from certsvm.training.loop import train
from certsvm.training.settings import Result

SETS = ["a9a", "w8a", "ijcnn1", "moneyfx"]
DUAL: list[Solver] = [SOLVERS[name]() for name in ("dcd", "mpu", "ocas", "svmperf")]
SGD: list[Solver] = [SOLVERS[name]() for name in ("sgd-s", "sgd-m")]
PRIMAL: list[Solver] = [SOLVERS[name]() for name in SOLVERS if not SOLVERS[name].certifies]
SINGLE: list[Solver] = [
    SvmSgd(precision="single"),
    SGDQN(precision="single"),
    SGDm(precision="single"),
    MPU(precision="single"),
]
PASSES = 1000


def run(folder: Path | None) -> list[dict[str, Any]]:
    table = []
    for name, X, y in available(folder, SETS):
        rows = Rows(X)
        for C in (0.05, 1):
            problem = Problem(rows, y, C=C)
            low, _ = OPTIMA[name][C]
            for solver in DUAL + SGD + PRIMAL + SINGLE:
                tol = 1e-5 if solver in DUAL else 0.01
                few = 1 if solver in PRIMAL + SINGLE else 5
                train(problem, solver, tol=tol, max_iter=few, seed=0)  # compile
                began = time.perf_counter()
                result = train(
                    problem, solver, tol=tol, seed=0, max_time=60,
                    max_iter=20_000 if solver in DUAL else PASSES,
                )  # fmt: skip
                seconds = time.perf_counter() - began
                table.append(
                    {
                        "data": name,
                        "C": C,
                        "solver": solver.label,
                        "passes": result.passes,
                        "seconds": round(seconds, 2),
                        "true accuracy": f"{result.certificate.primal / low - 1:.1e}",
                        "proved": f"{result.certificate.relative_gap:.1e}",
                        "passes to a true 1e-2": _passes_to(result, 1.01 * low),
                        "ended": result.reason,
                    }
                )
                print(table[-1], flush=True)
    return table


def _passes_to(result: Result, objective: float) -> str:
    """The first pass after which J was computed and low enough."""
    reached = np.flatnonzero(result.history["primal"] <= objective)
    return str(result.history[int(reached[0])].passes) if reached.size else "not reached"
