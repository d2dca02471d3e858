"""One cell of the comparison: a data set, a C and an accuracy, for all systems."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import DataSet
from benchmarks.peers.adapters import ADAPTERS, Ours
from benchmarks.peers.oracle import Search, Trial, loosest
from benchmarks.peers.process import Fit, Worker
from benchmarks.reference import Reference, objective
from benchmarks.store import Store

# A peer that is this many times slower than the fastest and takes this long is measured once.
_TOO_SLOW, _TOO_LONG = 10.0, 5.0
# The reference interval should be this much narrower than the accuracy.
_NARROW = 0.1


@dataclass
class Systems:
    """The systems, with their interpreters and versions, and the number of threads."""

    pythons: dict[str, Path]
    versions: dict[str, str]
    threads: int
    loss: str = "hinge"


class Bench:
    """All systems on one data set; stores every trial."""

    def __init__(
        self,
        data: DataSet,
        identity: str,
        systems: Systems,
        workers: dict[str, Worker],
        store: Store,
        limit: float,
    ) -> None:
        self.data = data
        self.identity = identity
        self._systems = systems
        self._workers = workers
        self._store = store
        self._limit = limit

    @property
    def _loss(self) -> str:
        """The loss in keys of the store; the hinge goes without saying."""
        return "" if self._systems.loss == "hinge" else f" {self._systems.loss}"

    def key(self, C: float, accuracy: float, repeats: int) -> str:
        """Everything that a finished cell depends on."""
        versions = ", ".join(f"{n} {v}" for n, v in self._systems.versions.items())
        return (
            f"{self.identity}{self._loss} C={C:g} accuracy={accuracy:g} "
            f"threads={self._systems.threads} "
            f"repeats={repeats} limit={self._limit:g}: {versions}"
        )

    def measure(
        self, C: float, target: float, repeats: int, reference: Reference
    ) -> dict[str, dict[str, Any]]:
        """Find each system's setting, then let them fit in turn."""
        searches = {name: self._search(name, C, target, reference) for name in self._workers}
        tuned = {name: s.best for name, s in searches.items() if s.best is not None}
        fastest = min((t.seconds or 0.0 for t in tuned.values()), default=0.0)
        again = {
            name: trial
            for name, trial in tuned.items()
            if name == Ours.name or (trial.seconds or 0.0) <= max(_TOO_LONG, _TOO_SLOW * fastest)
        }
        fits: dict[str, list[Trial]] = {name: [] for name in tuned}
        for _ in range(repeats):
            for name, trial in again.items():
                fits[name].append(self._fit(name, C, trial.variant, trial.setting, self._limit))
                self._say(name, C, fits[name][-1], reference)
        return {
            name: self._result(name, C, target, search, fits.get(name, []), reference)
            for name, search in searches.items()
        }

    def _search(self, name: str, C: float, target: float, reference: Reference) -> Search:
        """The oracle's search, with stored trials where there are any."""
        key = self._trials_key(name, C)
        known: list[dict[str, Any]] = self._store.get("trials", key) or []

        def fit(variant: str, setting: float, limit: float) -> Trial:
            for entry in known:
                trial = Trial(**entry)
                if (trial.variant, trial.setting) == (variant, setting):
                    if trial.exceeded is None and (trial.seconds or 0.0) > limit:
                        return Trial(variant, setting, exceeded=limit)
                    if trial.exceeded is None or trial.exceeded >= limit:
                        return trial
                    known.remove(entry)
                    break
            trial = self._fit(name, C, variant, setting, limit)
            known.append(trial.describe())
            self._store.put("trials", key, known)
            self._say(name, C, trial, reference)
            return trial

        return loosest(
            ADAPTERS[name], target, self._limit, fit, reference.accuracy, self._systems.loss
        )

    def _fit(self, name: str, C: float, variant: str, setting: float, limit: float) -> Trial:
        fit: Fit = self._workers[name].fit(C, variant, setting, limit)
        trial = Trial(variant, setting, fit.seconds, failed=fit.failed, exceeded=fit.exceeded)
        if fit.w is not None:
            trial.memory = fit.memory
            trial.certified = bool(fit.remarks.get("met", True))
            trial.objective = objective(self.data, C, fit.w, self._systems.loss)
            if not np.isfinite(trial.objective):
                trial.objective, trial.failed = None, "the answer is not finite"
        return trial

    def _result(
        self,
        name: str,
        C: float,
        target: float,
        search: Search,
        fits: Sequence[Trial],
        reference: Reference,
    ) -> dict[str, Any]:
        """The best of the rounds, or of the search if there were none."""
        tried = [Trial(**entry) for entry in self._store.get("trials", self._trials_key(name, C))]
        result: dict[str, Any] = {
            "version": self._systems.versions[name],
            "memory": max(
                (t.memory for t in [*tried, *fits] if t.memory is not None), default=None
            ),
        }
        if search.best is None:
            return result | {"seconds": None, "why": search.why}
        good = [
            t
            for t in fits
            if t.objective is not None and t.certified and reference.accuracy(t.objective) <= target
        ]
        best = min(good or [search.best], key=lambda t: t.seconds or 0.0)
        assert best.objective is not None
        return result | {
            "seconds": best.seconds,
            "accuracy": reference.accuracy(best.objective),
            "knob": ADAPTERS[name].knob,
            "variant": best.variant,
            "setting": best.setting,
            "repeated": bool(good),
            "searching": search.best.describe(),
            "rounds": [t.describe() for t in fits],
        }

    def _trials_key(self, name: str, C: float) -> str:
        version, threads = self._systems.versions[name], self._systems.threads
        return f"{self.identity}{self._loss} C={C:g} threads={threads}: {name} {version}"

    def _say(self, name: str, C: float, trial: Trial, reference: Reference) -> None:
        knob = f"{ADAPTERS[name].knob} {trial.setting:g}"
        if trial.variant:
            knob = f"{trial.variant}, {knob}"
        if trial.objective is not None:
            came = f"{trial.seconds:.3f} s, {reference.accuracy(trial.objective):.1e}"
        else:
            came = trial.failed or f"over {trial.exceeded:g} s"
        print(f"{self.data.name}, C = {C:g}, {name} ({knob}): {came}", file=sys.stderr, flush=True)


def wide(reference: Reference, target: float) -> bool:
    """Whether the reference is too inaccurate for accuracies to be taken at face value."""
    return reference.gap > _NARROW * target
