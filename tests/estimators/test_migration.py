"""Programs written for scikit-learn's LinearSVC, run with ours."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.svm import LinearSVC as LiblinearSVC

from certsvm import LinearSVC


@pytest.fixture(scope="module")
def binary() -> tuple[Any, Any]:
    return make_classification(n_samples=200, n_features=5, flip_y=0.1, random_state=0)


def test_every_keyword_of_scikit_learn_is_understood(binary: Any) -> None:
    theirs = inspect.signature(LiblinearSVC).parameters
    ours = inspect.signature(LinearSVC).parameters
    assert set(theirs) <= set(ours)
    # With the values that they have there, too.
    clf = LinearSVC(**{name: parameter.default for name, parameter in theirs.items()})
    reference = LiblinearSVC(tol=1e-10, max_iter=10**5, dual=False).fit(*binary)
    np.testing.assert_allclose(clf.fit(*binary).coef_, reference.coef_, atol=1e-3)
    different = {name for name in theirs if theirs[name].default != ours[name].default}
    assert different == {"loss", "tol"}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_dual_chooses_no_optimum(loss: str, binary: Any) -> None:
    models = [
        LinearSVC(loss=loss, dual=dual, random_state=0).fit(*binary)
        for dual in ("auto", True, False)
    ]
    assert all((clf.coef_ == models[0].coef_).all() for clf in models)
    assert all(clf.certificate_.met for clf in models)


@pytest.mark.parametrize(
    ("parameters", "who"),
    [
        ({"penalty": "l1"}, "scikit-learn's LinearSVC and liblinear .* skglm"),
        ({"multi_class": "crammer_singer"}, "scikit-learn's LinearSVC and liblinear"),
    ],
)
def test_what_there_is_not_is_said_with_who_has_it(parameters: Any, who: str, binary: Any) -> None:
    for method in ("fit", "partial_fit"):
        clf = LinearSVC(loss="hinge", **parameters)
        with pytest.raises(ValueError, match=f"is not available here.*{who}"):
            getattr(clf, method)(*binary)
        assert not hasattr(clf, "coef_")
    LinearSVC(penalty="l2", multi_class="ovr").fit(*binary)


@pytest.mark.parametrize(
    "parameters", [{"penalty": "l3"}, {"dual": "maybe"}, {"multi_class": "ovo"}]
)
def test_values_that_make_no_sense(parameters: Any, binary: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{next(iter(parameters))}' parameter of LinearSVC"):
        LinearSVC(**parameters).fit(*binary)


def test_weights_of_several_classes() -> None:
    # In liblinear, the factor of a class counts in its own problem only.
    X, y = load_iris(return_X_y=True)
    factors = {0: 2.0, 1: 5.0, 2: 0.5}
    theirs = LiblinearSVC(class_weight=factors, dual=False, tol=1e-10, max_iter=10**5).fit(X, y)
    ours = LinearSVC(loss="squared_hinge", class_weight=factors, tol=1e-10).fit(X, y)
    for i, factor in factors.items():
        alone = LinearSVC(loss="squared_hinge", tol=1e-10)
        alone.fit(X, y == i, np.where(y == i, factor, 1.0))
        np.testing.assert_allclose(alone.coef_[0], theirs.coef_[i], atol=1e-4)
        assert abs(ours.coef_[i] - theirs.coef_[i]).max() > 0.01
        everywhere = LinearSVC(loss="squared_hinge", tol=1e-10)
        everywhere.fit(X, y == i, np.vectorize(factors.get)(y))
        np.testing.assert_allclose(everywhere.coef_[0], ours.coef_[i], atol=1e-4)
