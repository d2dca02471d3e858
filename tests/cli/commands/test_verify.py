"""Verifying from the shell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from certsvm import Certificate, Model
from certsvm.data import load_libsvm
from certsvm.models import Witness
from certsvm.storage.fingerprint import Fingerprint
from tests.cli.running import run, write
from tests.data.hostile import hostile, rows, write_blocks


def test_other_data_are_refuted(tmp_path: Path) -> None:
    write(tmp_path / "data")
    write(tmp_path / "other", seed=5)
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    refuted = run("verify", "data.model", "other", cwd=tmp_path)
    assert refuted.code == 1
    assert "not the data that the model was trained on" in refuted.out
    assert "REFUTED" in refuted.out


def test_the_problem_is_named(tmp_path: Path) -> None:
    write(tmp_path / "data")
    options = ["-c", 0.5, "-B", 1, "-s", 1, "-w1", 2]
    run("train", "data", *options, "-R", "--witness", "-q", cwd=tmp_path)
    verified = run("verify", "data.model", "data", cwd=tmp_path)
    assert verified.code == 0
    expected = "C = 0.5, squared hinge loss, intercept without penalty, weights of classes 1, 2"
    assert verified.out.splitlines()[0] == expected
    run("train", "data", *options[:4], "-q", cwd=tmp_path)
    assert run("verify", "data.model", "data", "--json", cwd=tmp_path).json["problem"] == (
        "C = 0.5, hinge loss, intercept in the penalty (scaled by 1)"
    )


def test_an_old_witness_does_not_refute_a_new_model(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    old = (tmp_path / "data.model.witness").read_bytes()
    run("train", "data", "-c", 5, "-q", cwd=tmp_path)
    assert not (tmp_path / "data.model.witness").exists()
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 3
    # Put back by hand, it is recognised.
    (tmp_path / "data.model.witness").write_bytes(old)
    refused = run("verify", "data.model", "data", cwd=tmp_path)
    assert refused.code == 2
    assert "belongs to another model" in refused.err


def test_json_holds_what_was_recomputed_and_claimed(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    verified = run("verify", "data.model", "data", "--json", cwd=tmp_path).json
    assert verified["verdict"] == "confirmed"
    assert verified["ok"]
    assert verified["dual_verified"]
    assert verified["same_data"]
    (problem,) = verified["problems"]
    assert problem["primal"] == pytest.approx(problem["claimed_primal"], rel=1e-12)
    assert problem["dual"] == pytest.approx(problem["claimed_dual"], rel=1e-12)
    assert problem["verdict"] == "confirmed"
    low, high = problem["primal_interval"]
    assert low <= problem["claimed_primal"] * (1 + 1e-12)
    assert high == problem["primal"] >= low
    low, high = problem["dual_interval"]
    assert low == problem["dual"] <= high


def forge(folder: Path, huge: str) -> None:
    """Write data, and a model of them with J = L = 1002 at w = 0.

    Two rows of both signs would absorb the others in plain float64. J is 2.25 at (0.5, 0.5).
    """
    n = 1000
    lines = ["1 1:1 2:1", "-1 1:-1 2:-1"] * (n // 2)
    text = [f"1 1:{huge} 2:-{huge}", *lines, f"1 1:-{huge} 2:{huge}"]
    (folder / "data").write_text("\n".join(text) + "\n")
    J = n + 2.0
    claims = Certificate(primal=J, dual=J, target=1e-3, bound="multipliers", C=1.0)
    Model(
        coef=np.zeros((1, 2)), intercept=np.zeros(1), classes=np.array([-1.0, 1.0]),
        class_weight=np.ones(2), certificates=(claims,),
        parameters={"C": 1.0, "intercept_scaling": 0.0},
        fingerprint=Fingerprint.of(*load_libsvm(folder / "data")),
        witness=Witness(np.full((1, n + 2), 255, np.uint8), np.ones(1)),
    ).save(folder / "forged")  # fmt: skip


def test_a_forged_proof_is_refuted(tmp_path: Path) -> None:
    forge(tmp_path, "10000000000000000")
    refuted = run("verify", "forged", "data", cwd=tmp_path)
    assert refuted.code == 1
    assert "DOES NOT MATCH" in refuted.out
    assert "REFUTED" in refuted.out
    found = run("verify", "forged", "data", "--json", cwd=tmp_path)
    assert (found.code, found.json["verdict"]) == (1, "refuted")
    # The data are the model's own.
    assert found.json["same_data"]
    assert not found.json["dual_verified"]


def test_what_double_precision_cannot_tell_is_neither_confirmed_nor_refuted(tmp_path: Path) -> None:
    forge(tmp_path, "1e40")
    undecided = run("verify", "forged", "data", cwd=tmp_path)
    assert undecided.code == 4
    assert "CANNOT BE CHECKED at this precision" in undecided.out
    assert undecided.out.splitlines()[-1].startswith("undecided")
    found = run("verify", "forged", "data", "--json", cwd=tmp_path)
    assert (found.code, found.json["verdict"], found.json["ok"]) == (4, "undecided", False)


def test_another_fingerprint_is_mentioned_whatever_the_verdict(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", cwd=tmp_path)
    half = run("verify", "data.model", "data", cwd=tmp_path)
    assert half.code == 3
    assert "half confirmed" in half.out
    assert "not the data that the model was trained on" not in half.out
    model = Model.load(tmp_path / "data.model")
    assert model.fingerprint is not None
    replace(model, fingerprint=replace(model.fingerprint, digest="0" * 32)).save(
        tmp_path / "other.model"
    )
    half = run("verify", "other.model", "data", cwd=tmp_path)
    assert half.code == 3
    assert "not the data that the model was trained on" in half.out


def test_hostile_files_are_bad_input(tmp_path: Path) -> None:
    write_blocks(tmp_path / "good.arrow", *rows())
    run("train", "good.arrow", "-o", "model", "--witness", "-q", cwd=tmp_path)
    assert run("verify", "model", "good.arrow", cwd=tmp_path).code == 0
    files = hostile(tmp_path)
    chosen = ["index-1.arrow", "index2147483647.arrow", "weightnan.arrow", "label.arrow"]
    for name in chosen:
        words = [("verify", "model", name), ("evaluate", "model", name)]
        for command in [*words, ("train", name, "-o", "none")] if "-1" in name else words:
            refused = run(*command, cwd=tmp_path)
            assert refused.code == 2, command
            assert files[tmp_path / name] in refused.err
            assert "Traceback" not in refused.err
