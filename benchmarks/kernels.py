"""A pass of SGD-s over rows in memory order, against SciPy's ``X @ w`` on the same matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data import DataSet, available
from benchmarks.timing import best_seconds
from certsvm.certificates.primal import primal_bound
from certsvm.demo import text_like
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers.growing_margin import GrowingMargin

REPEATS = 15


def run(folder: Path | None) -> list[dict[str, Any]]:
    table = []
    for name, X, y in _sets(folder):
        for values in (np.float64, np.float32):
            table.append({"data": name, "values": values.__name__} | _measure(X.astype(values), y))
    return table


def _sets(folder: Path | None) -> Iterator[DataSet]:
    X, y = text_like()
    yield DataSet("text-like (demo)", X, y.astype(float))
    yield from available(folder)


def _measure(X: sp.csr_matrix, y: Any) -> dict[str, Any]:
    """Nanoseconds per nonzero, best of several repeats, after three passes."""
    problem = Problem(Rows(X), y, C=1.0)
    state = GrowingMargin(problem)
    in_order = np.arange(problem.m)
    at_random = np.random.default_rng(0).permutation(problem.m)
    for _ in range(3):
        state.present(in_order)
    w = state.w
    jobs: dict[str, Callable[[], object]] = {
        "X @ w": lambda: X @ w,
        "pass, memory order": lambda: state.present(in_order),
        "pass, random order": lambda: state.present(at_random),
        "exact objective": lambda: primal_bound(problem, w),
    }
    best = best_seconds(jobs, REPEATS)
    row: dict[str, Any] = {"nonzeros per row": round(X.nnz / X.shape[0], 1)}
    row |= {f"{name} (ns)": round(1e9 * seconds / X.nnz, 2) for name, seconds in best.items()}
    row["memory order / X @ w"] = round(best["pass, memory order"] / best["X @ w"], 2)
    return row
