"""Passes over a file until a certificate: dual coordinates with a cache, and SGD.

Each set is converted to a file of about ten blocks, rows in random order. There is no intercept.
Passes are those of training; one before them surveys the file. `block-dcd` may keep a share of the
rows, the column "cache"; `sgd-s` keeps none. Training ends after 100 passes. Seconds are of one run
each, on one thread of a busy machine, with the file in the system's cache.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import MissingDataError, find
from certsvm.files.block_file import BlockFile
from certsvm.files.conversion import convert
from certsvm.files.streams import BlockStream
from certsvm.problem.base import Objective
from certsvm.problem.problems import StreamedProblem
from certsvm.solvers import BlockDCD, SGDs, Solver
from certsvm.training.loop import train

# The share of the rows that may be cached.
SETS = {"debian": 0.15, "news20": 0.3, "moneyfx": 0.15, "a9a": 0.15, "w8a": 0.15, "kdd99": 0.15}
VALUES_OF_C = (1.0, 10.0)
TOLERANCES = (1e-2, 1e-4)
BLOCKS, MOST_PASSES = 10, 100
MEMORY = 4_000_000_000


def run(folder: Path | None) -> list[dict[str, Any]]:
    rows = []
    for name, cache in SETS.items():
        with tempfile.TemporaryDirectory() as scratch:
            blocks = Path(scratch) / "blocks.arrow"
            try:
                if folder is None:
                    raise MissingDataError("no data folder given (--data)")
                size = _converted(find(folder, name), blocks)
            except MissingDataError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            stream = BlockStream(BlockFile(blocks))
            for C in VALUES_OF_C:
                for solver, share in ((BlockDCD(cache=cache), cache), (SGDs(), 0.0)):
                    rows.append({
                        "data": name, "MB": round(size / 1e6), "rows": stream.n_rows,
                        "columns": stream.n_columns, "blocks": stream.n_blocks, "C": C,
                        "solver": solver.name, "cache": f"{share:.0%}",
                        **_measured(stream, C, solver),
                    })  # fmt: skip
                    print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _converted(text: Path, blocks: Path) -> int:
    """Convert twice, since the size of the blocks depends on that of the file; return its size."""
    how: dict[str, Any] = {"memory": MEMORY, "shuffle": True, "seed": 0}
    convert(text, blocks, block_bytes=16_000_000, **how)
    size = os.path.getsize(blocks)
    convert(text, blocks, block_bytes=size // BLOCKS, **how)
    return size


def _measured(stream: BlockStream, C: float, solver: Solver) -> dict[str, Any]:
    """The passes and seconds to each tolerance."""
    problem = StreamedProblem(stream, stream.classes.size - 1, Objective(C))
    exact = solver.name == BlockDCD.name
    result = train(
        problem, solver, tol=min(TOLERANCES) if exact else max(TOLERANCES), seed=0,
        max_iter=MOST_PASSES,
    )  # fmt: skip
    found: dict[str, Any] = {}
    for tol in TOLERANCES:
        record = next((r for r in result.history if r.relative_gap <= tol), None)
        tried = exact or tol == max(TOLERANCES)
        missing = f"> {MOST_PASSES}" if tried else ""
        found[f"passes to {tol:g}"] = missing if record is None else record.passes
        found[f"seconds to {tol:g}"] = "" if record is None else round(record.seconds, 2)
    return found
