"""Describing files."""

from __future__ import annotations

from pathlib import Path

from certsvm.data import save_libsvm
from tests.cli.running import noisy, run, write


def test_a_model(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", "-c", 2, cwd=tmp_path)
    about = run("info", "data.model", "--json", cwd=tmp_path).json
    assert about["classes"] == [-1, 1]
    assert about["parameters"]["C"] == 2
    assert about["certificates"][0]["met"]
    assert about["fingerprint"]["n_rows"] == 300
    assert "2 classes: -1, 1" in run("info", "data.model", cwd=tmp_path).out


def test_data(tmp_path: Path) -> None:
    X, y = noisy()
    for zero_based in (False, True):
        save_libsvm(tmp_path / "data", X, y, zero_based=zero_based)
        about = run("info", "data", "--json", cwd=tmp_path).json
        assert (about["rows"], about["columns"], about["values"]) == (*X.shape, X.nnz)
        assert about["classes"] == {"-1": int((y == -1).sum()), "1": int((y == 1).sum())}
        assert about["kind"] == "libsvm text" + (", zero-based" if zero_based else "")
