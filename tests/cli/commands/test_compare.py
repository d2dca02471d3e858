"""Comparing solvers from the shell."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import run, write


def test_comparing(tmp_path: Path) -> None:
    write(tmp_path / "data")
    table = run("compare", "data", "--solvers", "auto,dcd,pegasos", "--max-iter", 20, "--json",
                cwd=tmp_path).json["table"]  # fmt: skip
    assert [row["solver"] for row in table] == ["auto", "dcd", "pegasos"]


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    before = write(tmp_path / "data").read_bytes()
    twice = run("compare", "data", "--solvers", "auto,auto", cwd=tmp_path)
    assert twice.code == 2
    assert "named twice" in twice.err
    refused = run("compare", "data", "--plot", "data", cwd=tmp_path)
    assert refused.code == 2
    assert "would be overwritten" in refused.err
    assert (tmp_path / "data").read_bytes() == before
