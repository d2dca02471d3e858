"""Class weights as options give them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certsvm import LinearSVC, Model
from certsvm.files import save_libsvm
from tests.cli.running import noisy, run, write


@pytest.mark.parametrize(
    ("labels", "words", "weights"),
    [
        ("-1 1", ["-w", "balanced"], [1.5, 0.75]),
        ("-1 1", ["-w1", "5", "-w-1", "0.5"], [0.5, 5.0]),
        ("-1 1", ["--class-weight", "1.0=5", "-w", "-1=2"], [2.0, 5.0]),
        ("1 a=b", ["-w", "a=b=2"], [1.0, 2.0]),
        ("1 x", ["-w", "1=5"], [5.0, 1.0]),
    ],
)
def test_labels_are_those_of_the_file(
    labels: str, words: list[str], weights: list[float], tmp_path: Path
) -> None:
    first, second = labels.split()
    rows = [f"1,{first}", f"2,{second}", f"3,{second}"]
    (tmp_path / "t.csv").write_text("\n".join(["x,label", *rows]) + "\n")
    assert run("train", "t.csv", *words, "-o", "m", "-q", cwd=tmp_path).code == 0
    assert Model.load(tmp_path / "m").class_weight.tolist() == weights


def test_bad_weights(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=40)
    for words, message in (
        (["-w", "balanced", "-w", "1=2"], '"balanced" alone'),
        (["-w", "1=much"], "write LABEL=W"),
        (["-w1"], "write LABEL=W"),
        (["-w7", "2"], "there is no class 7; there are -1, 1"),
        (["-w", "x=2"], "there is no class x"),
    ):
        refused = run("train", "data", *words, cwd=tmp_path)
        assert refused.code == 2
        assert message in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_weights_of_several_classes_are_those_of_the_estimator(tmp_path: Path) -> None:
    X, y = noisy(n_classes=3)
    save_libsvm(tmp_path / "data", X, y)
    options = ["-w0", 3, "-w2", 0.2, "-e", 1e-10, "-B", 1, "--witness"]
    assert run("train", "data", *options, cwd=tmp_path).code == 0
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    model = Model.load(tmp_path / "data.model")
    clf = LinearSVC(tol=1e-10, class_weight={0: 3.0, 1: 1.0, 2: 0.2}).fit(X, y)
    np.testing.assert_allclose(model.coef, clf.coef_, atol=1e-3)
