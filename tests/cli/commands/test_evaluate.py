"""Evaluating from the shell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, precision_recall_fscore_support

from certsvm import Certificate, Model
from tests.cli.running import noisy, run, write


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
    precision, recall, _, _ = precision_recall_fscore_support(y, predicted)
    for k, name in enumerate(["0", "1", "2"]):
        scores = result["classes"][name]
        assert scores["precision"] == pytest.approx(precision[k])
        assert scores["recall"] == pytest.approx(recall[k])
        assert scores["weight"] == (y == k).sum()


def test_weights_count(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(40)
    y = np.where(x + 0.5 * rng.standard_normal(40) > 0, 1, 0)
    weights = rng.integers(1, 5, 40)
    rows = [f"{a!r},{w},{b}" for a, w, b in zip(x.tolist(), weights, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,w,label", *rows]) + "\n")
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
    run(
        "train", "data", "-q", "-o", "far", "-c", 100, "--tol", 2, "--solver", "sgd-s", cwd=tmp_path
    )
    assert "(a tighter --tol" in run("evaluate", "far", "new", cwd=tmp_path).out
    # Without a certificate there is nothing to say.
    replace(model, certificates=()).save(tmp_path / "bare.model")
    assert run("evaluate", "bare.model", "new", "--json", cwd=tmp_path).json["stability"] is None
    assert "flip" not in run("evaluate", "bare.model", "new", cwd=tmp_path).out


def test_the_share_counts_weights_and_is_rounded_down(tmp_path: Path) -> None:
    """Of weights 1 and 2e6, the first is that of a row that is not sure."""
    certificate = Certificate(1.0, 0.5, target=1.0)
    model = Model(
        coef=np.array([[2.0]]), intercept=np.zeros(1), classes=np.array([0, 1]),
        class_weight=np.ones(2), certificates=(certificate,), feature_names=("x",),
    )  # fmt: skip
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
    refused = run("evaluate", "data.model", "other", cwd=tmp_path)
    assert refused.code == 2
    assert "none of the labels in other (7, 8) is one of the model's (-1, 1)" in refused.err
