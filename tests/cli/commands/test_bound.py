"""certsvm bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from certsvm import Model, bound
from certsvm.files import load_libsvm
from tests.cli.running import run, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Data, a model of them, and the same model by way of liblinear's text."""
    write(tmp_path / "data", n_classes=3)
    run("train", "data", "-B", 1, "-c", 0.3, "-q", "-o", "m", cwd=tmp_path)
    run("export", "m", "text", cwd=tmp_path)
    run("import", "text", "imported", cwd=tmp_path)
    return tmp_path


def test_a_model_of_liblinear(folder: Path) -> None:
    nothing = run("verify", "imported", "data", cwd=folder)
    assert nothing.code == 2
    assert "certsvm bound" in nothing.err
    without_C = run("bound", "imported", "data", cwd=folder)
    assert without_C.code == 2
    assert "-c" in without_C.err
    X, y = load_libsvm(folder / "data")[:2]
    expected = bound(Model.load(folder / "m"), X, y)
    for name in ("text", "imported"):
        done = run("bound", name, "data", "-c", 0.3, "--json", cwd=folder)
        assert done.code == 0
        told = done.json
        assert told["met"]
        assert [c["class"] for c in told["certificates"]] == [0, 1, 2]
        for certificate, other in zip(told["certificates"], expected, strict=True):
            assert certificate["primal"] == pytest.approx(other.primal)
            assert certificate["dual"] <= certificate["primal"] * (1 + 1e-9)


def test_other_objectives(folder: Path) -> None:
    own = run("bound", "m", "data", cwd=folder)
    assert own.code == 0
    assert own.out.startswith("C = 0.3, hinge loss, intercept in the penalty (scaled by 1)")
    other = run("bound", "m", "data", "-c", 30, "-s", 1, "-R", cwd=folder)
    assert other.code == 3
    assert other.out.startswith("C = 30, squared hinge loss, intercept without penalty")
    assert "minimised another objective" in other.err
    assert "not met" in other.out


def test_data_that_the_model_does_not_know(folder: Path) -> None:
    write(folder / "wider", n_columns=30, n_classes=3)
    refused = run("bound", "m", "wider", cwd=folder)
    assert refused.code == 2
    assert "it was not trained on this file" in refused.err
