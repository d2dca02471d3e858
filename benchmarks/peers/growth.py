"""The growth of our time with rows and columns, for a fixed number of passes.

Generated text-like data; one thread. A pass costs a fixed time per stored value as long as w stays
in the same level of the cache, so the curves should be flat. A Newton step also forms and solves a
linear system of the size of the columns, so its curve over the columns need not be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import markdown
from benchmarks.peers import pictures
from benchmarks.timing import best_seconds
from certsvm.demo import text_like
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.resources import single_threaded_blas
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
    markdown.write(folder, "growth", str(__doc__), table)
    pictures.growth(table, folder / "growth.png")


def run(repeats: int, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """A row of the table for each solver, growing dimension and factor."""
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
    fit = partial(train, problem, make_solver(solver), tol=0.0, max_iter=PASSES, seed=0)
    with single_threaded_blas():
        result = fit()  # compile
        best = best_seconds({solver: fit}, repeats)[solver]
    return {
        "rows": X.shape[0],
        "columns": X.shape[1],
        "stored values": X.nnz,
        "passes": result.passes,
        "seconds": round(best, 4),
        "ns per value and pass": round(1e9 * best / (X.nnz * result.passes), 2),
    }
