"""The interval that other solvers are measured against."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.data import DataSet
from benchmarks.reference import objective, reference
from benchmarks.store import Store
from tests.problems import Case, optimum

X = np.random.default_rng(0).standard_normal((30, 3))
DATA = DataSet("set", sp.csr_matrix(X), np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1.0, -1.0))


def test_the_interval_contains_the_optimum(tmp_path: Path) -> None:
    low, high = optimum(Case(X, DATA.y, None, 0.5, 0.0, "csr-float64-int32"))
    interval = reference(DATA, 0.5, 1e-4, 60.0, Store(tmp_path / "store"))
    assert interval.dual <= (1 + 1e-12) * high
    assert interval.primal >= (1 - 1e-12) * low
    assert 0.0 <= interval.gap <= 1e-6
    assert interval.accuracy(objective(DATA, 0.5, np.zeros(3))) > 0.1
