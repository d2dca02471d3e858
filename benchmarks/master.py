"""The cutting planes' master problem: our solver against QP libraries, and the accuracy it needs.

First, 240 rounds of OCAS on a text-like data set (to about 1e-5) with each solver in turn, and the
milliseconds spent on the master problem. Ours starts from the last solution and stops at a fraction
of the gap; the libraries cannot. Then three of the problems from scratch, to 1e-6 of their value.
Libraries that are not installed are left out: pip install quadprog clarabel osqp daqp.

Last, how far to solve it: OCAS and SVM^perf on real sets to a proved gap of 1e-3, with the master
problem solved to different fractions of the gap; rounds and milliseconds of the whole training are
geometric means. The solvers use the fractions marked with a star.
"""

from __future__ import annotations

import math
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

from benchmarks.data import available
from benchmarks.timing import best_seconds
from certsvm.demo import text_like
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import OCAS, Options, SVMperf
from certsvm.solvers.published import cutting_planes
from certsvm.solvers.published.cutting_planes import OCASRun, SVMperfRun
from certsvm.training.loop import train

Array = NDArray[np.float64]
Solve = Callable[[Array, Array, float, float], Array]
REPEATS = 3
# The last round, and the rounds whose master problems are solved from scratch.
ROUNDS, SAVED = 240, (30, 120, 240)
# What the fractions of the gap are measured on.
SETS, PENALTIES = ["a9a", "w8a", "ijcnn1", "moneyfx", "mushrooms"], (0.05, 1.0)
FRACTIONS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.01, 0.001)


def run(folder: Path | None) -> list[dict[str, Any]]:
    X, y = text_like(n_documents=20_000, n_words=20_000)
    problem = Problem(Rows(X), y, C=1.0)
    solvers = _solvers()
    _ours(np.eye(1), np.ones(1), 1.0, 1e-3)  # compiled before anything is timed
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
                    "rounds": "",
                    "milliseconds": round(1e3 * seconds, 2),
                    "gap / accuracy asked": f"{gap / accuracy:.2g}",
                }
            )
            print(table[-1], flush=True)
    return table + _by_fraction(folder)


def _in_a_run(problem: Problem, name: str, solve: Solve) -> dict[str, Any]:
    """Rounds of OCAS in which ``solve`` does the master problems."""
    inside = 0.0
    original = cutting_planes.maximise

    def timed(gram: Array, g: Array, C: float, accuracy: float, beta: Array) -> None:
        nonlocal inside
        began = time.perf_counter()
        if name == "ours":
            original(gram, g, C, accuracy, beta)
        else:
            beta[:] = _feasible(solve(gram, g, C, accuracy), C)
        inside += time.perf_counter() - began

    cutting_planes.maximise = timed
    try:
        run = OCAS().start(problem, Options(np.random.default_rng(0)))
        for _ in range(ROUNDS):
            run.epoch()
    finally:
        cutting_planes.maximise = original
    row = {
        "what": "a run of OCAS",
        "solver": name,
        "rounds": ROUNDS,
        "milliseconds": round(1e3 * inside, 1),
        "gap / accuracy asked": "",
    }
    print(row, flush=True)
    return row


def _by_fraction(folder: Path | None) -> list[dict[str, Any]]:
    """Rounds and times to a gap of 1e-3, by the fraction of the gap that the master may leave."""
    problems = [
        Problem(Rows(data.X), data.y, C=C) for data in available(folder, SETS) for C in PENALTIES
    ]
    table = []
    for solver, kind in ((OCAS(), OCASRun), (SVMperf(), SVMperfRun)) if problems else ():
        own = kind.FRACTION

        def fit(fraction: float, i: int, solver: Any = solver, kind: Any = kind) -> int:
            kind.FRACTION = fraction
            return train(problems[i], solver, tol=1e-3, seed=0).epochs

        rounds, seconds = dict.fromkeys(FRACTIONS, 0.0), dict.fromkeys(FRACTIONS, 0.0)
        try:
            for i in range(len(problems)):
                best = best_seconds({str(f): partial(fit, f, i) for f in FRACTIONS}, REPEATS)
                for f in FRACTIONS:
                    rounds[f] += math.log(fit(f, i)) / len(problems)
                    seconds[f] += math.log(best[str(f)]) / len(problems)
        finally:
            kind.FRACTION = own
        for f in FRACTIONS:
            row = {
                "what": f"{solver.name} on {len(problems)} problems, to {f} of the gap",
                "solver": "ours*" if f == own else "ours",
                "rounds": round(math.exp(rounds[f]), 1),
                "milliseconds": round(1e3 * math.exp(seconds[f]), 1),
                "gap / accuracy asked": "",
            }
            table.append(row)
            print(row, flush=True)
    return table


def _feasible(beta: Array, C: float) -> Array:
    """A feasible point near a solution: beta >= 0, sum(beta) <= C; tiny entries are zero."""
    feasible: Array = np.where(beta < 1e-12 * C, 0.0, beta)
    return feasible * min(1.0, C / float(feasible.sum()))


def _problems(problem: Problem) -> list[tuple[int, Array, Array, float]]:
    """Cuts, Gram matrix, linear term and C of the master problems of the rounds in ``SAVED``."""
    run = OCASRun(OCAS(), problem, Options(np.random.default_rng(0)))
    problems = []
    for rounds in range(1, max(SAVED) + 1):
        run.epoch()
        if rounds in SAVED:
            # Without the first cut, which is zero.
            problems.append((run.g.size - 1, run._gram[1:, 1:].copy(), run.g[1:], problem.C))
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
    padded, beta = np.zeros((g.size + 1, g.size + 1)), np.zeros(g.size + 1)
    padded[1:, 1:], beta[0] = gram, C
    cutting_planes.maximise(padded, np.append(0.0, g), C, accuracy, beta)
    return beta[1:]


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
