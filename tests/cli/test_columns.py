"""Which columns of a table are trained on, and which has the labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certsvm import Model
from tests.cli.running import run


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
    "options", [("--drop", "id", "--drop", "noise"), ("--columns", 'b, "a"')], ids=" ".join
)
def test_columns_that_are_left_out(folder: Path, options: tuple[str, ...]) -> None:
    assert run("train", "t.csv", "--label", "y", "-o", "m", *options, cwd=folder).code == 0
    model = Model.load(folder / "m")
    assert model.feature_names == ("a", "b")
    assert model.parameters["label"] == "y"
    predicted = run("predict", "m", "t.csv", cwd=folder)
    assert predicted.code == 0
    assert "'y' (as the model says)" in predicted.err
    for command in ("evaluate", "verify"):
        refused = run(command, "m", "t.csv", "--label", "y", cwd=folder)
        assert refused.code == 2
        assert "--ignore noise --ignore id" in refused.err
    left_out = ("--ignore", "id", "--ignore", "noise")
    assert run("verify", "m", "t.csv", "--label", "y", *left_out, cwd=folder).code == 3


def test_converted_files_and_choices_of_C(folder: Path) -> None:
    words = ("--label", "y", "--columns", "a,b")
    assert run("convert", "t.csv", "t.arrow", *words, cwd=folder).code == 0
    assert run("train", "t.arrow", "-o", "m", cwd=folder).code == 0
    assert Model.load(folder / "m").feature_names == ("a", "b")
    # The file remembers the labels, and its model does.
    told = run("evaluate", "m", "t.csv", "--ignore", "id", "--ignore", "noise", "--json",
               cwd=folder).json  # fmt: skip
    assert told["data"]["label"] == told["data"]["model_label"] == "y"
    assert run("select", "t.csv", *words, "--values", 2, "--folds", 2, cwd=folder).code == 0
    assert run("path", "t.csv", *words, "-o", "p", "--tol", 0.5, cwd=folder).code == 0
    assert Model.load(next((folder / "p").iterdir())).feature_names == ("a", "b")
    assert "does not apply" in run("train", "t.arrow", "--drop", "a", cwd=folder).err


def test_mistaken_columns_are_named(folder: Path) -> None:
    missing = run("train", "t.csv", "--label", "y", "--drop", "noisy", cwd=folder)
    assert missing.code == 2
    assert "has no column 'noisy' for --ignore or --drop; it has" in missing.err
    assert run("train", "t.csv", "--label", "y", "--columns", "a,y", cwd=folder).code == 2
    # The message about a column of text says how to leave it out.
    assert "--drop id" in run("train", "t.csv", "--label", "y", cwd=folder).err


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
    unnamed = run("verify", "m", "t.csv", cwd=folder)
    assert unnamed.code == 2
    assert "The model says that the labels are in 'y'" in unnamed.err
    # The user's word counts more than the model's.
    asked = run("evaluate", "m", "t.csv", "--label", "z", "--ignore", "y", "--json", cwd=folder)
    assert asked.json["data"]["label"] == "z"


def test_a_report_says_which_labels_it_is_about(folder: Path) -> None:
    run("train", "t.csv", "--label", "y", "--drop", "id", "-o", "m", cwd=folder)
    done = run("report", "m", "t.csv", "--ignore", "id", cwd=folder)
    assert done.code == 0
    assert "labels in 'y' (as the model says)" in done.err
