"""A Dask cluster of two processes of this machine, with and without the cache of free rows.

Rounds and seconds to a proved 1 % and to 1e-4, without the recheck of the certificate, whose time
is in a column of its own. "cocoa, no cache" is plain CoCoA+, whose workers keep their rows to
themselves; "cocoa, 5 %" gathers no more than that share of the rows. In memory, there are two
threads. An empty field: not reached in the time allowed.
"""

from __future__ import annotations

import itertools
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import OPTIMA, DataSet, available
from certsvm import LinearSVC as Local

SETS = ["moneyfx", "news20", "debian", "a9a", "covtype"]
PROCESSES = 2
# Limit of a fit in seconds, and repeats of which the fastest counts.
MAX_SECONDS, REPEATS = 10.0, 2
# Up to so many columns, Newton is tried, too.
FEW_COLUMNS = 500


def run(folder: Path | None) -> list[dict[str, Any]]:
    from distributed import Client, LocalCluster

    from certsvm.dask import Cocoa

    solvers = {
        "cocoa": Cocoa(), "cocoa, 5 %": Cocoa(cache=0.05), "cocoa, no cache": Cocoa(cache=0.0),
        "smoothed-newton": "smoothed-newton",
    }  # fmt: skip
    table: list[dict[str, Any]] = []
    sets = available(folder, SETS) if folder is not None else [generated()]
    options: dict[str, Any] = {"threads_per_worker": 1, "silence_logs": 50}
    options["dashboard_address"] = None
    with LocalCluster(n_workers=PROCESSES, **options) as cluster, Client(cluster) as client:
        for data, C in itertools.product(sets, (1.0, 10.0)):
            blocks = on_workers(client, data)
            for name, solver in solvers.items():
                if name != "smoothed-newton" or data.X.shape[1] <= FEW_COLUMNS:
                    row = {"data": data.name, "C": C, "solver": name}
                    table.append(row | measured(data, blocks, C, solver))
                    print(table[-1], flush=True)
    return table


def generated() -> DataSet:
    """Random sparse rows with noisy labels."""
    rng = np.random.default_rng(0)
    X = sp.random(50_000, 20_000, density=0.002, format="csr", random_state=0)
    score = X @ rng.standard_normal(20_000) + 0.3 * rng.standard_normal(50_000)
    return DataSet("generated", X, np.where(score > 0, 1.0, -1.0))


def on_workers(client: Any, data: DataSet) -> tuple[list[Any], list[Any]]:
    """The rows and the labels, in two blocks for each process, before the clock runs."""
    from dask import delayed

    edges = np.linspace(0, data.X.shape[0], 2 * PROCESSES + 1).astype(int)
    spans = [slice(first, last) for first, last in itertools.pairwise(edges)]
    X, y = ([delayed(values[span]) for span in spans] for values in (data.X, data.y))
    return client.persist(X), client.persist(y)


def holds(name: str, C: float, certificate: Any) -> str:
    """Whether the certified interval contains the optimum known from other methods."""
    if name not in OPTIMA:
        return "unknown"
    low, high = OPTIMA[name][C]
    return "yes" if certificate.dual <= high * (1 + 1e-8) and low <= certificate.primal else "NO"


def measured(data: DataSet, blocks: Any, C: float, solver: Any) -> dict[str, Any]:
    from certsvm.dask import LinearSVC

    def fit(*, recheck: bool, max_iter: int = 10_000) -> Any:
        clf = LinearSVC(
            C, tol=1e-4, solver=solver, fit_intercept=False, random_state=0, max_iter=max_iter,
            max_time=MAX_SECONDS, recheck=recheck,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return timed(lambda: clf.fit(*blocks))

    # Load and compile.
    fit(recheck=True, max_iter=1)
    # In turn, so that noise meets all of them alike.
    local: dict[float, list[float]] = {0.01: [], 1e-4: []}
    fits, checked = [], []
    for _ in range(REPEATS):
        fits.append(fit(recheck=False))
        checked.append(fit(recheck=True)[1])
        for tol, times in local.items():
            in_memory = Local(C, tol=tol, fit_intercept=False, n_jobs=2)
            times.append(timed(lambda model=in_memory: model.fit(data.X, data.y))[1])
        if fits[-1][1] > 0.5 * MAX_SECONDS:
            break
    clf, seconds = min(fits, key=lambda fit: fit[1])
    row: dict[str, Any] = {}
    for tol, shown in ((0.01, "1 %"), (1e-4, "1e-4")):
        reached = [r for r in clf.history_ if r.relative_gap <= tol]
        row[f"rounds to {shown}"] = reached[0].passes if reached else ""
        row[f"s to {shown}"] = round(reached[0].seconds, 2) if reached else ""
        row[f"in memory, s to {shown}"] = round(min(local[tol]), 2)
    return row | {
        "with the recheck, s more": round(max(min(checked) - seconds, 0.0), 2),
        "proved": f"{clf.certificate_.proved_gap:.1e}",
        "holds the known optimum": holds(data.name, C, clf.certificate_),
    }


def timed(call: Any) -> tuple[Any, float]:
    """The result of a call, and its seconds."""
    began = time.perf_counter()
    return call(), time.perf_counter() - began
