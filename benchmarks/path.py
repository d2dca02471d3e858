"""Every C in a range: what a proved path costs beside single fits.

`fit_path` proves that every C from 0.001 to 100 has a model within 1 % of its optimum.
Beside it: cold fits of ours at the same values and accuracy, and scikit-learn's LinearSVC with the
hinge loss at 20 values, with its default tolerance, which proves nothing, and 1000 iterations at
most. No intercept, one thread, seconds on the wall clock; ours is the best of three in turn. Where
scikit-learn takes longer than 150 seconds, its time is that of the values up to then, in ascending
order, and marked with ">".
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC as Liblinear

from benchmarks.data import DataSet, available
from certsvm import LinearSVC, fit_path

C_RANGE = (1e-3, 1e2)
N_VALUES = 20
ROUNDS = 3
LIMIT = 150.0
TOLERANCES = (1e-2,)
NAMES = ["a9a", "ijcnn1", "w8a", "moneyfx", "covtype", "debian", "news20"]


def run(folder: Path | None) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    rows = []
    for data in available(folder, NAMES):
        _warm_up(data)
        theirs, complete = _scikit_learn(data)
        for tol in TOLERANCES:
            rows.append(_measured(data, tol, theirs, complete=complete))
            print(rows[-1], flush=True)
    return rows


def _warm_up(data: DataSet) -> None:
    """Compile all kernels."""
    few = np.random.default_rng(0).permutation(len(data.y))[:3000]
    fit_path(_ours(1e-3), data.X[few], data.y[few], C_range=C_RANGE)


def _ours(tol: float, C: float = 1.0) -> LinearSVC:
    return LinearSVC(C=C, tol=tol, fit_intercept=False, random_state=0, max_iter=10_000)


def _measured(data: DataSet, tol: float, theirs: float, *, complete: bool) -> dict[str, Any]:
    paths, colds = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        path = fit_path(_ours(tol), data.X, data.y, C_range=C_RANGE, tol=tol)
        paths.append(time.perf_counter() - began)
        began = time.perf_counter()
        for C in path.Cs:
            _ours(0.25 * tol, C).fit(data.X, data.y)
        colds.append(time.perf_counter() - began)
    return {
        "data": data.name,
        "every C to": f"{tol:g}",
        "proved": "yes" if path.met else "no",
        "worst gap": f"{path.worst_gap:.2g}",
        "fits": len(path),
        "passes": sum(model.n_iter_ for model in path),
        "path, s": round(min(paths), 3),
        "cold fits, s": round(min(colds), 3),
        "scikit-learn, 20 C, s": f"{'' if complete else '> '}{theirs:.2f}",
        "path / scikit-learn": f"{'' if complete else '< '}{min(paths) / theirs:.3f}",
    }


def _scikit_learn(data: DataSet) -> tuple[float, bool]:
    """Seconds for all values, and whether all were fitted within the limit."""
    seconds = 0.0
    for C in np.geomspace(*C_RANGE, N_VALUES):
        began = time.perf_counter()
        Liblinear(loss="hinge", C=C, fit_intercept=False, random_state=0).fit(data.X, data.y)
        seconds += time.perf_counter() - began
        if seconds > LIMIT:
            return seconds, C_RANGE[1] == C
    return seconds, True
