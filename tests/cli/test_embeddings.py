"""Commands on files of embeddings, on the CPU with and without PyTorch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from certsvm import LinearSVC, Model
from tests.cli.running import run

DEVICES = (
    None,
    pytest.param("cpu", marks=pytest.mark.skipif(not find_spec("torch"), reason="needs PyTorch")),
)
NAMES = np.array([f"kind {i}" for i in range(8)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8, 400)
    X = rng.standard_normal((8, 10))[codes] + 2.0 * rng.standard_normal((400, 10))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float16)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", NAMES[codes])
    save_file({"X": X, "labels": codes}, tmp_path / "X.safetensors")
    return tmp_path


@pytest.mark.parametrize("device", DEVICES)
def test_a_probe(folder: Path, device: str | None) -> None:
    data = ("X.npy", "--labels", "y.npy")
    where = () if device is None else ("--device", device)
    trained = run("train", *data, *where, "-B", 1, "--tol", 0.001, "-o", "m", cwd=folder)
    assert trained.code == 0, trained.err
    X, y = np.load(folder / "X.npy").astype(float), np.load(folder / "y.npy")
    model = Model.load(folder / "m")
    assert model.classes.tolist() == NAMES.tolist()
    # Rows on a device are not hashed.
    assert (model.fingerprint is None) == (device is not None)
    optimum = LinearSVC(tol=1e-8).fit(X, y)
    for claim, true in zip(model.certificates, optimum.certificates_ or (), strict=True):
        assert claim.dual <= true.primal * (1 + 1e-9)
        assert true.dual <= claim.primal * (1 + 1e-9)
    verified = run("verify", "m", *data, "--json", cwd=folder)
    assert verified.json["verdict"] == "half confirmed"

    predicted = run("predict", "m", "X.npy", cwd=folder)
    assert predicted.out.splitlines() == model.predict(X).tolist()
    assert "accuracy" not in predicted.err
    accuracy = np.mean(model.predict(X) == y)
    assert f"accuracy {accuracy:.4%}" in run("predict", "m", *data, cwd=folder).err
    measured = run("evaluate", "m", *data, "--json", cwd=folder).json
    assert measured["accuracy"] == pytest.approx(accuracy)
    assert measured["top_5_accuracy"] == pytest.approx(optimum.top_k_accuracy(X, y, 5), abs=0.01)
    assert accuracy < measured["top_5_accuracy"] < 1.0


def test_what_is_refused(folder: Path) -> None:
    run("train", "X.safetensors", "-o", "m", cwd=folder)
    for words, wrong in [
        (("train", "X.npy"), "X.npy has no labels: say where they are"),
        (("evaluate", "m", "X.npy"), "X.npy has no labels"),
        (("train", "X.npy", "--labels", "no.npy"), "no.npy"),
        (("train", "X.safetensors", "--weight", "w"), "--weight does not apply to embeddings"),
        (("train", "X.safetensors", "--device", "cpu", "--witness"), "does not go with"),
        (("train", "X.npy", "--labels", "y.npy", "--memory", "200M"), "fit_stream in Python"),
        (("train", "m"), "m is a model, and rows are needed here"),
        (("convert", "X.npy", "out"), "holds embeddings"),
        (("scale", "X.npy", "out"), "not libsvm text or a table"),
    ]:
        ran = run(*words, cwd=folder)
        assert ran.code == 2
        assert wrong in ran.err


def test_info(folder: Path) -> None:
    told = run("info", "X.npy", cwd=folder)
    assert "400 rows, 10 columns" in told.out
    assert "class" not in told.out
    told = run("info", "X.safetensors", cwd=folder)
    assert "embeddings: 400 rows, 10 columns" in told.out


def test_progress_counts_the_classes_that_are_proved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = np.load(folder / "X.npy").astype(float), np.load(folder / "y.npy")
    LinearSVC(verbose=1, tol=0.01).fit(X, y)
    ends = [line for line in capsys.readouterr().err.splitlines() if "classes proved" in line]
    assert [line.partition("; ")[2].rpartition("; ")[2] for line in ends] == [
        f"{i} of 8 classes proved" for i in range(1, 9)
    ]


def test_of_many_classes_the_worst_certificate_is_printed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.standard_normal((164, 4)))
    np.save(tmp_path / "y.npy", np.tile(np.arange(41), 4))
    ran = run("train", "X.npy", "--labels", "y.npy", "--tol", 0.1, "-o", "m", cwd=tmp_path)
    lines = ran.out.splitlines()
    assert lines[0] == "41 of 41 classes proved; the worst:"
    claims = Model.load(tmp_path / "m").certificates
    worst = max(range(41), key=lambda i: claims[i].proved_gap)
    assert lines[1] == f"class {worst}: {claims[worst]}"
    assert len(lines) == 3
