"""Small data: what a fit costs beside scikit-learn's, in turn with it.

The first three are fits as users write them, with an intercept and the default tolerances: ours to
machine precision, scikit-learn's with the hinge loss to what its tolerance gives. The others are
without an intercept, and scikit-learn has the loosest tolerance, in quarters of a digit, whose
answer is as accurate as ours has to be. Processor time on one thread; the best of all rounds, in
turn.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC as Liblinear

from benchmarks.data import available
from certsvm import LinearSVC

# Rounds, and times that a job is repeated in a round.
ROUNDS, REPEATS = 9, 3


def run(folder: Path | None) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    table = [*_defaults()]
    for name, X, y, settings in _problems(folder):
        for C, tol in settings:
            ours = partial(_ours, X, y, C, tol)
            setting = _loosest(X, y, C, tol)
            theirs = None if setting is None else partial(_theirs, X, y, C, setting)
            table.append(_row(f"{name}, C = {C:g} to {tol:g}", ours, theirs))
    return table


def _defaults() -> list[dict[str, Any]]:
    """Fits as users write them, with an intercept; scikit-learn's accuracy is what it is."""
    X, y = load_iris(return_X_y=True)
    wide, labels = load_breast_cancer(return_X_y=True)
    wide = (wide - wide.mean(axis=0)) / wide.std(axis=0)
    a, b = LinearSVC(random_state=0), Liblinear(loss="hinge", random_state=0)
    return [
        _row(
            "iris, 5 folds of 3 classes",
            lambda: cross_val_score(a, X, y),
            lambda: cross_val_score(b, X, y),
        ),
        _row(
            "iris, 2 classes, 100 rows",
            lambda: a.fit(X[50:], y[50:]),
            lambda: b.fit(X[50:], y[50:]),
        ),
        _row("breast cancer, 569 x 30", lambda: a.fit(wide, labels), lambda: b.fit(wide, labels)),
    ]


def _problems(folder: Path | None) -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 300))
    y = np.where(X @ rng.standard_normal(300) + 10.0 * rng.standard_normal(1000) > 0, 1.0, -1.0)
    yield "1000 x 300, dense", X, y, [(0.1, 1e-2), (0.1, 3e-3), (0.1, 1e-3)]
    for name, X, y in available(folder, ["mushrooms", "a9a"]):
        settings = {"mushrooms": [(0.05, 1e-2), (1.0, 1e-2), (10.0, 1e-2)], "a9a": [(0.1, 1e-6)]}
        # scikit-learn takes 32-bit indices only.
        X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
        yield name, X, y, settings[name]


def _row(what: str, ours: Callable[[], Any], theirs: Callable[[], Any] | None) -> dict[str, Any]:
    jobs = {"certsvm": ours} | ({} if theirs is None else {"scikit-learn": theirs})
    best = dict.fromkeys(jobs, float("inf"))
    for job in jobs.values():  # compile
        job()
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            for _ in range(REPEATS):
                began = time.process_time()
                job()
                best[name] = min(best[name], time.process_time() - began)
    row: dict[str, Any] = {"fit": what, "certsvm, ms": f"{1e3 * best['certsvm']:.2f}"}
    row["scikit-learn, ms"] = (
        "not reached" if theirs is None else f"{1e3 * best['scikit-learn']:.2f}"
    )
    row["ratio"] = "" if theirs is None else f"{best['certsvm'] / best['scikit-learn']:.2f}"
    print(row, flush=True)
    return row


def _ours(X: Any, y: Any, C: float, tol: float) -> Any:
    return LinearSVC(C=C, tol=tol, fit_intercept=False, random_state=0, max_iter=100_000).fit(X, y)


def _theirs(X: Any, y: Any, C: float, tol: float) -> Any:
    return Liblinear(
        C=C, loss="hinge", tol=tol, fit_intercept=False, random_state=0, max_iter=1_000_000
    ).fit(X, y)


def _loosest(X: Any, y: Any, C: float, accuracy: float) -> float | None:
    """The loosest tolerance, in steps of a quarter of a digit, that reaches the accuracy."""
    certificate = _ours(X, y, C, 1e-2 * min(accuracy, 1e-2)).certificate_
    for exponent in range(2, 40):
        setting: float = 10.0 ** (-exponent / 4)
        w = _theirs(X, y, C, setting).coef_.ravel()
        primal = 0.5 * float(w @ w) + C * float(np.maximum(1.0 - y * (X @ w), 0.0).sum())
        if primal <= (1.0 + accuracy) * certificate.primal:
            return setting
    return None
