"""Columns of strings, from a table to labels for new rows."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certsvm import LinearSVC, Model
from tests.cli.running import Ran, run

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


def write(path: Path, made: list[dict[str, Any]], separator: str = ",") -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]), delimiter=separator)
        writer.writeheader()
        writer.writerows(made)


NAMES = ("colour=blue", "colour=green", "colour=red", "x", "size=M", "size=S")


@pytest.fixture(params=["memory", "loaded", "streamed"])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a model from a table, or from the file that it was converted to."""
    write(tmp_path / "t.csv", rows())
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
    write(trained / "new.tsv", others, "\t")
    # Few rows, so that not all values occur.
    write(trained / "few.csv", others[:1], ";")
    for name, n_rows in (("t.csv", 120), ("new.tsv", 120), ("few.csv", 1)):
        found = run("predict", "m", name, cwd=trained)
        assert (found.code, found.out.split()) == (0, expected[:n_rows])
    for command in ("verify", "evaluate"):
        assert run(command, "m", "t.csv", cwd=trained).code in (0, 3)


def test_values_that_were_not_seen_are_none(trained: Path) -> None:
    made = rows(seed=1)
    made[3]["colour"] = made[9]["colour"] = "mauve"
    made[4]["size"] = "XXL"
    write(trained / "new.csv", made)
    model = Model.load(trained / "m")
    done = run("predict", "m", "new.csv", "--scores", cwd=trained)
    assert done.code == 0
    warned = [line for line in done.err.splitlines() if "has not seen" in line]
    assert warned == [
        "new.csv: 3 values of features that the model has not seen (in 'colour', 'size') were "
        "left out"
    ]
    score = float(done.out.splitlines()[3].split()[1])
    coef = dict(zip(NAMES, model.coef[0].tolist(), strict=True))
    assert score == pytest.approx(coef["x"] * made[3]["x"] + coef[f"size={made[3]['size']}"])
    refused = run("verify", "m", "new.csv", cwd=trained)
    assert refused.code == 2
    assert "it was not trained on this file" in refused.err
    # A file that was converted by itself has other columns, in another order.
    words = ("convert", "new.csv", "new.arrow", "--categorical", "--keep-order", "-q")
    assert run(*words, cwd=trained).code == 0
    converted = run("predict", "m", "new.arrow", "--scores", cwd=trained)
    assert _numbers(converted) == pytest.approx(_numbers(done))
    assert "3 values of features that the model has not seen were left out" in converted.err


def _numbers(ran: Ran) -> list[float]:
    return [float(line.split()[1]) for line in ran.out.splitlines()]


def test_without_the_option_strings_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", rows())
    for command in (["train", "t.csv"], ["convert", "t.csv", "t.arrow"]):
        refused = run(*command, cwd=tmp_path)
        assert refused.code == 2
        assert "'colour' holds string, not numbers. Leave it out (--drop colour" in refused.err
        assert "with --categorical" in refused.err
    (tmp_path / "text").write_text("1 1:1\n-1 2:1\n")
    refused = run("train", "text", "--categorical", cwd=tmp_path)
    assert refused.code == 2
    assert "--categorical does not apply to libsvm text" in refused.err


def test_a_model_whose_one_hot_columns_make_no_sense(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", rows())
    run("train", "t.csv", "--categorical", "-q", "-o", "m", cwd=tmp_path)
    model = Model.load(tmp_path / "m")
    for spans in ({"x": [0, 1]}, "colour"):
        replace(model, parameters={**model.parameters, "one_hot": spans}).save(tmp_path / "bad")
        refused = run("predict", "bad", "t.csv", cwd=tmp_path)
        assert refused.code == 2
        assert "cannot be told apart" in refused.err
