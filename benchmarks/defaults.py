"""LinearSVC as users write it, beside scikit-learn's: every parameter has its default.

Theirs has the squared hinge, ours the hinge; the last columns are ours with the squared hinge, the
objective of theirs. Both have C = 1, an intercept in the penalty, and tol=1e-4, which means a
proved accuracy here and something else there. "Off by at most" is J / L - 1 on the objective that
each minimised: by the certificate, and for scikit-learn by ``certsvm.bound``. Processor time on one
thread; the best of all rounds, in turn.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from sklearn.datasets import load_breast_cancer
from sklearn.svm import LinearSVC as Liblinear

from benchmarks.data import OPTIMA, OTHERS, DataSet, available
from certsvm import LinearSVC, bound

ROUNDS = 5


def run(folder: Path | None) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    sets = available(folder, [*OPTIMA, *OTHERS]) if folder is not None else [_small()]
    table = []
    for data in sets:
        table.append(_row(data))
        print(table[-1], flush=True)
    return table


def _small() -> DataSet:
    X, y = load_breast_cancer(return_X_y=True)
    return DataSet("breast cancer", (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1.0)


def _row(data: DataSet) -> dict[str, Any]:
    fits: dict[str, Any] = {
        "ours": LinearSVC(random_state=0),
        "theirs": Liblinear(random_state=0),
        "squared": LinearSVC(loss="squared_hinge", random_state=0),
    }
    best = dict.fromkeys(fits, float("inf"))
    for clf in fits.values():  # compile
        clf.fit(data.X, data.y)
    for _ in range(ROUNDS):
        for name, clf in fits.items():
            began = time.process_time()
            clf.fit(data.X, data.y)
            best[name] = min(best[name], time.process_time() - began)
    theirs: Any = bound(fits["theirs"], data.X, data.y, tol=1e-6, max_iter=1000)
    return {
        "data, rows x columns": f"{data.name}, {data.X.shape[0]:,} x {data.X.shape[1]:,}",
        "scikit-learn, ms": f"{1e3 * best['theirs']:.3g}",
        "off by at most": f"{theirs.proved_gap:.1e}",
        "certsvm, ms": f"{1e3 * best['ours']:.3g}",
        "proved": f"{fits['ours'].certificate_.proved_gap:.1e}",
        "ratio": f"{best['ours'] / best['theirs']:.2f}",
        "squared hinge, ms": f"{1e3 * best['squared']:.3g}",
        "proved, squared hinge": f"{fits['squared'].certificate_.proved_gap:.1e}",
        "ratio, squared hinge": f"{best['squared'] / best['theirs']:.2f}",
    }
