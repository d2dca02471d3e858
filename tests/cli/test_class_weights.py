"""Class weights as options give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certsvm import LinearSVC, Model
from certsvm.cli.app import BadInput
from certsvm.cli.sources import parse_class_weights
from certsvm.files import save_libsvm
from tests.cli.running import noisy, run

TEXT, NUMBERS = np.array(["1", "x"]), np.array([-1.0, 1.0])


@pytest.mark.parametrize(
    ("texts", "classes", "weights"),
    [
        ([], TEXT, None),
        (["balanced"], TEXT, "balanced"),
        (["1=5"], TEXT, {"1": 5.0}),
        (["1=5", "-1=0.5"], NUMBERS, {1.0: 5.0, -1.0: 0.5}),
        (["1.0=5"], NUMBERS, {1.0: 5.0}),
        (["a=b=2"], np.array(["a=b", "c"]), {"a=b": 2.0}),
    ],
)
def test_labels_are_of_the_classes_type(texts: Any, classes: Any, weights: Any) -> None:
    assert parse_class_weights(texts, classes) == weights


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["balanced", "1=2"], "does not go with"),
        (["1=much"], "write LABEL=W"),
        (["7=2"], "there is no class 7; there are -1, 1"),
        (["x=2"], "there is no class x"),
    ],
)
def test_what_makes_no_sense(texts: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_class_weights(texts, NUMBERS)


def test_weights_of_several_classes_are_those_of_the_estimator(tmp_path: Path) -> None:
    X, y = noisy(n_classes=3)
    save_libsvm(tmp_path / "data", X, y)
    options = ["-w0", 3, "-w2", 0.2, "-e", 1e-10, "-B", 1, "--witness"]
    assert run("train", "data", *options, cwd=tmp_path).code == 0
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    model = Model.load(tmp_path / "data.model")
    clf = LinearSVC(tol=1e-10, class_weight={0: 3.0, 1: 1.0, 2: 0.2}).fit(X, y)
    np.testing.assert_allclose(model.coef, clf.coef_, atol=1e-3)


def test_a_weight_of_a_class_that_is_absent_is_a_note_as_in_liblinear(tmp_path: Path) -> None:
    X, y = noisy(n_rows=40, n_columns=2)
    save_libsvm(tmp_path / "data", X, y)
    plain = run("train", "data", "-w1", "3", "-o", "plain", "-q", cwd=tmp_path)
    noted = run("train", "data", "-w7", "2", "-w1", "3", "-o", "noted", "-q", cwd=tmp_path)
    assert (plain.code, plain.err, noted.code) == (0, "", 0)
    assert "no class 7" in noted.err
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "noted").read_bytes()
