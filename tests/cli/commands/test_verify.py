"""Verifying from the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run, write


def test_other_data_are_refuted(tmp_path: Path) -> None:
    write(tmp_path / "data")
    write(tmp_path / "other", seed=5)
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    refuted = run("verify", "data.model", "other", cwd=tmp_path)
    assert refuted.code == 1
    assert "not the data that the model was trained on" in refuted.out


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
    assert verified["ok"]
    assert verified["dual_verified"]
    assert verified["same_data"]
    (problem,) = verified["problems"]
    assert problem["primal"] == pytest.approx(problem["claimed_primal"], rel=1e-12)
    assert problem["dual"] == pytest.approx(problem["claimed_dual"], rel=1e-12)
