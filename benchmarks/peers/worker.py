"""The worker's side of the pipe: a process that fits one system to one data set on request.

``python -m benchmarks.peers.worker NAME`` prints the installed version of a system. With ``--data``
it then warms up and answers each line of JSON with another until its input ends. Requests are {"C",
"variant", "setting"}; answers have the seconds, the memory and the file of w, or the failure.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.adapters import ADAPTERS, Adapter, Array

WARM_UP_ROWS = 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=ADAPTERS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--scratch", type=Path, default=Path())
    arguments = parser.parse_args()
    # Libraries print as they please; only answers may reach the pipe.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")

    try:
        adapter = ADAPTERS[arguments.name](arguments.threads, arguments.scratch, arguments.loss)
        import_module(adapter.module)
        answer({"version": adapter.version()})
        if arguments.data is None:
            return
        X, y = load(arguments.data)
        adapter.warm_up(*sample(X, y))
        adapter.prepare(X, y)
    except Exception as error:
        answer({"failed": describe(error)})
        return
    # Garbage collection need not scan the data before each fit.
    gc.freeze()
    answer({"ready": True})
    for line in sys.stdin:
        try:
            answer(measured(adapter, **json.loads(line)))
        except Exception as error:
            answer({"failed": describe(error)})


def measured(adapter: Adapter, C: float, variant: str, setting: float) -> dict[str, Any]:
    """Fit, and measure time and peak memory."""
    gc.collect()
    before = memory("VmRSS")
    reset_peak()
    began = time.perf_counter()
    model = adapter.fit(C, variant, setting)
    seconds = time.perf_counter() - began
    peak = memory("VmHWM")
    w = adapter.weights(model)
    path = adapter.scratch / f"{adapter.name}-w.npy"
    np.save(path, w)
    return {
        "seconds": seconds,
        "memory": None if before is None or peak is None else max(0, peak - before),
        "w": str(path),
        "remarks": adapter.remarks(model),
    }


def save(path: Path, X: sp.csr_matrix, y: Array) -> None:
    """Write rows and labels for ``load``."""
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)


def load(path: Path) -> tuple[sp.csr_matrix, Array]:
    """Rows and labels as ``save`` wrote them."""
    with np.load(path) as arrays:
        X = sp.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
        )
        return X, arrays["y"]


def sample(X: sp.csr_matrix, y: Array) -> tuple[sp.csr_matrix, Array]:
    """A few rows of each class."""
    each = WARM_UP_ROWS // 2
    rows = np.concatenate([np.flatnonzero(y > 0)[:each], np.flatnonzero(y < 0)[:each]])
    return sp.csr_matrix(X[rows]), y[rows]


def memory(entry: str) -> int | None:
    """Bytes of this process by ``/proc/self/status``; None where there is no such file."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(entry)), None)


def reset_peak() -> None:
    """Reset VmHWM to the present size."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def describe(error: Exception) -> str:
    """An exception on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


if __name__ == "__main__":
    main()
