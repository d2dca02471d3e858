"""Evaluating from the shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, precision_recall_fscore_support

from certsvm import Model
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
