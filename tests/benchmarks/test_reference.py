"""The interval that other solvers are measured against."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data import DataSet
from benchmarks.reference import fingerprint, objective, reference
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


def test_an_interval_is_computed_once_unless_it_is_too_wide(tmp_path: Path, capsys: Any) -> None:
    store = Store(tmp_path / "store")
    first = reference(DATA, 0.5, 1e-4, 60.0, store)
    assert "reference to" in capsys.readouterr().err
    assert reference(DATA, 0.5, 1e-4, 60.0, store) == first
    assert capsys.readouterr().err == ""
    key = f"set {fingerprint(DATA.X, DATA.y)} C=0.5"
    store.put("references", key, {"primal": 2 * first.dual, "dual": first.dual, "seconds": 1.0})
    assert reference(DATA, 0.5, 1e-4, 60.0, store).gap <= 1e-6


def test_the_fingerprint_changes_with_rows_and_labels() -> None:
    assert fingerprint(DATA.X, DATA.y) == fingerprint(DATA.X.copy(), DATA.y.copy())
    assert fingerprint(2 * DATA.X, DATA.y) != fingerprint(DATA.X, DATA.y)
    assert fingerprint(DATA.X, -DATA.y) != fingerprint(DATA.X, DATA.y)
