"""The loss, and the penalty on the intercept, from the shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as LiblinearSVC

from certsvm import Model
from certsvm.files import load_libsvm
from tests.cli.running import run, write


def trained(folder: Path, *words: object) -> Model:
    done = run("train", "data", "--tol", 1e-10, "-q", "-o", "m", *words, cwd=folder)
    assert (done.code, done.err) == (0, "")
    return Model.load(folder / "m")


def liblinear(folder: Path, **parameters: Any) -> Any:
    X, y = load_libsvm(folder / "data")
    return LiblinearSVC(tol=1e-10, max_iter=10**6, **parameters).fit(X, y)


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        (("-s", 1), {"loss": "squared_hinge", "dual": True}),
        (("-s", 2), {"loss": "squared_hinge", "dual": False}),
        (("-s2",), {"loss": "squared_hinge", "dual": False}),
        (("-s", 3), {"loss": "hinge"}),
        ((), {"loss": "hinge"}),
        (("--loss", "squared_hinge"), {"loss": "squared_hinge"}),
    ],
)
def test_types_of_liblinear(words: Any, parameters: Any, tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=200, n_columns=8)
    for bias in (-1, 1):
        model = trained(tmp_path, *words, "-c", 0.5, "-B", bias)
        theirs = liblinear(tmp_path, C=0.5, fit_intercept=bias > 0, **parameters)
        np.testing.assert_allclose(model.coef, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept, theirs.intercept_, atol=1e-4)
        assert model.parameters["loss"] == parameters["loss"]
        assert [c.loss for c in model.certificates] == [parameters["loss"]]


def test_an_intercept_without_penalty(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=200, n_columns=8)
    X, y = load_libsvm(tmp_path / "data")
    theirs = SVC(kernel="linear", C=2.0, tol=1e-10).fit(X.toarray(), y)
    for height, letter in ((1, "-R"), (5, "--free-intercept")):
        model = trained(tmp_path, "-c", 2, "-B", height, letter)
        np.testing.assert_allclose(model.coef, theirs.coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept, theirs.intercept_, atol=1e-3)
        assert model.parameters["penalize_intercept"] is False
        assert not model.certificates[0].penalize_intercept
    penalized = trained(tmp_path, "-c", 2, "-B", 1)
    assert abs(penalized.intercept - theirs.intercept_).max() > 1e-3
    assert penalized.certificates[0].penalize_intercept


def test_nothing_is_proved_about_scores_with_a_free_intercept(tmp_path: Path) -> None:
    write(tmp_path / "data")
    trained(tmp_path, "-B", 1, "-R")
    done = run("evaluate", "m", "data", "--json", cwd=tmp_path)
    assert (done.code, done.json["stability"]) == (0, None)
    assert done.json["accuracy"] > 0.5
    assert "more training" not in run("evaluate", "m", "data", cwd=tmp_path).out
    assert len(run("predict", "m", "data", cwd=tmp_path).out.splitlines()) == 300
