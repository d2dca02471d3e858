"""A Dask cluster of 1, 2 and 4 processes of this machine, against a fit in memory.

Fits go to a proved one per cent; the fit in memory has two threads. "Checked" includes the recheck
of the certificate, which is the default.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data import OPTIMA, DataSet, available
from certsvm import LinearSVC as Local

SETS = ["a9a", "covtype", "news20", "debian"]
PROCESSES = (1, 2, 4)
# Limit of a fit in seconds, and repeats.
MAX_SECONDS, REPEATS = 10.0, 5


def run(folder: Path | None) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    sets = list(available(folder, SETS)) if folder is not None else [generated()]
    sets += [repeated(data, 4) for data in sets if data.name == "covtype"]
    for data in sets:
        for processes in PROCESSES:
            for solver in ("smoothed-newton", "cocoa"):
                if solver == "smoothed-newton" and data.X.shape[1] > 3000:
                    continue
                if solver == "cocoa" and " x " in data.name:
                    continue
                row = {"data": data.name, "processes": processes, "solver": solver}
                table.append(row | on_cluster(data, processes, solver))
                print(table[-1], flush=True)
    return table


def generated() -> DataSet:
    """Random rows, about as many values as in Covertype."""
    rng = np.random.default_rng(0)
    X = sp.random(400_000, 54, density=0.22, format="csr", random_state=0)
    score = X @ rng.standard_normal(54) + 0.3 * rng.standard_normal(400_000)
    return DataSet("generated", X, np.where(score > 0, 1.0, -1.0))


def repeated(data: DataSet, times: int) -> DataSet:
    """The same rows several times."""
    return DataSet(
        f"{data.name} x {times}", sp.vstack([data.X] * times, format="csr"), np.tile(data.y, times)
    )


def holds(name: str, certificate: Any) -> str:
    """Whether the certified interval contains the optimum known from other methods."""
    if name not in OPTIMA:
        return "unknown"
    low, high = OPTIMA[name][1]
    return "yes" if certificate.dual <= high * (1 + 1e-8) and low <= certificate.primal else "NO"


def on_cluster(data: DataSet, processes: int, solver: str) -> dict[str, Any]:
    from dask import delayed
    from distributed import Client, LocalCluster

    from certsvm.dask import LinearSVC

    edges = np.linspace(0, data.X.shape[0], 2 * processes + 1).astype(int)
    spans = [slice(first, last) for first, last in itertools.pairwise(edges)]
    with (
        LocalCluster(
            n_workers=processes, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        # The blocks are on the workers before the clock runs.
        X = client.persist([delayed(data.X[span]) for span in spans])
        y = client.persist([delayed(data.y[span]) for span in spans])
        times: dict[str, list[float]] = {"local": [], "plain": [], "checked": []}

        def fit(how: str, max_time: float = MAX_SECONDS) -> Any:
            began = time.perf_counter()
            if how == "local":
                clf: Any = Local(tol=0.01, fit_intercept=False, n_jobs=2).fit(data.X, data.y)
            else:
                clf = LinearSVC(
                    solver=solver, tol=0.01, fit_intercept=False, random_state=0, max_time=max_time,
                    recheck=how == "checked",
                ).fit(X, y)  # fmt: skip
            times[how].append(time.perf_counter() - began)
            return clf

        for how in times:
            # Load and compile.
            fit(how, 0.5)
            times[how].clear()
        for _ in range(REPEATS):
            # In turn, so that noise meets all of them alike.
            for how in times:
                clf = fit(how)
            if min(times["plain"]) > 0.5 * MAX_SECONDS:
                break
    local, seconds, checked = (min(times[how]) for how in ("local", "plain", "checked"))
    per_round = clf.history_[-1].seconds / clf.n_iter_
    return {
        "proved": f"{clf.certificate_.proved_gap:.1e}",
        "holds the known optimum": holds(data.name, clf.certificate_),
        "rounds": clf.n_iter_,
        "seconds": round(seconds, 2),
        "in memory, two threads": round(local, 2),
        "ratio": round(seconds / local, 2),
        "checked, seconds": round(checked, 2),
        "checked, ratio": round(checked / local, 2),
        "ms a round": round(1e3 * per_round, 1),
    }
