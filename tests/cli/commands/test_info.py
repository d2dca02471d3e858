"""Describing files."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "words",
    [("--label", "y"), ("--weight", "w"), ("--features", 9), ("--one-based",), ("--float32",)],
)
def test_a_model_is_no_data(words: tuple[object, ...], tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", cwd=tmp_path)
    refused = run("info", "data.model", *words, cwd=tmp_path)
    assert refused.code == 2
    assert "is for data files" in refused.err


@pytest.mark.parametrize("zero_based", [False, True])
def test_the_number_of_columns_of_text_can_be_given(zero_based: bool, tmp_path: Path) -> None:
    X, y = noisy()
    save_libsvm(tmp_path / "data", X, y, zero_based=zero_based)
    assert run("info", "data", "--features", 50, "--json", cwd=tmp_path).json["columns"] == 50
