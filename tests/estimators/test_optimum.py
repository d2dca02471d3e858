"""What a fitted classifier tells about the exact optimum, which is known in rational numbers."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from certsvm import LinearSVC, Model, SupportStatus
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource
from tests.exact import ExactOptimum, exact_rows, known_optimum
from tests.files.test_optimum import require_true
from tests.problems import Case, exact
from tests.settings import settings_of

Ends = tuple[Any, Any]


def problems_of(clf: LinearSVC, X: Any, y: Any, weights: Any) -> list[Case]:
    """The binary problems behind a classifier."""
    rho = clf.intercept_scaling if clf.fit_intercept else 0.0
    factors = clf.class_weight_[np.searchsorted(clf.classes_, y)]
    two = len(clf.classes_) == 2
    problems = []
    for label in clf.classes_[1:] if two else clf.classes_:
        s = weights * (factors if two else np.where(y == label, factors, 1.0))
        signs = np.where(y == label, 1.0, -1.0)
        problems.append(Case(X, signs, s, clf.C, rho))
    return problems


def require_contained(clf: Any, optima: list[ExactOptimum], rho: float, X: Any) -> None:
    """Assert that all intervals contain the exact optimum, and that sure labels are its labels."""
    n = X.shape[1]
    low_coef, high_coef = clf.coef_interval()
    low_b, high_b = clf.intercept_interval()
    low, high = (np.reshape(end, (len(X), -1)) for end in clf.decision_interval(X))
    scores = np.empty(low.shape, dtype=object)
    for i, optimum in enumerate(optima):
        b = optimum.w[n] * exact(rho) if rho else exact(0.0)
        assert exact(low_b[i]) <= b <= exact(high_b[i])
        for a, value, z in zip(low_coef[i], optimum.w[:n], high_coef[i], strict=True):
            assert exact(a) <= value <= exact(z)
        for k, x in enumerate(exact_rows(X)):
            score = sum((p * q for p, q in zip(x, optimum.w[:n], strict=True)), b)
            assert exact(low[k, i]) <= score <= exact(high[k, i])
            scores[k, i] = score
    if len(optima) == 1:
        index = [int(score > 0) for score in scores[:, 0]]
    else:
        # As argmax does, of equal scores the first.
        index = [list(row).index(max(row)) for row in scores]
    classes = clf.classes_ if hasattr(clf, "classes_") else clf.classes
    same = clf.predict(X) == classes[index]
    assert clf.stability(X) <= same.mean()
    for k in range(len(X)):
        assert same[k] or clf.stability(X[k : k + 1]) == 0.0


@given(data=st.data(), n_classes=st.integers(2, 4))
def test_intervals_contain_the_exact_optimum(data: st.DataObject, n_classes: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = data.draw(st.integers(n_classes, 10))
    X = rng.integers(-2, 3, (n, 3)).astype(float) * data.draw(st.sampled_from([1.0, 0.1, 30.0]))
    X[: data.draw(st.integers(0, 2))] = 0.0
    y = rng.permutation(np.arange(n) % n_classes)
    weights = rng.choice([0.5, 1.0, 2.0], n)
    clf = LinearSVC(
        data.draw(st.sampled_from([1e-6, 0.1, 1.0, 100.0])),
        tol=data.draw(st.sampled_from([0.5, 0.01, 1e-6])),
        solver=data.draw(st.sampled_from(["dcd", "sgd-s", "newton", "ocas"])),
        fit_intercept=data.draw(st.booleans()),
        intercept_scaling=data.draw(st.sampled_from([1.0, 0.2, 5.0])),
        class_weight=data.draw(st.sampled_from([None, "balanced", {0: 3.0, 1: 0.5}])),
        max_iter=30,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y, weights)
    problems = problems_of(clf, X, y, weights)
    known = [known_optimum(case) for case in problems]
    rho = problems[0].intercept_scaling
    X_new = np.vstack([X, rng.standard_normal((4, 3))])
    require_contained(clf, known, rho, X_new)
    require_contained(Model.from_estimator(clf), known, rho, X_new)
    status = clf.support_status(X, y, weights).reshape(n, -1)
    for i, (case, optimum) in enumerate(zip(problems, known, strict=True)):
        require_true(case, optimum, status[:, i])


@pytest.fixture(scope="module")
def fitted() -> tuple[LinearSVC, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = (X[:, :3] + 0.5 * rng.standard_normal((300, 3))).argmax(axis=1)
    return LinearSVC(0.1, tol=1e-6, random_state=0).fit(X, y), X, y


def close(some: Ends, others: Ends) -> None:
    for a, b in zip(some, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_weights_count_in_the_share(fitted: Any) -> None:
    _, X, y = fitted
    clf = LinearSVC(0.1, tol=1e-3, solver="dcd", random_state=0).fit(X, y)
    sure = np.array([clf.stability(X[k : k + 1]) == 1.0 for k in range(300)])
    assert 0.1 < sure.mean() < 0.99
    assert clf.stability(X) == pytest.approx(sure.mean())
    weights = np.where(sure, 3.0, 0.5)
    share = 3.0 * sure.sum() / weights.sum()
    assert clf.stability(X, weights) == pytest.approx(share)
    assert Model.from_estimator(clf).stability(X, weights) == pytest.approx(share)


def test_streams(fitted: Any) -> None:
    clf, X, y = fitted
    weights = np.random.default_rng(1).random(300)
    parts = [slice(0, 100), slice(100, 101), slice(101, 300)]

    def blocks() -> Any:
        for part in parts:
            yield X[part], y[part]

    for stream in (blocks, blocks(), (X[part] for part in parts)):
        answers = list(clf.decision_interval(stream))
        assert len(answers) == 3
        low, high = (np.concatenate(end) for end in zip(*answers, strict=True))
        close((low, high), clf.decision_interval(X))
    assert clf.stability(blocks) == pytest.approx(clf.stability(X))
    np.testing.assert_array_equal(clf.support_status(blocks), clf.support_status(X, y))
    np.testing.assert_array_equal(clf.support_status(blocks()), clf.support_status(X, y))

    def weighted() -> Any:
        for part in parts:
            yield X[part], y[part], weights[part]

    assert clf.stability(weighted) == pytest.approx(clf.stability(X, weights))
    with pytest.raises(ValueError, match="got 4 parts"):
        clf.stability(iter([(X, y, weights, 0)]))


def test_what_proves_nothing(fitted: Any) -> None:
    _, X, y = fitted
    clf = LinearSVC().partial_fit(X, y, classes=[0, 1, 2])
    for low, high in (clf.decision_interval(X), clf.coef_interval(), clf.intercept_interval()):
        assert (low == -math.inf).all()
        assert (high == math.inf).all()
    assert clf.stability(X) == 0.0
    assert (clf.support_status(X, y) == SupportStatus.UNDECIDED).all()
    with pytest.raises(NotFittedError):
        LinearSVC().stability(X)


def test_a_free_intercept_is_in_no_interval(fitted: Any) -> None:
    _, X, y = fitted
    source = MemorySource(X, y, intercept_scaling=1.0)
    clf = LinearSVC(0.1, tol=1e-8, random_state=0).fit(X, y)
    results = fit_classes(source, settings_of(C=0.1, tol=1e-8, penalize_intercept=False))
    clf._set_fitted(source, results)
    fine = fit_classes(source, settings_of(C=0.1, tol=1e-12, penalize_intercept=False))
    for teller in (clf, Model.from_estimator(clf)):
        low, high = teller.coef_interval()
        for i, result in enumerate(fine):
            assert ((low[i] < result.w[:-1]) & (result.w[:-1] < high[i])).all()
        for claim in (
            lambda teller=teller: teller.decision_interval(X),
            lambda teller=teller: list(teller.decision_interval(iter([X]))),
            lambda teller=teller: teller.stability(X),
            lambda teller=teller: teller.intercept_interval(),
            lambda teller=teller: teller.support_status(X, y),
        ):
            with pytest.raises(ValueError, match="the intercept is free"):
                claim()


def test_arguments_that_will_not_do(fitted: Any) -> None:
    clf, X, y = fitted
    with pytest.raises(ValueError, match="was not trained on"):
        clf.support_status(X, y + 1)
    with pytest.raises(ValueError, match=r"X has \d+ rows"):
        clf.support_status(X, y[:-1])
    with pytest.raises(ValueError, match="y is None"):
        clf.support_status(X)
    with pytest.raises(ValueError, match="not negative"):
        clf.stability(X, -np.ones(300))
    X = X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clf.stability(X)
    with pytest.raises(ValueError, match="NaN"):
        Model.from_estimator(clf).stability(X)
