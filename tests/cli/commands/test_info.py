"""What is in files, and models of liblinear."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certsvm import Certificate, Model
from certsvm.files import save_libsvm
from tests.cli.running import noisy, refuse, run, write


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


@pytest.mark.parametrize("zero_based", [False, True])
def test_the_number_of_columns_of_text_can_be_given(zero_based: bool, tmp_path: Path) -> None:
    X, y = noisy()
    save_libsvm(tmp_path / "data", X, y, zero_based=zero_based)
    assert run("info", "data", "--features", 50, "--json", cwd=tmp_path).json["columns"] == 50


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    nasty = "spam\x1b[2K\x9b1A\nclass x: proved"
    Model(
        coef=np.ones((3, 1)), intercept=np.zeros(3), classes=np.array(["a", "b", nasty]),
        class_weight=np.ones(3), feature_names=("f\x1b[1m",), certsvm_version="1\x1b[2J",
        certificates=(Certificate(1.0, 0.5, 0.1, bound="x\x07"),) * 3,
    ).save(tmp_path / "m")  # fmt: skip
    (tmp_path / "data.csv").write_text(f'"f\x1b[1m",label\n1,"{nasty}"\n2,b\n')
    for words in (("info", "m"), ("info", "m", "--json"), ("info", "data.csv"),
                  ("evaluate", "m", "data.csv"), ("predict", "m", "data.csv"),
                  ("train", "data.csv", "--label", "x")):  # fmt: skip
        done = run(*words, cwd=tmp_path)
        assert all(c.isprintable() or c == "\n" for c in done.out + done.err), words
        assert "\nclass x: proved" not in done.out
    assert "spam\\x1b[2K" in run("info", "m", cwd=tmp_path).out


def test_liblinear_models(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", cwd=tmp_path)
    assert run("export", "data.model", "text", cwd=tmp_path).code == 0
    assert (tmp_path / "text").read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL")
    imported = run("import", "text", "back", cwd=tmp_path)
    assert (imported.code, "no certificate" in imported.out) == (0, True)
    first, *others = (
        run("predict", model, "data", "-q", cwd=tmp_path).out
        for model in ("data.model", "text", "back")
    )
    assert others == [first, first]
    refuse("no certificate", "verify", "back", "data", cwd=tmp_path)
