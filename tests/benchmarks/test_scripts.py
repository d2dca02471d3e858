"""The benchmarks of ``python -m benchmarks`` run to their end, on small data."""

import json
import sys
from pathlib import Path

import pytest
from sklearn.datasets import dump_svmlight_file

from benchmarks import auto, kernels, master, optima, passes, selection, small, systems
from benchmarks.__main__ import main
from certsvm.demo import text_like

QUICK = "optima passes path stability systems auto small kernels master selection"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small set; short limits."""
    dump_svmlight_file(*text_like(n_documents=60, n_words=20, length=10), str(tmp_path / "a9a"))
    monkeypatch.setattr(optima, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(systems, "PASSES", 3)
    monkeypatch.setattr(passes, "MOST_PASSES", 5)
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


@pytest.mark.parametrize("name", QUICK.split())
def test_a_script_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [name, "--data", str(folder), "--out", str(folder / "out")]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    main()
    table = json.loads((folder / "out" / f"{name}.json").read_text())["table"]
    assert table
    assert all(set(row) == set(table[0]) for row in table)
