"""Predicting from the shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import noisy, run, write


def test_columns_of_tables_are_found_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    kinds = np.where(X[:, 0] > 0, "b", "a")

    def table(name: str, columns: str) -> None:
        values = {"x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "kind": kinds}
        rows = zip(*(values[c] for c in columns.split(",")), strict=True)
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / name).write_text("\n".join([columns, *lines]) + "\n")

    table("train.csv", "x,y,z,kind")
    table("other.csv", "z,kind,x,y")
    table("bare.csv", "y,x,z")
    table("short.csv", "y,x,kind")
    run("train", "train.csv", "-q", "-o", "m", cwd=tmp_path)
    expected = run("predict", "m", "train.csv", cwd=tmp_path)
    assert "accuracy" in expected.err
    assert run("predict", "m", "other.csv", cwd=tmp_path) == expected
    bare = run("predict", "m", "bare.csv", cwd=tmp_path)
    assert (bare.out, bare.err) == (expected.out, "")
    short = run("predict", "m", "short.csv", cwd=tmp_path)
    assert short.code == 2
    assert "no column 'z'" in short.err


def test_the_accuracy_says_which_column_it_is_about(tmp_path: Path) -> None:
    rows = [f"{i % 2},{i % 2}\n" for i in range(40)]
    (tmp_path / "t.csv").write_text("sex,y\n" + "".join(rows))
    # The model takes the column of labels for a feature.
    run("train", "t.csv", "--label", "sex", "-q", "-o", "m", cwd=tmp_path)
    said = run("predict", "m", "t.csv", cwd=tmp_path).err
    assert said == "accuracy 100.0000% (40 of 40); labels are in column 'sex' (as the model says)\n"


def test_features_that_the_model_has_not_seen_are_left_out(tmp_path: Path) -> None:
    """As in liblinear, whether in text or in a converted file; only once is a word said of it."""
    write(tmp_path / "data", n_columns=12)
    run("train", "data", "-q", "-o", "m", cwd=tmp_path)
    lines = (tmp_path / "data").read_text().splitlines()
    wider = [f"{line} 13:5 700:-9" if i in (3, 200) else line for i, line in enumerate(lines)]
    (tmp_path / "wider").write_text("\n".join(wider) + "\n")
    expected = run("predict", "m", "data", "--scores", cwd=tmp_path)
    found = run("predict", "m", "wider", "--scores", cwd=tmp_path)
    assert (found.code, found.out) == (0, expected.out)
    note = "4 values of features that the model has not seen were left out"
    assert found.err == f"wider: {note}\n{expected.err}"
    measured = run("evaluate", "m", "wider", cwd=tmp_path)
    of_data = run("evaluate", "m", "data", cwd=tmp_path).out
    assert (measured.code, measured.out) == (0, of_data.replace("data: 300", "wider: 300"))
    assert note in measured.err
    # Nobody trained on these rows.
    refused = run("verify", "m", "wider", cwd=tmp_path)
    assert refused.code == 2
    assert "it was not trained on this file" in refused.err
    run("convert", "wider", "wider.arrow", "--keep-order", "-q", cwd=tmp_path)
    converted = run("predict", "m", "wider.arrow", "--scores", cwd=tmp_path)
    assert (converted.code, converted.out) == (0, expected.out)
    assert note in converted.err
    # Fewer columns are no news.
    narrow = [" ".join(w for w in line.split() if not w.startswith("12:")) for line in lines]
    (tmp_path / "narrow").write_text("\n".join(narrow) + "\n")
    assert "left out" not in run("predict", "m", "narrow", cwd=tmp_path).err


@pytest.mark.parametrize("command", ["predict", "evaluate", "verify"])
def test_a_table_with_other_columns_than_the_model(command: str, tmp_path: Path) -> None:
    write(tmp_path / "data", n_columns=5)
    run("train", "data", "-q", "-o", "m", cwd=tmp_path)
    (tmp_path / "t.csv").write_text("a,b,c,label\n1,2,3,1\n4,5,6,-1\n")
    refused = run(command, "m", "t.csv", cwd=tmp_path)
    assert refused.code == 2
    assert "t.csv has 3 columns of features (labels in 'label'), the model 5" in refused.err
    run("convert", "t.csv", "t.arrow", "-q", cwd=tmp_path)
    refused = run(command, "m", "t.arrow", cwd=tmp_path)
    assert refused.code == 2
    assert "t.arrow has 3 columns of features (labels in 'label'), the model 5" in refused.err


def test_a_table_without_labels(tmp_path: Path) -> None:
    X, _ = noisy(n_columns=3)
    write(tmp_path / "data", n_columns=3)
    run("train", "data", "-q", "-o", "m", cwd=tmp_path)
    rows = [",".join(map(repr, row)) for row in X.toarray().tolist()]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    bare = run("predict", "m", "t.csv", cwd=tmp_path)
    assert (bare.out, bare.err) == (run("predict", "m", "data", cwd=tmp_path).out, "")
    refused = run("evaluate", "m", "t.csv", cwd=tmp_path)
    assert refused.code == 2
    assert "labels in 'c'" in refused.err


def test_columns_of_a_converted_table_are_found_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
    for order in ("xyz", "zxy"):
        rows = [",".join(map(repr, [*(row["xyz".index(c)] for c in order), label]))
                for row, label in zip(X.tolist(), y.tolist(), strict=True)]  # fmt: skip
        (tmp_path / f"{order}.csv").write_text("\n".join([",".join(order) + ",label", *rows]))
        run("convert", f"{order}.csv", f"{order}.arrow", "--keep-order", "-q", cwd=tmp_path)
    run("train", "xyz.csv", "-q", "-o", "m", cwd=tmp_path)
    expected = run("predict", "m", "xyz.csv", cwd=tmp_path)
    for name in ("zxy.csv", "xyz.arrow", "zxy.arrow"):
        done = run("predict", "m", name, cwd=tmp_path)
        assert (done.code, done.out) == (0, expected.out)
    (tmp_path / "other.csv").write_text("x,y,label\n1,2,0\n3,4,1\n")
    run("convert", "other.csv", "other.arrow", "-q", cwd=tmp_path)
    refused = run("predict", "m", "other.arrow", cwd=tmp_path)
    assert refused.code == 2
    assert "no column 'z' for the model" in refused.err
