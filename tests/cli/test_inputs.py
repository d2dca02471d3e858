"""Data files of all kinds, right and wrong, and their columns."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certsvm import LinearSVC, Model
from certsvm.files import save_libsvm
from certsvm.files.block_file import BlockFile
from tests.cli.running import Ran, noisy, refuse, run, succeed, write


def test_standard_input_and_output(tmp_path: Path) -> None:
    write(tmp_path / "data")
    text = (tmp_path / "data").read_bytes()
    assert run("train", "-", "-o", "m", "-q", cwd=tmp_path, stdin=text).code == 0
    assert run("train", "data", "-o", "same", "-q", cwd=tmp_path).code == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "same").read_bytes()
    out = run("predict", "m", "-", "-q", cwd=tmp_path, stdin=gzip.compress(text))
    assert len(out.out.splitlines()) == 300
    assert not out.err
    assert run("verify", "m", "-", cwd=tmp_path, stdin=text).code == 3
    assert run("convert", "-", "a.arrow", "-q", cwd=tmp_path, stdin=text).code == 0
    assert BlockFile(tmp_path / "a.arrow").summary.n_rows == 300


BAD = {
    "one class": (b"1 1:1\n1 2:1\n", "only one class"),
    "empty": (b"", "no rows"),
    "garbage": (b"1 1:1\n-1 hello\n", 'line 2, column 4: expected index:value, found "hello"'),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files(kind: str, tmp_path: Path) -> None:
    text, message = BAD[kind]
    (tmp_path / "data").write_bytes(text)
    Model(np.ones((1, 1)), np.zeros(1), np.arange(2), np.ones(2)).save(tmp_path / "data.model")
    before = (tmp_path / "data.model").read_bytes()
    refuse(message, "train", "data", cwd=tmp_path)
    assert (tmp_path / "data.model").read_bytes() == before


def test_zero_based_files(tmp_path: Path) -> None:
    X, y = noisy()
    save_libsvm(tmp_path / "data", X, y, zero_based=True)
    trained = run("train", "data", "--witness", cwd=tmp_path)
    assert "count from zero" in trained.err
    # The model remembers.
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    words = ("verify", "data.model", "data", "--one-based")
    refuse("index 0 is out of range: counted from one", *words, cwd=tmp_path)


@pytest.mark.parametrize("command", ["predict", "verify", "evaluate"])
def test_data_in_place_of_a_model(command: str, tmp_path: Path) -> None:
    write(tmp_path / "data")
    refuse("data is not a model, as `certsvm train` makes", f"{command} data data", cwd=tmp_path)


def _table(path: Path, seed: int = 0) -> None:
    """Labels first, then two features, one without information, and an identifier."""
    rng = np.random.default_rng(seed)
    lines = ["y,a,b,noise,id"]
    for i in range(80):
        a, b, noise = rng.standard_normal(3)
        lines.append(f"{'yes' if a + 0.3 * b > 0 else 'no'},{a},{b},{noise},row {i}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _table(tmp_path / "t.csv")
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [("--drop", "id", "--drop", "noise"), ("--drop", "id,noise"), ("--columns", 'b, "a"')],
    ids=" ".join,
)
def test_columns_that_are_left_out(folder: Path, options: tuple[str, ...]) -> None:
    assert run("train", "t.csv", "--label", "y", "-o", "m", *options, cwd=folder).code == 0
    model = Model.load(folder / "m")
    assert model.feature_names == ("a", "b")
    assert model.parameters["label"] == "y"
    predicted = succeed("predict", "m", "t.csv", cwd=folder)
    assert "'y' (as the model says)" in predicted.err
    for command in ("evaluate", "verify"):
        refuse("--ignore noise,id", command, "m", "t.csv", "--label", "y", cwd=folder)
    left_out = ("--ignore", "id, noise")
    assert run("verify", "m", "t.csv", "--label", "y", *left_out, cwd=folder).code == 3


def test_converted_files_and_choices_of_C(folder: Path) -> None:
    words = ("--label", "y", "--columns", "a,b")
    assert run("convert", "t.csv", "t.arrow", *words, cwd=folder).code == 0
    assert run("train", "t.arrow", "-o", "m", cwd=folder).code == 0
    assert Model.load(folder / "m").feature_names == ("a", "b")
    # The file remembers the labels, and its model does.
    told = run("evaluate m t.csv --ignore id --ignore noise --json", cwd=folder).json
    assert told["data"]["label"] == told["data"]["model_label"] == "y"
    assert run("select", "t.csv", *words, "--values", 2, "--folds", 2, cwd=folder).code == 0
    assert run("path", "t.csv", *words, "-o", "p", "--tol", 0.5, cwd=folder).code == 0
    assert Model.load(next((folder / "p").iterdir())).feature_names == ("a", "b")
    assert "does not apply" in run("train", "t.arrow", "--drop", "a", cwd=folder).err


def test_mistaken_columns_are_named(folder: Path) -> None:
    refuse(
        "has no column 'noisy' for --ignore or --drop",
        "train",
        "t.csv",
        "--label",
        "y",
        "--drop",
        "noisy",
        cwd=folder,
    )
    refuse("one role only", "train", "t.csv", "--label", "y", "--columns", "a,y", cwd=folder)
    # The message about a column of text says how to leave it out.
    refuse("--drop id", "train", "t.csv", "--label", "y", cwd=folder)


def test_verify_does_not_believe_the_model_about_its_labels(folder: Path) -> None:
    lines = [line.rsplit(",", 1)[0] for line in (folder / "t.csv").read_text().splitlines()]
    # A second column that could have the labels: the last one.
    lines = [f"{line},{('z', 'no', 'yes')[(i > 0) + i % 2]}" for i, line in enumerate(lines)]
    lines[0] = "y,a,b,noise,z"
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    run("train", "t.csv", "--label", "y", "--drop", "z", "-o", "m", cwd=folder)
    assert (
        "'y' (as the model says)" in run("evaluate", "m", "t.csv", "--ignore", "z", cwd=folder).out
    )
    other = run("verify", "m", "t.csv", "--ignore", "y", cwd=folder)
    assert other.code == 1
    assert "labels in 'z' (the model says 'y')" in other.out
    refuse("does not use: 'y'", "verify", "m", "t.csv", cwd=folder)
    # The user's word counts more than the model's.
    asked = run("evaluate", "m", "t.csv", "--label", "z", "--ignore", "y", "--json", cwd=folder)
    assert asked.json["data"]["label"] == "z"


def test_a_report_says_which_labels_it_is_about(folder: Path) -> None:
    run("train", "t.csv", "--label", "y", "--drop", "id", "-o", "m", cwd=folder)
    done = succeed("report", "m", "t.csv", "--ignore", "id", cwd=folder)
    assert "labels in 'y' (as the model says)" in done.err


COLOURS = np.array(["red", "green", "blue"])


def rows(n: int = 120, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        colour, size, x = rng.choice(COLOURS), rng.choice(["S", "M"]), rng.standard_normal()
        score = x + (colour == "red") - (size == "S") + 0.3 * rng.standard_normal()
        label = "yes" if score > 0 else "no"
        made.append({"colour": str(colour), "x": x, "size": str(size), "bought": label})
    return made


def write_table(path: Path, made: list[dict[str, Any]], separator: str = ",") -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]), delimiter=separator)
        writer.writeheader()
        writer.writerows(made)


NAMES = ("colour=blue", "colour=green", "colour=red", "x", "size=M", "size=S")


@pytest.fixture(params=["memory", "loaded", "streamed"])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a model from a table, or from the file that it was converted to."""
    write_table(tmp_path / "t.csv", rows())
    if request.param == "memory":
        done = run("train", "t.csv", "--categorical", "-o", "m", "--tol", 1e-6, cwd=tmp_path)
    else:
        words = ("convert", "t.csv", "t.arrow", "--categorical", "--keep-order", "-q")
        assert run(*words, cwd=tmp_path).code == 0
        stream = ["--stream"] if request.param == "streamed" else []
        done = run("train", "t.arrow", "-o", "m", "--tol", 1e-4, *stream, cwd=tmp_path)
    assert done.code == 0
    return tmp_path


def test_new_tables_are_encoded_as_in_training(trained: Path) -> None:
    model = Model.load(trained / "m")
    assert model.feature_names == NAMES
    assert model.parameters["one_hot"] == {"colour": [0, 3], "size": [4, 6]}
    made = rows()
    X = np.array([[*(r["colour"] == c for c in ("blue", "green", "red")), r["x"],
                   *(r["size"] == s for s in "MS")] for r in made], dtype=float)  # fmt: skip
    y = [r["bought"] for r in made]
    exact = LinearSVC(tol=1e-8, fit_intercept=False).fit(X, y).certificate_
    assert model.certificates[0].primal == pytest.approx(exact.primal, rel=1e-3)
    expected = model.predict(X).tolist()
    others = [{"size": r["size"], "x": r["x"], "colour": r["colour"]} for r in made]
    write_table(trained / "new.tsv", others, "\t")
    # Few rows, so that not all values occur.
    write_table(trained / "few.csv", others[:1], ";")
    for name, n_rows in (("t.csv", 120), ("new.tsv", 120), ("few.csv", 1)):
        found = run("predict", "m", name, cwd=trained)
        assert (found.code, found.out.split()) == (0, expected[:n_rows])
    for command in ("verify", "evaluate"):
        assert run(command, "m", "t.csv", cwd=trained).code in (0, 3)


def test_values_that_were_not_seen_are_none(trained: Path) -> None:
    made = rows(seed=1)
    made[3]["colour"] = made[9]["colour"] = "mauve"
    made[4]["size"] = "XXL"
    write_table(trained / "new.csv", made)
    model = Model.load(trained / "m")
    done = succeed("predict", "m", "new.csv", "--scores", cwd=trained)
    warned = [line for line in done.err.splitlines() if "has not seen" in line]
    assert warned == [
        "new.csv: 3 values of features that the model has not seen (in 'colour', 'size') were "
        "left out"
    ]
    score = float(done.out.splitlines()[3].split()[1])
    coef = dict(zip(NAMES, model.coef[0].tolist(), strict=True))
    assert score == pytest.approx(coef["x"] * made[3]["x"] + coef[f"size={made[3]['size']}"])
    refuse("it was not trained on this file", "verify", "m", "new.csv", cwd=trained)
    # A file that was converted by itself has other columns, in another order.
    words = ("convert", "new.csv", "new.arrow", "--categorical", "--keep-order", "-q")
    assert run(*words, cwd=trained).code == 0
    converted = run("predict", "m", "new.arrow", "--scores", cwd=trained)
    assert _numbers(converted) == pytest.approx(_numbers(done))
    assert "3 values of features that the model has not seen were left out" in converted.err


def _numbers(ran: Ran) -> list[float]:
    return [float(line.split()[1]) for line in ran.out.splitlines()]


def test_without_the_option_strings_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", rows())
    for command in (["train", "t.csv"], ["convert", "t.csv", "t.arrow"]):
        refuse("'colour' holds string, not numbers. Leave it out (--drop colour", *command,
               cwd=tmp_path)  # fmt: skip
    (tmp_path / "text").write_text("1 1:1\n-1 2:1\n")
    refuse("--categorical does not apply to libsvm text", "train text --categorical", cwd=tmp_path)


def test_a_model_whose_one_hot_columns_make_no_sense(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", rows())
    run("train", "t.csv", "--categorical", "-q", "-o", "m", cwd=tmp_path)
    model = Model.load(tmp_path / "m")
    for spans in ({"x": [0, 1]}, "colour"):
        replace(model, parameters={**model.parameters, "one_hot": spans}).save(tmp_path / "bad")
        refuse("cannot be told apart", "predict", "bad", "t.csv", cwd=tmp_path)
