"""Training from the shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certsvm import LinearSVC, Model, verify_model
from certsvm.files import load_libsvm
from tests.cli.running import run, write


def test_the_full_round(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=400)
    write(tmp_path / "new", seed=1)
    trained = run("train", "data", "-c", 2, "--tol", 1e-4, "--witness", "-B", 1, cwd=tmp_path)
    assert trained.code == 0
    assert "proved" in trained.out
    assert "data.model" in trained.out
    model = Model.load(tmp_path / "data.model", witness=True)
    X, y = load_libsvm(tmp_path / "data")
    reference = LinearSVC(C=2, tol=1e-9, random_state=0).fit(X, y)
    gap = model.certificates[0].primal / reference.certificate_.primal - 1
    assert -1e-9 <= gap <= 1e-4
    assert model.intercept_scaling == 1
    assert verify_model(model, [(X, y, None)]).dual_verified

    verified = run("verify", "data.model", "data", cwd=tmp_path)
    assert (verified.code, verified.out.splitlines()[-1][:9]) == (0, "confirmed")

    predicted = run("predict", "data.model", "new", "-o", "out.txt", cwd=tmp_path)
    assert predicted.code == 0
    X_new, y_new = load_libsvm(tmp_path / "new")
    labels = (tmp_path / "out.txt").read_text().splitlines()
    assert labels == [f"{label:g}" for label in model.predict(X_new)]
    right = int((model.predict(X_new) == y_new).sum())
    assert f"({right} of {y_new.size})" in predicted.err

    evaluated = run("evaluate", "data.model", "new", "--json", cwd=tmp_path)
    assert evaluated.json["accuracy"] == pytest.approx(right / y_new.size)
    assert evaluated.json["rows"] == y_new.size

    assert run("info", "data.model", "--json", cwd=tmp_path).json["features"] == X.shape[1]
    about = run("info", "data", "--json", cwd=tmp_path).json
    assert (about["rows"], about["columns"], about["values"]) == (*X.shape, X.nnz)


def test_streaming_is_certified_like_memory(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=4000, n_columns=30)
    run("convert", "data", "data.arrow", "--block-size", "100k", "-q", cwd=tmp_path)
    optimum = run("train", "data", "--tol", 1e-9, "--json", "-o", "m", cwd=tmp_path).json
    for solver in ("auto", "block-dcd", "sgd-s", "sgd-m", "newton"):
        streamed = run(
            "train", "data.arrow", "--stream", "--solver", solver, "--tol", 0.02, "--json",
            "--witness", cwd=tmp_path,
        )  # fmt: skip
        certificate = streamed.json["certificates"][0]
        assert streamed.json["met"]
        primal, dual = optimum["certificates"][0]["primal"], optimum["certificates"][0]["dual"]
        assert certificate["dual"] <= primal * (1 + 1e-12)
        assert dual <= certificate["primal"] * (1 + 1e-12)
        assert run("verify", "data.arrow.model", "data.arrow", cwd=tmp_path).code == 0


def test_a_target_that_is_not_reached(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=3000, n_columns=50)
    ended = run(
        "train", "data", "--solver", "sgd-s", "--max-iter", 2, "-c", 100, "--tol", 1e-6,
        cwd=tmp_path,
    )  # fmt: skip
    assert ended.code == 3
    assert "not met" in ended.out
    assert "max_iter reached after 2 passes" in ended.out
    assert not Model.load(tmp_path / "data.model").certificates[0].met


def test_letters_of_liblinear(tmp_path: Path) -> None:
    write(tmp_path / "data")
    ours = run("train", "data", "-c", 3, "-e", 0.001, "-w1", 2, "-w-1", 0.5, "-B", 1, "-s", 3,
               "-q", "-o", "a", cwd=tmp_path)  # fmt: skip
    assert ours.code == 0
    run("train", "data", "--C", 3, "--tol", 0.001, "--class-weight", "1=2", "--class-weight",
        "-1=0.5", "--bias", 1, "-q", "-o", "b", cwd=tmp_path)  # fmt: skip
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert Model.load(tmp_path / "a").class_weight.tolist() == [0.5, 2.0]


def test_a_place_for_checkpoints_is_looked_for_first(tmp_path: Path) -> None:
    write(tmp_path / "data")
    (tmp_path / "taken").write_text("a file")
    refused = run("train", "data", "--checkpoint", "taken/state", cwd=tmp_path)
    assert refused.code == 2
    assert "no checkpoints can be kept there" in refused.err
    assert not (tmp_path / "data.model").exists()


def test_csv_without_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1.5,2,0\n3,4,1\n5,6,0\n2,9,1\n")
    for words in (("train", "a.csv"), ("info", "a.csv"), ("convert", "a.csv", "a.arrow")):
        refused = run(*words, cwd=tmp_path)
        assert refused.code == 2
        assert "--no-header" in refused.err
    assert run("train", "a.csv", "--no-header", "-o", "m", cwd=tmp_path).code == 0
    for command in ("predict", "evaluate"):
        assert "--no-header" in run(command, "m", "a.csv", cwd=tmp_path).err
    predicted = run("predict", "m", "a.csv", "--no-header", cwd=tmp_path)
    assert len(predicted.out.splitlines()) == 4
    evaluated = run("evaluate", "m", "a.csv", "--no-header", "--json", cwd=tmp_path)
    assert evaluated.json["rows"] == 4
    converted = run("convert", "a.csv", "a.arrow", "--no-header", "--json", cwd=tmp_path)
    assert converted.json["n_rows"] == 4


@pytest.mark.parametrize("kind", ["csv", "text", "parquet"])
def test_a_label_for_each_row_is_no_class(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(30), "id": np.arange(30)})
    if kind == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
    else:
        lines = [f"{i} 1:{a!r}" for a, i in zip(frame["a"].tolist(), frame["id"], strict=True)]
        (tmp_path / "t.text").write_text("\n".join(lines) + "\n")
    for command in (["train", f"t.{kind}"], ["convert", f"t.{kind}", "t.arrow"]):
        refused = run(*command, cwd=tmp_path)
        assert refused.code == 2
        assert "each of the 30 rows has a label of its own" in refused.err
        assert "--label" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == [f"t.{kind}"]
