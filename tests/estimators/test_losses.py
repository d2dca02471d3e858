"""Both losses of LinearSVC, with the intercept in the penalty or not, beside others' optima."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as LiblinearSVC

from certsvm import LinearSVC
from certsvm.fitting.sources import MemorySource


@pytest.fixture(scope="module")
def binary() -> tuple[Any, Any]:
    return make_classification(n_samples=400, n_features=10, flip_y=0.1, random_state=0)


def liblinear(X: Any, y: Any, **parameters: Any) -> LiblinearSVC:
    """The optimum of scikit-learn's default problem, by Newton's method in the primal."""
    clf = LiblinearSVC(loss="squared_hinge", dual=False, tol=1e-10, max_iter=10**5, **parameters)
    return clf.fit(X, y)


def without_penalty(X: Any, y: Any, C: float, loss: str) -> tuple[Any, float]:
    """The optimum with a free intercept: of the hinge by libsvm, of its square by BFGS."""
    if loss == "hinge":
        clf = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
        return clf.coef_[0], float(clf.intercept_[0])
    signs = np.where(y == 1, 1.0, -1.0)

    def objective(v: Any) -> tuple[float, Any]:
        violations = np.maximum(0.0, 1.0 - signs * (X @ v[:-1] + v[-1]))
        slopes = -2.0 * C * signs * violations
        value = 0.5 * v[:-1] @ v[:-1] + C * violations @ violations
        return value, np.append(v[:-1] + X.T @ slopes, slopes.sum())

    found = minimize(
        objective, np.zeros(X.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    return found.x[:-1], float(found.x[-1])


@pytest.mark.parametrize(("solver", "C"), [("auto", 0.01), ("auto", 100.0), ("dcd", 1.0)])
def test_the_squared_hinge_is_that_of_scikit_learn(solver: str, C: float, binary: Any) -> None:
    X, y = binary
    ours = LinearSVC(C=C, loss="squared_hinge", tol=1e-9, solver=solver, max_iter=10_000).fit(X, y)
    theirs = liblinear(X, y, C=C)
    assert ours.certificate_.met
    assert ours.certificate_.loss == "squared_hinge"
    # |w - w*|^2 <= 2 (J - J*), by strong convexity.
    atol = np.sqrt(2.0 * 1e-9 * ours.certificate_.primal)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=atol)
    signs = np.where(y == 1, 1.0, -1.0)
    losses = np.maximum(0.0, 1.0 - signs * ours.decision_function(X)) ** 2
    w = np.append(ours.coef_, ours.intercept_)
    assert ours.certificate_.primal == pytest.approx(0.5 * w @ w + C * losses.sum(), rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "dcd"])
def test_an_intercept_without_penalty(solver: str, loss: str) -> None:
    X, y = make_classification(300, 8, weights=[0.8], flip_y=0.1, random_state=1)
    # Away from the origin, the penalty on the intercept makes a difference.
    X += 2.0
    for C in (0.01, 1.0):
        coef, intercept = without_penalty(X, y, C, loss)
        parameters: Any = {"C": C, "loss": loss, "solver": solver, "tol": 1e-9, "max_iter": 10**5}
        for height in (1.0, 7.0):
            ours = LinearSVC(penalize_intercept=False, intercept_scaling=height, **parameters)
            ours.fit(X, y)
            assert ours.certificate_.met
            assert not ours.certificate_.penalize_intercept
            atol = np.sqrt(2.0 * 1e-9 * ours.certificate_.primal)
            np.testing.assert_allclose(ours.coef_[0], coef, rtol=0, atol=2 * atol)
            assert ours.intercept_[0] == pytest.approx(intercept, abs=2e-3)
        penalized = LinearSVC(**parameters).fit(X, y)
        assert abs(penalized.intercept_[0] - intercept) > 0.5
        assert penalized.certificate_.primal > ours.certificate_.primal


def test_without_an_intercept_there_is_none_to_penalise(binary: Any) -> None:
    free, usual = (
        LinearSVC(fit_intercept=False, penalize_intercept=penalize, random_state=0).fit(*binary)
        for penalize in (False, True)
    )
    np.testing.assert_array_equal(free.coef_, usual.coef_)
    assert free.certificate_ == usual.certificate_
    with pytest.raises(ValueError, match="needs penalize_intercept=True"):
        LinearSVC(solver="ocas", penalize_intercept=False).fit(*binary)
    LinearSVC(solver="ocas", penalize_intercept=False, fit_intercept=False).fit(*binary)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"loss": "squared_hinge"}, "partial_fit is for loss='hinge'"),
        ({"penalize_intercept": False}, "not for penalize_intercept=False"),
    ],
)
def test_partial_fit_is_for_the_hinge(parameters: Any, reason: str, binary: Any) -> None:
    X, y = binary
    clf = LinearSVC(**parameters)
    assert not hasattr(clf, "partial_fit")
    with pytest.raises(AttributeError) as error:
        clf.partial_fit(X, y, classes=[0, 1])
    assert reason in str(error.value.__cause__)
    # Without an intercept there is none to penalise.
    other = LinearSVC(penalize_intercept=False, fit_intercept=False)
    assert other.partial_fit(X, y, classes=[0, 1]).score(X, y) > 0.7


@pytest.mark.parametrize("solver", ["working-set", "newton"])
def test_a_warm_start_knows_for_which_loss_its_dual_point_is(solver: str, binary: Any) -> None:
    X, y = binary
    clf = LinearSVC(C=0.5, loss="squared_hinge", tol=1e-6, warm_start=True, solver=solver)
    passes = clf.fit(X, y).n_iter_
    assert clf.fit(X, y).n_iter_ <= passes
    for objective in ({"loss": "hinge"}, {"penalize_intercept": False}):
        (start,) = clf.set_params(**objective)._starts(MemorySource(X, y, intercept_scaling=1.0))
        assert (start.alpha, start.smoothing) == (None, None)
        np.testing.assert_array_equal(start.w, np.append(clf.coef_, clf.intercept_))
        cold = clone(clf).fit(X, y)
        warm = pickle.loads(pickle.dumps(clf)).fit(X, y)
        assert warm.certificate_.met
        assert warm.certificate_.problem == cold.certificate_.problem
        assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)


def test_a_warm_start_needs_the_same_columns_and_classes(binary: Any) -> None:
    X, y = binary
    clf = LinearSVC(C=0.5, tol=1e-6, warm_start=True, solver="dcd", random_state=0).fit(X, y)
    for other, labels in ((X[:, :5], y), (X, y + 1), (X, np.arange(len(y)) % 3), (X[:50], y[:50])):
        cold = clone(clf).fit(other, labels)
        assert pickle.loads(pickle.dumps(clf)).fit(other, labels).certificate_.primal == (
            pytest.approx(cold.certificate_.primal, rel=2e-6)
        )
