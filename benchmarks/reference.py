"""The reference of a comparison: an interval that is proved to contain the optimum."""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.data import DataSet
from benchmarks.store import Store
from certsvm.kernels.losses import loss_named
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import make_solver
from certsvm.training.loop import train
from certsvm.training.settings import INTERRUPTED

Array = NDArray[np.float64]
NO_LIMIT = 10**9
"""Passes; time is limited instead."""
FINER = 0.01
"""The interval is made narrower than the finest accuracy asked for by this factor."""


@dataclass(frozen=True)
class Reference:
    """J(w) of the best w and L of the best dual point for one data set and one C."""

    primal: float
    dual: float
    seconds: float

    @property
    def gap(self) -> float:
        """The relative width of the interval."""
        return self.primal / self.dual - 1

    def accuracy(self, objective: float) -> float:
        """An upper bound on the relative distance of an objective value to the optimum."""
        return objective / self.dual - 1


def objective(data: DataSet, C: float, w: Array, loss: str = "hinge") -> float:
    """J(w) with SciPy, the same for all systems."""
    losses = np.maximum(0.0, 1.0 - data.y * (data.X @ w))
    if loss == "squared_hinge":
        losses = losses**2
    return float(0.5 * w @ w + C * losses.sum())


def reference(
    data: DataSet,
    C: float,
    finest: float,
    max_seconds: float,
    store: Store,
    loss: str = "hinge",
) -> Reference:
    """Compute the interval, unless the store has one that is narrow enough or took as long."""
    key = f"{data.name} {fingerprint(data.X, data.y)} C={C:g}"
    if loss != "hinge":
        key += f" {loss}"
    known: dict[str, Any] | None = store.get("references", key)
    if known is not None:
        interval = Reference(**known)
        if interval.gap <= finest * FINER or interval.seconds >= max_seconds:
            return interval
    print(f"{data.name}, C = {C:g}: reference", end=" ", file=sys.stderr, flush=True)
    began = time.perf_counter()
    result = train(
        Problem(Rows(data.X), data.y, C=C, loss=loss_named(loss)), make_solver("auto"),
        tol=finest * FINER, seed=0, max_iter=NO_LIMIT, max_time=max_seconds,
    )  # fmt: skip
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    c = result.certificate
    interval = Reference(
        c.primal + c.primal_rounding, c.dual - c.dual_rounding, time.perf_counter() - began
    )
    store.put("references", key, asdict(interval))
    print(f"to {interval.gap:.1e} in {interval.seconds:.1f} s", file=sys.stderr, flush=True)
    return interval


def fingerprint(X: sp.csr_matrix, y: Array) -> str:
    """A digest of the data: a set of the same name with other rows is another set."""
    digest = hashlib.sha256(repr(X.shape).encode())
    for array in (X.data, X.indices, X.indptr, y):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]
