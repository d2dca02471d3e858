"""Judging models from the shell."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certsvm import Certificate, LinearSVC, Model, bound
from certsvm.files import Witness, load_libsvm
from certsvm.verification.evidence import Fingerprint
from tests.cli.running import refuse, run, succeed, write
from tests.files.hostile import hostile, rows, write_blocks


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
    verified = succeed("verify", "data.model", "data", cwd=tmp_path)
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
    refuse("belongs to another model", "verify", "data.model", "data", cwd=tmp_path)


def test_json_holds_what_was_recomputed_and_claimed(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    verified = run("verify", "data.model", "data", "--json", cwd=tmp_path).json
    assert verified["verdict"] == "confirmed"
    assert [verified[name] for name in ("ok", "dual_verified", "same_data")] == [True] * 3
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


def test_hostile_files_are_bad_input(tmp_path: Path) -> None:
    write_blocks(tmp_path / "good.arrow", *rows())
    run("train", "good.arrow", "-o", "model", "--witness", "-q", cwd=tmp_path)
    assert run("verify", "model", "good.arrow", cwd=tmp_path).code == 0
    files = hostile(tmp_path)
    chosen = ["index-1.arrow", "index2147483647.arrow", "weightnan.arrow", "label.arrow"]
    for name in chosen:
        words = [("verify", "model", name), ("evaluate", "model", name)]
        for command in [*words, ("train", name, "-o", "none")] if "-1" in name else words:
            refuse(files[tmp_path / name], *command, cwd=tmp_path)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table, t.csv, with an informative column."""
    rng = np.random.default_rng(0)
    good, noise = rng.standard_normal((2, 60))
    y = (good + 0.3 * rng.standard_normal(60) > 0).astype(int)
    frame = pd.DataFrame({"good": good, "noise": noise, "label": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    run("convert", "t.csv", "t.arrow", "--keep-order", "-q", cwd=tmp_path)
    return tmp_path


def save_model(folder: Path, names: list[str], label: str = "label") -> None:
    """Train on some columns of the table; the certificate is true of these."""
    frame = pd.read_csv(folder / "t.csv")
    X, y = frame[names], frame[label]
    LinearSVC(store_dual=True, random_state=0).fit(X, y).to_model(X, y).save(folder / "m")


FORMS = ("t.parquet", "t.arrow")


@pytest.mark.parametrize("form", FORMS)
def test_the_model_does_not_choose_the_columns(table: Path, form: str) -> None:
    save_model(table, ["noise"])
    for command in ("verify", "evaluate"):
        refuse("does not use: 'good'", command, "m", form, cwd=table)
    verified = succeed("verify", "m", form, "--ignore", "good", cwd=table)
    assert "1 column used ('noise'), 1 ignored ('good')" in verified.out
    for name, message in (("bad", "no column 'bad'"), ("noise", "'noise'")):
        refuse(message, "verify", "m", form, "--ignore", "good", "--ignore", name, cwd=table)
    assert run("predict", "m", form, cwd=table).code == 0


@pytest.mark.parametrize("form", FORMS)
def test_the_label_is_no_feature(table: Path, form: str) -> None:
    save_model(table, ["good", "noise", "label"])
    for command in ("verify", "evaluate"):
        refuse("'label'", command, "m", form, cwd=table)
    # An accuracy there would be worth nothing.
    assert "accuracy" not in run("predict", "m", form, cwd=table).err


def test_the_model_does_not_choose_the_label(table: Path) -> None:
    frame = pd.read_csv(table / "t.csv").drop(columns="noise")
    frame["good"] = (frame["good"] > 0).astype(int)
    frame.rename(columns={"label": "y"}).to_csv(table / "t.csv", index=False)
    save_model(table, ["y"], "good")
    wrong = "column 'y' has the labels, and is for the model, too"
    for command in ("verify", "evaluate"):
        refuse(wrong, command, "m", "t.csv", cwd=table)
    verified = succeed("verify", "m", "t.csv", "--label", "good", "--json", cwd=table)
    assert verified.json["data"] == {
        "file": "t.csv", "rows": 60, "label": "good", "weight": None, "model_label": None,
        "n_columns": 1, "columns": ["y"], "ignored": [],
    }  # fmt: skip


def test_weights_are_no_features(table: Path) -> None:
    frame = pd.read_csv(table / "t.csv").rename(columns={"noise": "w"})
    frame["w"] = frame["w"].abs()
    frame.to_csv(table / "t.csv", index=False)
    save_model(table, ["good", "w"])
    refuse("column 'w' has the weights", "verify", "m", "t.csv", "--weight", "w", cwd=table)
    run("train", "t.csv", "--weight", "w", "--witness", "-q", "-o", "weighted", cwd=table)
    refuse("does not use: 'w'", "verify", "weighted", "t.csv", cwd=table)
    verified = succeed("verify", "weighted", "t.csv", "--weight", "w", cwd=table)
    assert "labels in 'label'; weights in 'w'; 1 column used ('good')" in verified.out
    run("convert", "t.csv", "w.arrow", "--weight", "w", "--keep-order", "-q", cwd=table)
    converted = succeed("verify", "weighted", "w.arrow", "--json", cwd=table)
    data = converted.json["data"]
    assert (data["label"], data["weight"], data["columns"]) == ("label", "w", ["good"])


def test_numbers_are_not_made_one_hot(tmp_path: Path) -> None:
    """A column of numbers, 0 and 1 and 2, with weights of its own for each of them."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 60)
    y = (x == 1).astype(int)
    pd.DataFrame({"x": x, "label": y}).to_csv(tmp_path / "t.csv", index=False)
    X = (x[:, np.newaxis] == [0, 1, 2]).astype(float)
    model = LinearSVC(store_dual=True, random_state=0).fit(X, y).to_model(X, y)
    replace(
        model, feature_names=("x=0", "x=1", "x=2"),
        parameters={**model.parameters, "one_hot": {"x": [0, 3]}},
    ).save(tmp_path / "m")  # fmt: skip
    refuse("column 'x' holds numbers", "verify", "m", "t.csv", cwd=tmp_path)


def test_a_model_without_names_has_no_say_either(table: Path) -> None:
    save_model(table, ["good", "noise", "label"])
    replace(Model.load(table / "m", witness=True), feature_names=None).save(table / "m")
    for form in FORMS:
        assert run("verify", "m", form, cwd=table).code == 2
    save_model(table, ["good", "noise"])
    replace(Model.load(table / "m", witness=True), feature_names=None).save(table / "m")
    for form in FORMS:
        verified = succeed("verify", "m", form, cwd=table)
        assert "2 columns used ('good', 'noise'), none ignored" in verified.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Data, a model of them, and the same model by way of liblinear's text."""
    write(tmp_path / "data", n_classes=3)
    run("train", "data", "-B", 1, "-c", 0.3, "-q", "-o", "m", cwd=tmp_path)
    run("export", "m", "text", cwd=tmp_path)
    run("import", "text", "imported", cwd=tmp_path)
    return tmp_path


def test_a_model_of_liblinear(folder: Path) -> None:
    refuse("certsvm bound", "verify", "imported", "data", cwd=folder)
    refuse("-c", "bound", "imported", "data", cwd=folder)
    X, y = load_libsvm(folder / "data")[:2]
    expected = bound(Model.load(folder / "m"), X, y)
    for name in ("text", "imported"):
        done = succeed("bound", name, "data", "-c", 0.3, "--json", cwd=folder)
        told = done.json
        assert told["met"]
        assert [c["class"] for c in told["certificates"]] == [0, 1, 2]
        for certificate, other in zip(told["certificates"], expected, strict=True):
            assert certificate["primal"] == pytest.approx(other.primal)
            assert certificate["dual"] <= certificate["primal"] * (1 + 1e-9)


def test_other_objectives(folder: Path) -> None:
    own = succeed("bound", "m", "data", cwd=folder)
    assert own.out.startswith("C = 0.3, hinge loss, intercept in the penalty (scaled by 1)")
    other = run("bound", "m", "data", "-c", 30, "-s", 1, "-R", cwd=folder)
    assert other.code == 3
    assert other.out.startswith("C = 30, squared hinge loss, intercept without penalty")
    assert "minimised another objective" in other.err
    assert "not met" in other.out


def test_data_that_the_model_does_not_know(folder: Path) -> None:
    write(folder / "wider", n_columns=30, n_classes=3)
    refuse("it was not trained on this file", "bound", "m", "wider", cwd=folder)
