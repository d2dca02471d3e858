"""Threads: how much one fit gains from them, on generated data.

Seconds to a proved accuracy with 1, 2, 4, 8 and 16 threads, as far as the machine has processors,
for `auto` and, where that is another solver, for `newton`; the best of three runs, in turn. The
gain is that of the most threads over one. "Census" has many rows and few columns, "census, sparse"
one-hot columns, "wide" fewer rows than columns, "text" many sparse columns, "classes" twelve of
them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm import LinearSVC
from certsvm.resources import available_processors

THREADS = (1, 2, 4, 8, 16)
TOLERANCES = (1e-2, 1e-6)
REPEATS = 3
# Seconds from which a setting is measured once only, and the limit of a fit.
LONG, MAX_SECONDS = 5.0, 60.0
# The share of the full size, for a look at a small machine.
SIZE = float(os.environ.get("SIZE", "1"))


class Case(NamedTuple):
    """Generated data, with the C to train with."""

    name: str
    X: Any
    y: NDArray[np.int64]
    C: float


def cases() -> Iterator[Case]:
    """The data sets, one at a time."""
    rng = np.random.default_rng(0)
    n = int(1_000_000 * SIZE)
    X = rng.standard_normal((n, 50))
    yield Case("census", X, _labels(X @ rng.standard_normal(50), rng), 1.0)
    codes = rng.integers(0, 20, (n, 12)) + 20 * np.arange(12)
    X = sp.csr_matrix((np.ones(codes.size), codes.ravel(), np.arange(0, codes.size + 1, 12)))
    yield Case("census, sparse", X, _labels(X @ rng.standard_normal(X.shape[1]), rng), 1.0)
    rows, columns = int(3000 * SIZE**0.5), int(10_000 * SIZE**0.5)
    X = rng.standard_normal((rows, columns)) * np.exp(rng.standard_normal(columns))
    yield Case("wide", X, _labels(X @ rng.standard_normal(columns), rng), 1.0)
    X = _text(int(200_000 * SIZE), 100_000, rng)
    yield Case("text", X, _labels(X @ rng.standard_normal(X.shape[1]), rng), 1.0)
    X = rng.standard_normal((int(100_000 * SIZE), 60))
    scores = X @ rng.standard_normal((60, 12)) + 3.0 * rng.standard_normal((len(X), 12))
    yield Case("classes", X, scores.argmax(axis=1), 1.0)


def _labels(scores: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    noisy = scores + 0.5 * scores.std() * rng.standard_normal(scores.size)
    return np.where(noisy > 0.0, 1, -1)


def _text(rows: int, columns: int, rng: np.random.Generator) -> Any:
    """Rows of about sixty words, whose frequencies follow Zipf's law, of unit length."""
    words = np.minimum(rng.zipf(1.3, (rows, 60)) - 1, columns - 1)
    X = sp.csr_matrix(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 60)),
        shape=(rows, columns),
    )
    X.sum_duplicates()
    return sp.csr_matrix(sp.diags(1.0 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X)


def run(folder: Path | None) -> list[dict[str, Any]]:
    threads = [n for n in THREADS if n <= available_processors()]
    table: list[dict[str, Any]] = []
    for case in cases():
        for tol in TOLERANCES:
            for solver in ("auto", "newton"):
                row = _measure(case, tol, solver, threads)
                if row is not None and (solver == "auto" or row["ran"] != table[-1]["ran"]):
                    table.append(row)
                    print(row, flush=True)
    return table


def _measure(case: Case, tol: float, solver: str, threads: list[int]) -> dict[str, Any] | None:
    """A row of the table; None if the solver does not take the data."""
    if solver == "newton" and min(case.X.shape) > 5000:
        return None
    seconds: dict[int, list[float]] = {n: [] for n in threads}
    ran, missed = {}, set()
    _fit(case, 0.5, solver, threads[-1])  # compile
    for _ in range(REPEATS):
        for n in threads:
            if max(seconds[n], default=0.0) > LONG:
                continue
            began = time.perf_counter()
            clf = _fit(case, tol, solver, n)
            seconds[n].append(time.perf_counter() - began)
            ran[n] = clf.solver_
            if not all(certificate.met for certificate in clf.certificates_ or []):
                missed.add(n)
    best = {n: min(runs) for n, runs in seconds.items()}
    row: dict[str, Any] = {
        "data": f"{case.name}, {case.X.shape[0]} x {case.X.shape[1]}",
        "tol": f"{tol:g}",
        "solver": solver,
        "ran": "; ".join(dict.fromkeys(ran.values())),
    }
    for n in threads:
        row[f"{n} threads" if n > 1 else "1 thread"] = (
            f"> {MAX_SECONDS:g}" if n in missed else f"{best[n]:.3g}"
        )
    row["gain"] = f"{best[1] / best[threads[-1]]:.2f}"
    return row


def _fit(case: Case, tol: float, solver: str, threads: int) -> LinearSVC:
    clf = LinearSVC(
        C=case.C,
        tol=tol,
        solver=solver,
        fit_intercept=False,
        n_jobs=threads,
        max_time=MAX_SECONDS,
        max_iter=100_000,
        random_state=0,
    )
    clf.fit(case.X, case.y)
    return clf
