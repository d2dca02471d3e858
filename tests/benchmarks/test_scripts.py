"""The benchmarks of ``python -m benchmarks`` run to their end, on small data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from benchmarks import (
    auto,
    kernels,
    master,
    optima,
    selection,
    simulation,
    small,
    streaming,
    systems,
)
from benchmarks.__main__ import main
from benchmarks.data import OPTIMA, available
from certsvm.demo import text_like
from certsvm.files import load_libsvm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small set; short limits."""
    dump_svmlight_file(*text_like(n_documents=60, n_words=20, length=10), str(tmp_path / "a9a"))
    monkeypatch.setattr(optima, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(systems, "PASSES", 3)
    monkeypatch.setattr(systems, "DUAL", systems.DUAL[:1])
    monkeypatch.setattr(systems, "SINGLE", systems.SINGLE[:1])
    for module in (auto, kernels, master, small):
        monkeypatch.setattr(module, "REPEATS", 1)
    for module in (kernels, master):
        few = text_like(n_documents=200, n_words=50, length=10)
        monkeypatch.setattr(module, "text_like", lambda few=few, **_: few)
    monkeypatch.setattr(small, "ROUNDS", 1)
    monkeypatch.setattr(master, "ROUNDS", 3)
    monkeypatch.setattr(master, "SAVED", (2, 3))
    monkeypatch.setattr(selection, "EPS", {"a9a": 0.3})
    monkeypatch.setattr(selection, "RANGE", (1e-3, 1e-1))
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "optima",
        "path",
        "stability",
        "systems",
        "auto",
        "small",
        "kernels",
        "master",
        "selection",
        "simulation",
    ],
)
def test_a_script_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [name, "--data", str(folder), "--out", str(folder / "out")]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    main()
    table = json.loads((folder / "out" / f"{name}.json").read_text())["table"]
    assert table
    assert all(set(row) == set(table[0]) for row in table)


def test_an_unknown_benchmark_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "kernel"])
    with pytest.raises(SystemExit):
        main()
    assert "unknown benchmark kernel" in capsys.readouterr().err


def test_missing_sets_are_left_out(folder: Path, capsys: Any) -> None:
    (data,) = available(folder)
    assert data.name == "a9a"
    assert set(data.y) == {-1.0, 1.0}
    missing = capsys.readouterr().err
    assert all(f"{name} is left out: " in missing for name in OPTIMA if name != "a9a")


def test_generated_text_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "ROWS", 40)
    monkeypatch.setattr(streaming, "CHUNK", 20)
    streaming.generate(tmp_path / "text")
    X, y = load_libsvm(tmp_path / "text")
    assert X.shape[0] == y.size == 40
    assert X.shape[1] <= streaming.COLUMNS
    np.testing.assert_array_equal(np.diff(X.indptr), streaming.PER_ROW)
    assert set(y) == {-1.0, 1.0}


def test_simulated_rounds_without_a_network_cost_the_slowest_work() -> None:
    free = simulation.Network(bandwidth=np.inf, latency=0.0, per_task=0.0)
    one, ten = (simulation.Shape(1e6, 1e8, 100.0, workers) for workers in (1, 10))
    for newton in (True, False):
        alone, shared = (simulation.simulate(shape, free, newton, 0) for shape in (one, ten))
        assert 0.0 < shared < alone
    assert simulation.received([3.0, 1.0, 2.0], 10.0, simulation.Network(bandwidth=1.0)) == 31.0
