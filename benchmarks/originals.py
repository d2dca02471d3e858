"""Our solvers beside the published programs that they are named after: passes or rounds.

    python -m benchmarks.originals --data FOLDER

measures ours and writes docs/originals.md from them and from the figures of the originals, which
were taken once and are quoted with program and version.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any, cast

import numpy as np

from benchmarks import machine
from benchmarks.data import OPTIMA, available
from benchmarks.markdown import grid, measured_on
from certsvm.certificates.primal import primal_bound
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.resources import single_threaded_blas
from certsvm.solvers import DCD, OCAS, SGDQN, Pegasos, Solver, SVMperf, SvmSgd
from certsvm.solvers.base import Options

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "originals.json"
PAGE = ROOT / "docs" / "originals.md"
TEMPLATE = Path(__file__).with_name("originals-template.md")
SETS = ["a9a", "w8a", "debian"]
VALUES_OF_C = (0.05, 1.0)
ACCURACIES = (1e-2, 1e-3)
SEEDS = 5
# Cutting planes make more rounds than others make passes, at less cost.
MOST_PASSES, MOST_ROUNDS, MOST_SECONDS = 400, 1000, 120.0


@dataclass(frozen=True)
class Pair:
    """A solver of ours, configured like its original.

    ``shuffled`` rows are permuted with the seed, as they were for the original. ``given`` names
    parameters that are taken from the run of the original on the same rows.
    """

    solver: Solver
    seeds: int = SEEDS
    unit: str = "passes"
    shuffled: bool = False
    given: tuple[str, ...] = ()


_SGDQN = SGDQN(precision="single", shuffle=False, restart_decay=True, clip_decay=False)
PAIRS = {
    "Pegasos": Pair(Pegasos(first_t=2)),
    "SvmSgd": Pair(SvmSgd(shuffle=False), shuffled=True),
    "SGD-QN": Pair(_SGDQN, shuffled=True),
    "SGD-QN, its t0 and skip": Pair(_SGDQN, shuffled=True, given=("t0", "skip")),
    "DCD": Pair(DCD()),
    "OCAS": Pair(OCAS(), seeds=1, unit="rounds"),
    "SVMperf": Pair(SVMperf(), seeds=1, unit="rounds"),
}


def measure(folder: Path, originals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Count passes for each pair, set, C and accuracy."""
    quoted = {key(record): record for record in originals}
    records = []
    for name, X, y in available(folder, SETS):
        for C in VALUES_OF_C:
            for system, pair in PAIRS.items():
                about = quoted[system, name, C, ACCURACIES[0]]
                runs = [
                    _run(pair, X, y, C, OPTIMA[name][C][0], about, s) for s in range(pair.seeds)
                ]
                for i, accuracy in enumerate(ACCURACIES):
                    counts = [run[i] for run in runs]
                    record = {"system": system, "set": name, "C": C, "accuracy": accuracy}
                    records.append(record | {"counts": counts})
                    print(records[-1], file=sys.stderr, flush=True)
    return records


def _run(
    pair: Pair, X: Any, y: Any, C: float, optimum: float, about: dict[str, Any], seed: int
) -> list[int | None]:
    if pair.shuffled:
        order = np.random.default_rng(seed).permutation(y.size)
        X, y = X[order], y[order]
    solver = pair.solver
    if isinstance(solver, SGDQN):
        X = X.astype(np.float32)
    for parameter in pair.given:
        solver = replace(cast(Any, solver), **{parameter: about[parameter][seed]})
    most = MOST_PASSES if pair.unit == "passes" else MOST_ROUNDS
    return passes(Problem(Rows(X), y, C=C), solver, optimum, seed, most)


def passes(
    problem: Problem, solver: Solver, optimum: float, seed: int, most: int
) -> list[int | None]:
    """The number of passes to each accuracy; None if it takes more than there may be."""
    counts: list[int | None] = [None] * len(ACCURACIES)
    with single_threaded_blas():
        began = time.perf_counter()
        run = solver.start(problem, Options(np.random.default_rng(seed), ACCURACIES[-1]))
        for count in range(1, most + 1):
            run.epoch()
            w = next(run.candidates())
            if not np.isfinite(w).all() or time.perf_counter() - began > MOST_SECONDS:
                break
            accuracy = primal_bound(problem, w).value / optimum - 1.0
            for i, goal in enumerate(ACCURACIES):
                if counts[i] is None and accuracy <= goal:
                    counts[i] = count
            if None not in counts:
                break
    return counts


def described(counts: list[int | None]) -> str:
    """The median and the range; a count that was not reached is larger than all others.

    Examples
    --------
    >>> described([4, 2, 3])
    '3 (2–4)'
    >>> described([4, 2, None])
    '4 (2–more than 400)'
    >>> described([7, 7, 7])
    '7'
    """
    beyond = f"more than {MOST_PASSES}"
    in_order = sorted(np.inf if count is None else count for count in counts)
    low, middle, high = (
        f"{value:g}" if np.isfinite(value) else beyond
        for value in (in_order[0], statistics.median_high(in_order), in_order[-1])
    )
    return middle if low == high else f"{middle} ({low}–{high})"


def page(results: dict[str, Any]) -> str:
    """The text of docs/originals.md."""
    ours = {key(record): record for record in results["ours"]}
    rows = []
    for quoted in results["originals"]:
        record = ours.get(key(quoted))
        rows.append(
            [
                quoted["system"],
                quoted["set"],
                f"{quoted['C']:g}",
                f"{quoted['accuracy']:g}",
                PAIRS[quoted["system"]].unit,
                described(quoted["counts"]),
                described(record["counts"]) if record else "–",
            ]
        )
    programs = [[p["system"], p["program"], p["how"]] for p in results["programs"]]
    text = Template(TEMPLATE.read_text()).substitute(
        measured_on=measured_on(results["machine"]),
        seeds=SEEDS,
        passes=MOST_PASSES,
        programs="\n".join(grid(["system", "original", "how it was run"], programs)),
        table="\n".join(grid(["system", "set", "C", "accuracy", "unit", "original", "ours"], rows)),
    )
    return text.rstrip() + "\n"


def key(record: dict[str, Any]) -> tuple[str, str, float, float]:
    """What a count is of."""
    return record["system"], record["set"], record["C"], record["accuracy"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.originals", description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="folder of libsvm files; without it only the page"
    )
    results = json.loads(RESULTS.read_text())
    folder = parser.parse_args().data
    if folder is not None:
        results |= {"machine": machine.describe(), "ours": measure(folder, results["originals"])}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
