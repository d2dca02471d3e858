"""The cutting planes' master problem: our solver against QP libraries, on problems from OCAS runs.

First, 240 rounds of OCAS on a text-like data set (to about 1e-5) with each solver in turn, and the
milliseconds spent on the master problem. Ours starts from the last solution and stops at a fraction
of the gap; the libraries cannot. Then three of the problems from scratch, to 1e-6 of their value.
Libraries that are not installed are left out: pip install quadprog clarabel osqp daqp.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.timing import best_seconds
from certsvm.demo import text_like
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import OCAS, Options
from certsvm.solvers.shared import cutting_planes

Array = NDArray[np.float64]
Solve = Callable[[Array, Array, float, float], Array]
REPEATS = 3
# The last round, and the rounds whose master problems are solved from scratch.
ROUNDS, SAVED = 240, (30, 120, 240)


def run(folder: Path | None) -> list[dict[str, Any]]:
    X, y = text_like(n_documents=20_000, n_words=20_000)
    problem = Problem(Rows(X), y, C=1.0)
    solvers = _solvers()
    table = [_in_a_run(problem, name, solve) for name, solve in solvers.items()]
    for cuts, gram, g, C in _problems(problem):
        accuracy = 1e-6 * C * float(g.max())
        for name, solve in solvers.items():
            job = partial(solve, gram, g, C, accuracy)
            seconds = best_seconds({name: job}, REPEATS)[name]
            beta = _feasible(job(), C)
            gradient = g - gram @ beta
            gap = C * max(0.0, float(gradient.max())) - float(beta @ gradient)
            table.append(
                {
                    "what": f"{cuts} cuts",
                    "solver": name,
                    "milliseconds": round(1e3 * seconds, 2),
                    "gap / accuracy asked": f"{gap / accuracy:.2g}",
                }
            )
            print(table[-1], flush=True)
    return table


def _in_a_run(problem: Problem, name: str, solve: Solve) -> dict[str, Any]:
    """Rounds of OCAS in which ``solve`` does the master problems."""
    inside = 0.0
    original = cutting_planes.maximise

    def timed(gram: Array, g: Array, C: float, accuracy: float, beta: Array) -> int:
        nonlocal inside
        began = time.perf_counter()
        if name == "ours":
            original(gram, g, C, accuracy, beta)
        else:
            beta[:] = _feasible(solve(gram, g, C, accuracy), C)
        inside += time.perf_counter() - began
        return 0

    cutting_planes.maximise = timed
    try:
        run = OCAS().start(problem, Options(np.random.default_rng(0)))
        began = time.perf_counter()
        for _ in range(ROUNDS):
            run.epoch()
        seconds = time.perf_counter() - began
    finally:
        cutting_planes.maximise = original
    row = {
        "what": f"{ROUNDS} rounds of OCAS in {seconds:.1f} s",
        "solver": name,
        "milliseconds": round(1e3 * inside, 1),
        "gap / accuracy asked": "",
    }
    print(row, flush=True)
    return row


def _feasible(beta: Array, C: float) -> Array:
    """A feasible point near a solution: beta >= 0, sum(beta) <= C; tiny entries are zero."""
    feasible: Array = np.where(beta < 1e-12 * C, 0.0, beta)
    return feasible * min(1.0, C / float(feasible.sum()))


def _problems(problem: Problem) -> list[tuple[int, Array, Array, float]]:
    """Cuts, Gram matrix, linear term and C of the master problems of the rounds in ``SAVED``."""
    run = OCAS().start(problem, Options(np.random.default_rng(0)))
    problems = []
    for rounds in range(1, max(SAVED) + 1):
        run.epoch()
        if rounds in SAVED:
            master = run._master
            problems.append((master.g.size, master._gram.copy(), master.g.copy(), problem.C))
    return problems


def _solvers() -> dict[str, Solve]:
    solvers: dict[str, Solve] = {"ours": _ours}
    libraries = {"quadprog": _quadprog, "clarabel": _clarabel, "osqp": _osqp, "daqp": _daqp}
    for name, solve in libraries.items():
        if find_spec(name):
            solvers[name] = solve
        else:
            print(f"{name} is not installed and left out", file=sys.stderr)
    return solvers


def _ours(gram: Array, g: Array, C: float, accuracy: float) -> Array:
    beta = np.zeros(g.size)
    cutting_planes.maximise(gram, g, C, accuracy, beta)
    return beta


def _quadprog(gram: Array, g: Array, C: float, accuracy: float) -> Array:
    # It needs a positive definite matrix; cuts that are alike make ours singular.
    n = g.size
    ridge = gram + 1e-9 * np.trace(gram) / n * np.eye(n)
    constraints = np.column_stack([-np.ones(n), np.eye(n)])
    solution: Array = import_module("quadprog").solve_qp(
        ridge, g, constraints, np.append(-C, np.zeros(n))
    )[0]
    return solution


def _clarabel(gram: Array, g: Array, C: float, accuracy: float) -> Array:
    clarabel = import_module("clarabel")
    n = g.size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = accuracy
    constraints = sp.csc_matrix(np.vstack([np.ones((1, n)), -np.eye(n)]))
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(gram)), -g, constraints, np.append(C, np.zeros(n)),
        [clarabel.NonnegativeConeT(n + 1)], settings,
    )  # fmt: skip
    return np.array(solver.solve().x)


def _osqp(gram: Array, g: Array, C: float, accuracy: float) -> Array:
    n = g.size
    solver = import_module("osqp").OSQP()
    constraints = sp.csc_matrix(np.vstack([np.ones((1, n)), np.eye(n)]))
    solver.setup(
        sp.csc_matrix(np.triu(gram)), -g, constraints, np.zeros(n + 1),
        np.append(C, np.full(n, C)), eps_abs=1e-9, eps_rel=1e-9, max_iter=100_000, verbose=False,
    )  # fmt: skip
    return np.array(solver.solve().x)


def _daqp(gram: Array, g: Array, C: float, accuracy: float) -> Array:
    n = g.size
    ridge = gram + 1e-9 * np.trace(gram) / n * np.eye(n)
    bounds = np.append(np.full(n, C), C)
    solution: Array = import_module("daqp").solve(
        ridge, -g, np.ones((1, n)), bounds, np.zeros(n + 1), np.zeros(n + 1, dtype=np.int32)
    )[0]
    return solution
