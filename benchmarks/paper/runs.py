"""The runs behind the tables: what each one measures, several at a time, stored as they finish."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import certsvm
from benchmarks.data import DataSet
from benchmarks.paper import accurate, lengths, systems, unfolded
from benchmarks.paper.sets import Recipe, Where, sets
from benchmarks.paper.systems import SYSTEMS, Outcome, Task
from benchmarks.paper.tables import Settings, Table, combined, summary
from benchmarks.reference import Reference, fingerprint, reference
from benchmarks.store import Store
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows

# The optimum is computed a hundred times as accurately as this: to 1e-8.
_OPTIMUM = 1e-6
# Steps in which the scale of Pegasos vanishes, if it does.
_UNFOLDED_STEPS = 20_000
_FEW_ROWS = 200


@dataclass(frozen=True)
class Run:
    """One system on one set at one C with one seed."""

    set: str
    kind: str
    C: float
    system: str
    seed: int

    def __str__(self) -> str:
        return f"{self.set}, C = {self.C:g}, {self.system}, seed {self.seed}"


@dataclass(frozen=True)
class Place:
    """Where a process finds the data."""

    where: Where
    cache: Path


def measure(run: Run, data: DataSet, optimum: Reference | None, settings: Settings) -> Any:
    """The result of a run, as JSON can hold it."""
    if run.kind == "gap":
        _compile(run.kind, run.system, data.X, data.y)
        problem = Problem(Rows(data.X), data.y, C=run.C)
        return accurate.measure(problem, run.system, settings.accurate_seconds, run.seed)
    if run.kind == "length":
        return lengths.measure(Problem(Rows(data.X), data.y, C=run.C), run.seed)
    assert optimum is not None
    system = SYSTEMS[run.system]
    X, y = data.X, data.y
    if system.single:
        X = X.astype(np.float32)
    if system.shuffled:
        order = np.random.default_rng(run.seed).permutation(X.shape[0])
        X, y = X[order], y[order]
    _compile(run.kind, run.system, X, y)
    task = Task(Problem(Rows(X), y, C=run.C), optimum, settings.seconds, run.seed)
    try:
        outcome = system.measure(task, settings.repeats)
    except ValueError as refusal:
        outcome = Outcome(failure=str(refusal))
    result: dict[str, Any] = {"parameter": system.parameter, "optimum gap": optimum.gap}
    result |= outcome.describe()
    if run.system == "Pegasos":
        result["unfolded fails at step"] = unfolded.steps_until_failure(
            data.X, data.y, run.C, _UNFOLDED_STEPS, run.seed
        )
    return result


def _compile(kind: str, name: str, X: sp.csr_matrix, y: NDArray[np.float64]) -> None:
    """Run a system on a few rows, so that no limit is spent on compilation.

    Kernels are compiled for the types of their arguments, once in a process.
    """
    key = (kind, name, X.dtype, X.indices.dtype)
    if key in _compiled:
        return
    few = Problem(Rows(X[:_FEW_ROWS]), y[:_FEW_ROWS])
    # A system that refuses the rows will say so when it is timed.
    with contextlib.suppress(ValueError):
        if kind == "gap":
            accurate.measure(few, name, 0.1, seed=0)
        else:
            # Any J is as low as this optimum.
            SYSTEMS[name].measure(Task(few, Reference(math.inf, math.inf, 0.0), 0.1), 1)
    _compiled.add(key)


_compiled: set[tuple[Any, ...]] = set()


def _measure_elsewhere(
    run: Run, place: Place, optimum: Reference | None, settings: Settings
) -> tuple[Any, float]:
    began = time.perf_counter()
    return measure(run, _loaded(run.set, place), optimum, settings), time.perf_counter() - began


@lru_cache(maxsize=1)
def _loaded(name: str, place: Place) -> DataSet:
    ((_, data),) = sets([name], place.where, place.cache)
    return data


class Bench:
    """Measures the tables, set by set or in several processes at once."""

    def __init__(self, place: Place, settings: Settings, store: Store) -> None:
        self._place = place
        self._settings = settings
        self._store = store
        self._identities: dict[str, str] = {}
        self._optima: dict[tuple[str, float], Reference] = {}
        self.described: list[dict[str, Any]] = []

    def measure(self, names: list[str], tables: list[Table]) -> Iterator[DataSet]:
        """Measure what the store does not have; yield each set before it is dropped.

        With several processes the sets are only prepared, and all runs come at the end, those of
        Table 1, which take longest, before the others.
        """
        waiting: list[Run] = []
        for recipe, data in sets(names, self._place.where, self._place.cache):
            self._prepare(recipe, data, tables)
            runs = [run for run in self._runs([data.name], tables) if self._stored(run) is None]
            if self._settings.jobs > 1:
                waiting += runs
            else:
                for run in runs:
                    began = time.perf_counter()
                    result = measure(run, data, self._optimum(run), self._settings)
                    self._keep(run, result, time.perf_counter() - began)
            yield data
        waiting.sort(key=lambda run: run.kind != "gap")
        self._measure_in_processes(waiting)

    def cells(self, table: Table) -> list[dict[str, Any]]:
        """The cells of a table for all sets whose runs have been measured."""
        cells = []
        for about in self.described:
            for C in table.C:
                for system in table.systems:
                    runs = [
                        self._stored(run)
                        for run in self._runs([about["set"]], [table])
                        if (run.C, run.system) == (C, system)
                    ]
                    known = [run for run in runs if run is not None]
                    if known:
                        cell = {"set": about["set"], "C": C, "system": system}
                        cells.append(cell | combined(known))
        return cells

    def _prepare(self, recipe: Recipe, data: DataSet, tables: list[Table]) -> None:
        self._identities[data.name] = f"{data.name} {fingerprint(data.X, data.y)}"
        # The optimum has a limit, too, and is computed by one of these or both.
        for system in ("Newton", "auto"):
            _compile("accuracy", system, data.X, data.y)
        for C in sorted({C for table in tables if table.kind == "accuracy" for C in table.C}):
            self._optima[data.name, C] = reference(
                data, C, _OPTIMUM, self._settings.optimum_seconds, self._store
            )
        self.described.append(
            {
                "set": data.name,
                "of": recipe.of,
                "note": recipe.note,
                "rows": data.X.shape[0],
                "columns": data.X.shape[1],
                "nonzeros": int(data.X.nnz),
            }
        )

    def _runs(self, names: list[str], tables: list[Table]) -> list[Run]:
        runs = [
            Run(name, table.kind, C, system, seed)
            for name in names
            for table in tables
            for C in table.C
            for system in table.systems
            for seed in range(1 if table.kind == "gap" else self._settings.seeds)
        ]
        return list(dict.fromkeys(runs))

    def _measure_in_processes(self, runs: list[Run]) -> None:
        if not runs:
            return
        executor = ProcessPoolExecutor(self._settings.jobs, mp_context=get_context("spawn"))
        try:
            futures = {
                executor.submit(
                    _measure_elsewhere, run, self._place, self._optimum(run), self._settings
                ): run
                for run in runs
            }
            for future in as_completed(futures):
                self._keep(futures[future], *future.result())
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def _optimum(self, run: Run) -> Reference | None:
        return self._optima.get((run.set, run.C)) if run.kind == "accuracy" else None

    def _stored(self, run: Run) -> dict[str, Any] | None:
        result: dict[str, Any] | None = self._store.get("cells", self._key(run))
        return result

    def _keep(self, run: Run, result: dict[str, Any], took: float) -> None:
        self._store.put("cells", self._key(run), result)
        print(f"{run}: {summary(result)} (took {took:.1f} s)", file=sys.stderr, flush=True)

    def _key(self, run: Run) -> str:
        s = self._settings
        limit = s.accurate_seconds if run.kind == "gap" else s.seconds
        return (
            f"{self._identities[run.set]} {run.kind} C={run.C:g} {run.system} seed={run.seed} "
            f"limit={limit:g} repeats={s.repeats} jobs={s.jobs}: {sources()}"
        )


@cache
def sources() -> str:
    """Version and digest of everything measured: the library, and how systems are run."""
    digest = hashlib.sha256()
    files = sorted(Path(certsvm.__file__).parent.rglob("*.py"))
    measured = (systems, accurate, lengths, unfolded)
    for path in [*files, *(Path(str(module.__file__)) for module in measured)]:
        digest.update(path.read_bytes())
    return f"{certsvm.__version__}+{digest.hexdigest()[:8]}"
