"""Ours against other people's solvers, to the same true accuracy.

The fit alone is timed. Every peer gets the loosest setting that reaches the accuracy, found by a
search beforehand; ours stops by its own certificate. A killed run resumes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import machine
from benchmarks.data import OPTIMA, OTHERS, DataSet, available
from benchmarks.peers import environments, growth, process, report, worker
from benchmarks.peers.adapters import ADAPTERS, PEERS, Ours
from benchmarks.peers.cell import Bench, Systems, wide
from benchmarks.peers.process import Worker
from benchmarks.reference import fingerprint, reference
from benchmarks.store import Store

RESULTS = Path(__file__).parents[1] / "results"
CACHE = Path(".benchmark-cache")


def main() -> None:
    parser = _parser()
    arguments = parser.parse_args()
    unknown = set(arguments.peers) - set(PEERS)
    if unknown:
        parser.error(f"unknown peer {', '.join(sorted(unknown))}")
    if arguments.install:
        if arguments.environments is None:
            parser.error("--install needs --environments, the folder to make them in")
        environments.install(arguments.peers, arguments.environments)
    if arguments.growth:
        growth.write(arguments.out, arguments.repeats)
    if arguments.data is None:
        if not (arguments.install or arguments.growth):
            parser.error("which data? --data names a folder of libsvm files")
        return
    compare(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="folder of libsvm files, plain or .xz")
    add("--sets", nargs="+", default=[*OPTIMA, *OTHERS], help="names of files with two labels")
    add("--peers", nargs="+", default=PEERS, help=f"which: {', '.join(PEERS)} (default: all)")
    add("--C", nargs="+", type=float, default=[0.05, 1.0, 10.0])
    add("--loss", default="hinge", choices=("hinge", "squared_hinge"))
    add("--accuracies", nargs="+", type=float, default=[0.01, 1e-6], help="true, relative")
    add("--repeats", type=int, default=3, help="fits of each system in turn; the best counts")
    add("--max-seconds", type=float, default=60.0, help="for one fit")
    add("--reference-seconds", type=float, default=600.0, help="for the optimum of a set and a C")
    add("--threads", type=int, default=1)
    add("--environments", type=Path, help="folder of virtual environments named after packages")
    add("--install", action="store_true", help="make these environments")
    add("--growth", action="store_true", help="measure how our time grows with the data")
    add("--fresh", action="store_true", help="ignore stored measurements")
    add("--cache", type=Path, default=CACHE, help="folder of stored measurements")
    add("--out", type=Path, default=RESULTS, help="folder for the tables")
    return parser


def compare(arguments: argparse.Namespace) -> None:
    """Measure the missing cells and write the tables; Ctrl-C keeps finished cells."""
    store = Store(arguments.cache / "peers.json", fresh=arguments.fresh)
    peers = [name for name in arguments.peers if ADAPTERS[name].variants_for(arguments.loss)]
    names = [Ours.name, *peers]
    pythons = {name: environments.python_for(name, arguments.environments) for name in names}
    versions, missing = process.versions(pythons)
    for name, why in missing.items():
        _say(f"{name} is skipped: {why}")
    if Ours.name not in versions:
        raise SystemExit("certsvm itself cannot be imported")
    systems = Systems(pythons, versions, arguments.threads, arguments.loss)
    cells: list[dict[str, Any]] = []
    try:
        for data in available(arguments.data, arguments.sets):
            _one_set(data, arguments, systems, store, cells)
    except KeyboardInterrupt:
        _say("interrupted; finished cells are kept")
        raise SystemExit(130) from None
    finally:
        arguments.out.mkdir(parents=True, exist_ok=True)
        results = {
            "machine": machine.describe(),
            "threads": arguments.threads,
            "loss": arguments.loss,
            "repeats": arguments.repeats,
            "max_seconds": arguments.max_seconds,
            "versions": versions,
            "skipped": missing,
            "cells": cells,
        }
        (arguments.out / "peers.json").write_text(json.dumps(results, indent=1) + "\n")
        report.write(results, arguments.out)


def _one_set(
    data: DataSet,
    arguments: argparse.Namespace,
    systems: Systems,
    store: Store,
    cells: list[dict[str, Any]],
) -> None:
    """Measure all cells of a data set, with a worker for each system."""
    identity = f"{data.name} {fingerprint(data.X, data.y)}"
    folder = (arguments.cache / identity.replace(" ", "-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "data.npz"
    if not path.exists():
        worker.save(path, data.X, data.y)
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(
                Worker(systems.pythons[name], name, path, systems.threads, systems.loss)
            )
            for name in systems.versions
        }
        bench = Bench(data, identity, systems, workers, store, arguments.max_seconds)
        for C in arguments.C:
            for accuracy in arguments.accuracies:
                key = bench.key(C, accuracy, arguments.repeats)
                cell = store.get("cells", key)
                if cell is None:
                    finest = min(arguments.accuracies)
                    known = reference(
                        data, C, finest, arguments.reference_seconds, store, arguments.loss
                    )
                    cell = describe(data) | {
                        "C": C,
                        "accuracy": accuracy,
                        "reference": asdict(known),
                        "reference is wide": wide(known, accuracy),
                        "systems": bench.measure(C, accuracy, arguments.repeats, known),
                    }
                    store.put("cells", key, cell)
                else:
                    _say(f"{data.name}, C = {C:g}, to {accuracy:g}: done before")
                cells.append(cell)


def describe(data: DataSet) -> dict[str, Any]:
    """The size of a data set, and the time to read it once."""
    arrays = (data.X.data, data.X.indices, data.X.indptr)
    return {
        "set": data.name,
        "rows": data.X.shape[0],
        "columns": data.X.shape[1],
        "nonzeros": data.X.nnz,
        "bytes": sum(array.nbytes for array in arrays),
        "reading": reading_seconds(data.X),
    }


def reading_seconds(X: sp.csr_matrix, trying: float = 0.3) -> float:
    """Seconds to stream the values and the indices through the processor, at best."""
    best, until = np.inf, time.perf_counter() + trying
    while time.perf_counter() < until or best == np.inf:
        began = time.perf_counter()
        np.add.reduce(X.data)
        # In its own type: a conversion would cost more than the reading.
        np.add.reduce(X.indices, dtype=X.indices.dtype)
        best = min(best, time.perf_counter() - began)
    return float(best)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
