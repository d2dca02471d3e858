"""Models of fitted estimators, with a proof that others can recompute."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError

from certsvm import LinearSVC, Model, verify_model

X, Y = make_classification(300, 8, flip_y=0.1, random_state=0)
WEIGHTS = np.random.default_rng(0).integers(0, 3, Y.size).astype(float)


@pytest.mark.parametrize(
    ("loss", "penalize_intercept", "solver"),
    [("hinge", True, "newton"), ("squared_hinge", True, "dcd"), ("hinge", False, "dcd")],
)
def test_a_saved_proof(tmp_path: Path, loss: str, penalize_intercept: bool, solver: str) -> None:
    clf = LinearSVC(
        0.1, loss=loss, penalize_intercept=penalize_intercept, solver=solver,
        class_weight="balanced", store_dual=True, random_state=0,
    ).fit(X, Y, WEIGHTS)  # fmt: skip
    # What counts is how it was fitted.
    clf.set_params(C=7.0, class_weight=None, loss="hinge", penalize_intercept=True)
    clf.to_model(X, Y, WEIGHTS).save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model", witness=True)
    report = verify_model(loaded, [(X, Y, WEIGHTS)])
    assert report.verdict == "confirmed"
    assert report.same_data
    assert loaded.certificates[0].met
    assert loaded.certificates[0].dual <= clf.certificate_.primal
    np.testing.assert_array_equal(loaded.coef, clf.coef_)


def test_data_without_a_dual_point_prove_nothing() -> None:
    """J is the same if rows without a loss come and go, and the optimum is another."""
    clf = LinearSVC(C=10.0, fit_intercept=False, tol=1e-6).fit([[1.0], [-1.0]], [1, 0])
    with pytest.raises(ValueError, match="store_dual=True"):
        clf.to_model([[3.0], [-3.0], [5.0]], [1, 0, 1])
    assert clf.to_model().fingerprint is None


def test_other_data_are_refused() -> None:
    clf = LinearSVC(store_dual=True, random_state=0).fit(X, Y)
    others: list[tuple[Any, ...]] = [
        (X, 1 - Y),
        ((1 - 1e-10) * X, Y),
        (2 * X, Y),
        (X, Y, 2 * np.ones(Y.size)),
    ]
    for other in others:
        with pytest.raises(ValueError, match="refuted by these data"):
            clf.to_model(*other)
    with pytest.raises(ValueError, match="features"):
        clf.to_model(X[:, :5], Y)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(NotFittedError):
        LinearSVC().to_model(X, Y)
    clf = LinearSVC(random_state=0).fit(X, Y)
    for given in ({"X": X}, {"y": Y}, {"sample_weight": WEIGHTS}):
        with pytest.raises(ValueError, match="both X and y"):
            clf.to_model(**given)
    with pytest.raises(ValueError, match="store_dual=True"):
        LinearSVC().partial_fit(X, Y, classes=[0, 1]).to_model(X, Y)


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_in_a_column_and_one_weight_for_all_rows() -> None:
    """What fit accepts is accepted wherever the training data are asked for."""
    labels = Y[:, np.newaxis]
    clf = LinearSVC(0.1, store_dual=True, random_state=0).fit(X, labels, 2.0)
    model = clf.to_model(X, labels, 2.0)
    report = verify_model(model, [(X[:100], labels[:100], 2.0), (X[100:], labels[100:], 2.0)])
    assert report.verdict == "confirmed"
    assert report.same_data
    for fitted in (clf, model):
        status = fitted.support_status(X, Y, np.full(Y.size, 2.0))
        np.testing.assert_array_equal(fitted.support_status(X, labels, 2.0), status)
    assert clf.stability(X, 2.0) == clf.stability(X)
