"""Comparing solvers from the shell."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import run, write


def test_comparing(tmp_path: Path) -> None:
    write(tmp_path / "data")
    table = run("compare", "data", "--solvers", "auto,dcd,pegasos", "--max-iter", 20, "--json",
                cwd=tmp_path).json["table"]  # fmt: skip
    assert [row["solver"] for row in table] == ["auto", "dcd", "pegasos"]


def test_more_than_two_classes(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    words = ("compare", "data", "--solvers", "dcd", "--json")
    refused = run(*words, cwd=tmp_path)
    assert refused.code == 2
    assert "data has 3 classes (0, 1, 2)" in refused.err
    assert "--positive 0" in refused.err
    found = [run(*words, "--positive", k, cwd=tmp_path).json["primal"] for k in range(3)]
    assert len(set(found)) == 3
    unknown = run(*words, "--positive", "7", cwd=tmp_path)
    assert unknown.code == 2
    assert "--positive 7: there is no class 7; there are 0, 1, 2" in unknown.err
