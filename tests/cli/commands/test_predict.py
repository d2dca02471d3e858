"""Predicting from the shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from certsvm import Model
from tests.cli.running import run, write


def test_columns_of_tables_are_found_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    kinds = np.where(X[:, 0] > 0, "b", "a")

    def table(name: str, columns: str) -> None:
        values = {"x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "kind": kinds}
        rows = zip(*(values[c] for c in columns.split(",")), strict=True)
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / name).write_text("\n".join([columns, *lines]) + "\n")

    table("train.csv", "x,y,z,kind")
    table("other.csv", "z,kind,x,y")
    table("bare.csv", "y,x,z")
    table("short.csv", "y,x,kind")
    run("train", "train.csv", "-q", "-o", "m", cwd=tmp_path)
    expected = run("predict", "m", "train.csv", cwd=tmp_path)
    assert "accuracy" in expected.err
    assert run("predict", "m", "other.csv", cwd=tmp_path) == expected
    bare = run("predict", "m", "bare.csv", cwd=tmp_path)
    assert (bare.out, bare.err) == (expected.out, "")
    short = run("predict", "m", "short.csv", cwd=tmp_path)
    assert short.code == 2
    assert "no column 'z'" in short.err


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    before = write(tmp_path / "data").read_bytes()
    run("train", "data", "-q", cwd=tmp_path)
    for output in ("data", "data.model"):
        refused = run("predict", "data.model", "data", "-o", output, cwd=tmp_path)
        assert refused.code == 2
        assert "would be overwritten" in refused.err
    assert (tmp_path / "data").read_bytes() == before
    Model.load(tmp_path / "data.model")
