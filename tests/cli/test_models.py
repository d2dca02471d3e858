"""Applying models to data files."""

from __future__ import annotations

from pathlib import Path

import pytest

from certsvm.files import save_libsvm
from tests.cli.running import noisy, run, write


def test_zero_based_files(tmp_path: Path) -> None:
    X, y = noisy()
    save_libsvm(tmp_path / "data", X, y, zero_based=True)
    trained = run("train", "data", "--witness", cwd=tmp_path)
    assert "count from zero" in trained.err
    # The model remembers.
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    refused = run("verify", "data.model", "data", "--one-based", cwd=tmp_path)
    assert refused.code == 2
    assert "index 0, although indices count from one" in refused.err


@pytest.mark.parametrize("command", ["predict", "verify", "evaluate"])
def test_data_in_place_of_a_model(command: str, tmp_path: Path) -> None:
    write(tmp_path / "data")
    refused = run(command, "data", "data", cwd=tmp_path)
    assert refused.code == 2
    assert "data is not a model, as `certsvm train` makes it: MODEL comes first" in refused.err
