"""What scikit-learn asks of estimators, and programs written for its LinearSVC."""

import inspect
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as LiblinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from certsvm import LinearSVC, LinearSVCCV, verify

ESTIMATORS = [
    LinearSVC(),
    LinearSVC(loss="squared_hinge", penalize_intercept=False),
    # With the hinge and a free intercept, rows there have scores that are equal but for rounding,
    # so that their labels depend on the processor.
    LinearSVCCV(Cs=3, cv=3, loss="squared_hinge", penalize_intercept=False),
    LinearSVCCV(certify=0.1, cv=3, max_fits=8),
]


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


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
    assert different == {"loss"}


@pytest.mark.parametrize(("name", "value"), [("penalty", "l1"), ("multi_class", "crammer_singer")])
def test_what_there_is_not_is_refused(name: str, value: str, binary: Any) -> None:
    for method in ("fit", "partial_fit"):
        clf = LinearSVC(loss="hinge", **{name: value})
        with pytest.raises(ValueError, match=f"The '{name}' parameter of LinearSVC"):
            getattr(clf, method)(*binary)
        assert not hasattr(clf, "coef_")


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("class_weight", [{0: 2.0, 1: 5.0, 2: 0.5}, "balanced"])
def test_class_weights_are_those_of_liblinear(n_classes: int, loss: str, class_weight: Any) -> None:
    rng = np.random.default_rng(0)
    shares = np.arange(1.0, n_classes + 1)
    y = rng.choice(n_classes, size=120, p=shares / shares.sum())
    X = rng.standard_normal((120, 4)) + 0.8 * np.eye(4)[y]
    weights = rng.uniform(0.5, 2.0, y.size)
    if isinstance(class_weight, dict):
        class_weight = {label: class_weight.get(label, 1.0) for label in range(n_classes)}
    parameters = {"C": 0.3, "loss": loss, "class_weight": class_weight, "random_state": 0}
    theirs = LiblinearSVC(**parameters, dual=True, tol=1e-10, max_iter=10**6).fit(X, y, weights)
    ours = LinearSVC(**parameters, tol=1e-13, store_dual=True, max_iter=10**5)
    with warnings.catch_warnings():
        # The last digits of the gap may be out of reach.
        warnings.simplefilter("ignore")
        ours.fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert verify(ours, X, y, weights).verdict == "confirmed"


@pytest.mark.skipif(
    tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 14),
    reason="scikit-learn's array_api_dispatch needs SciPy 1.14",
)
def test_arrays_on_the_host_are_taken_as_numpys() -> None:
    """SciPy must be configured before it is imported, so this takes a process of its own."""
    program = """
import array_api_strict as xp
import numpy as np
import sklearn
from sklearn.datasets import make_classification
from certsvm import LinearSVC

X, y = make_classification(n_samples=200, random_state=0)
w = np.random.default_rng(0).random(200)
for dtype in ("float32", "float64"):
    ours = X.astype(dtype)
    theirs, labels, weights = xp.asarray(ours), xp.asarray(y), xp.asarray(w)
    one = LinearSVC(random_state=0).fit(ours, y, w)
    stream = LinearSVC().partial_fit(ours, y, [0, 1], w)
    with sklearn.config_context(array_api_dispatch=True):
        other = LinearSVC(random_state=0).fit(theirs, labels, weights)
        np.testing.assert_array_equal(other.coef_, one.coef_)
        np.testing.assert_array_equal(other.decision_function(theirs), one.decision_function(ours))
        np.testing.assert_array_equal(other.predict(theirs), one.predict(ours))
        assert other.score(theirs, labels, weights) == one.score(ours, y, w)
        other = LinearSVC().partial_fit(theirs, labels, [0, 1], weights)
        np.testing.assert_array_equal(other.coef_, stream.coef_)
        assert other.score(ours, y) == stream.score(ours, y)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300, env=environment)
