"""Predicting, evaluating and reporting from the shell."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, precision_recall_fscore_support

from certsvm import Certificate, Model
from tests.cli.running import noisy, refuse, run, succeed, write
from tests.report.browser import opened


def test_columns_of_tables_are_found_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=["x", "y", "z"])
    frame["kind"] = np.where(frame["x"] > 0, "b", "a")
    for name, columns in {
        "train": ["x", "y", "z", "kind"], "other": ["z", "kind", "x", "y"],
        "bare": ["y", "x", "z"], "short": ["y", "x", "kind"],
    }.items():  # fmt: skip
        frame[columns].to_csv(tmp_path / f"{name}.csv", index=False)
    run("train", "train.csv", "-q", "-o", "m", cwd=tmp_path)
    expected = run("predict", "m", "train.csv", cwd=tmp_path)
    assert "accuracy" in expected.err
    assert run("predict", "m", "other.csv", cwd=tmp_path) == expected
    bare = run("predict", "m", "bare.csv", cwd=tmp_path)
    assert (bare.out, bare.err) == (expected.out, "")
    # Also those of files that were converted.
    for name in ("train", "other", "short"):
        succeed(f"convert {name}.csv {name}.arrow --label kind --keep-order -q", cwd=tmp_path)
    for name in ("train.arrow", "other.arrow"):
        assert run("predict", "m", name, cwd=tmp_path).out == expected.out
    for name in ("short.csv", "short.arrow"):
        refuse("no column 'z' for the model", "predict", "m", name, cwd=tmp_path)


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
    refuse("it was not trained on this file", "verify", "m", "wider", cwd=tmp_path)
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
    words = f"{command} m t.csv"
    refuse("t.csv has 3 columns of features (labels in 'label'), the model 5", words, cwd=tmp_path)
    run("convert", "t.csv", "t.arrow", "-q", cwd=tmp_path)
    refuse("t.arrow has 3 columns of features", f"{command} m t.arrow", cwd=tmp_path)


def test_a_table_without_labels(tmp_path: Path) -> None:
    X, _ = noisy(n_columns=3)
    write(tmp_path / "data", n_columns=3)
    run("train", "data", "-q", "-o", "m", cwd=tmp_path)
    rows = [",".join(map(repr, row)) for row in X.toarray().tolist()]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    bare = run("predict", "m", "t.csv", cwd=tmp_path)
    assert (bare.out, bare.err) == (run("predict", "m", "data", cwd=tmp_path).out, "")
    refuse("labels in 'c'", "evaluate", "m", "t.csv", cwd=tmp_path)


def test_measures_agree_with_scikit_learn(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    write(tmp_path / "new", n_classes=3, seed=1)
    run("train", "data", "-q", cwd=tmp_path)
    X, y = noisy(n_classes=3, seed=1)
    predicted = Model.load(tmp_path / "data.model").predict(X)
    result = run("evaluate", "data.model", "new", "--json", cwd=tmp_path).json
    assert result["rows"] == y.size
    assert result["accuracy"] == pytest.approx((predicted == y).mean())
    assert result["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    expected = np.array(precision_recall_fscore_support(y, predicted))[[0, 1, 3]].T
    for k, numbers in enumerate(expected):
        scores = result["classes"][str(k)]
        found = [scores[name] for name in ("precision", "recall", "weight")]
        assert found == pytest.approx(numbers)


def test_weights_count(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(40)
    y = np.where(x + 0.5 * rng.standard_normal(40) > 0, 1, 0)
    weights = rng.integers(1, 5, 40)
    pd.DataFrame({"x": x, "w": weights, "label": y}).to_csv(tmp_path / "t.csv", index=False)
    run("train", "t.csv", "--weight", "w", "-q", "-o", "m", cwd=tmp_path)
    right = Model.load(tmp_path / "m").predict(x[:, np.newaxis]) == y
    done = run("evaluate", "m", "t.csv", "--weight", "w", cwd=tmp_path)
    assert f"accuracy {weights[right].sum() / weights.sum():.4%}" in done.out
    assert "in weight" in done.out


def test_the_share_of_sure_predictions(tmp_path: Path) -> None:
    write(tmp_path / "data")
    write(tmp_path / "new", seed=1)
    run("train", "data", "-q", "--tol", "1e-6", cwd=tmp_path)
    X, _ = noisy(seed=1)
    model = Model.load(tmp_path / "data.model")
    share = model.stability(X)
    assert 0.5 < share <= 1.0
    done = run("evaluate", "data.model", "new", "--json", cwd=tmp_path)
    assert done.json["stability"] == pytest.approx(share)
    text = run("evaluate", "data.model", "new", cwd=tmp_path).out
    assert "more training could not flip" in text
    # Nothing is sure of a model that is far from the optimum.
    run("train data -q -o far -c 100 --tol 2 --solver sgd-s", cwd=tmp_path)
    assert "flip 0.0000% of" in run("evaluate", "far", "new", cwd=tmp_path).out
    # Without a certificate there is nothing to say.
    replace(model, certificates=()).save(tmp_path / "bare.model")
    assert run("evaluate", "bare.model", "new", "--json", cwd=tmp_path).json["stability"] is None
    assert "flip" not in run("evaluate", "bare.model", "new", cwd=tmp_path).out


def test_the_share_counts_weights_and_is_rounded_down(tmp_path: Path) -> None:
    """Of weights 1 and 2e6, the first is that of a row that is not sure."""
    claims = (Certificate(1.0, 0.5, target=1.0),)
    model = Model([[2.0]], [0.0], np.arange(2), np.ones(2), claims, feature_names=("x",))
    model.save(tmp_path / "sure.model")
    replace(model, coef=np.array([[0.5]])).save(tmp_path / "open.model")
    (tmp_path / "t.csv").write_text("x,w,label\n1,2000000,1\n1e-300,1,1\n")
    at = ("t.csv", "--weight", "w")
    assert run("evaluate", "open.model", *at, "--json", cwd=tmp_path).json["stability"] == 0.0
    share = run("evaluate", "sure.model", *at, "--json", cwd=tmp_path).json["stability"]
    assert share == pytest.approx(2e6 / (2e6 + 1), rel=1e-12)
    assert "not flip 99.9999% of" in run("evaluate", "sure.model", *at, cwd=tmp_path).out


def test_labels_of_other_data_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", cwd=tmp_path)
    (tmp_path / "other").write_text("7 1:1\n8 2:1\n")
    words = "evaluate data.model other"
    refuse("none of the labels in other (7, 8) is one of the model's (-1, 1)", words, cwd=tmp_path)


def test_the_page_tells_what_is_proved(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    run("train", "data", "-q", "--solver", "dcd", cwd=tmp_path)
    made = succeed("report", "data.model", "data", cwd=tmp_path)
    assert made.out.strip() == "data.model.html"
    with opened(tmp_path / "data.model.html") as driver:
        text = driver.find_element("css selector", "body").text
        for told in ("The objective of every class is within", "J and L closing in on each other",
                     "certsvm verify data.model", "claimed by the file", "L remains a claim",
                     "could not flip", "fingerprint"):  # fmt: skip
            assert told in text


def test_without_data_and_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    assert run("report", "data.model", "-o", "page.html", cwd=tmp_path).code == 0
    page = (tmp_path / "page.html").read_text()
    assert "could not flip" not in page
    assert page.startswith("<!DOCTYPE html>")
    assert "can recompute the certificate" in page
    # As in the file, which counts from one.
    assert "feature 1<" in page
