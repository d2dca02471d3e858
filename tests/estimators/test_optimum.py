"""What a fitted classifier tells about the exact optimum, which is known in rational numbers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from certsvm import LinearSVC, Model, SupportStatus, fit_stream
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource
from tests.exact import ExactOptimum, exact_optimum, exact_rows
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
        problems.append(Case(X, signs, s, clf.C, rho, "dense-float64-int32"))
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
    optima = [exact_optimum(case) for case in problems]
    assume(all(optimum is not None for optimum in optima))
    known = [optimum for optimum in optima if optimum is not None]
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


def test_shapes(fitted: Any) -> None:
    clf, X, y = fitted
    low, high = clf.decision_interval(X)
    scores = clf.decision_function(X)
    assert low.shape == high.shape == scores.shape == (300, 3)
    assert ((low < scores) & (scores < high)).all()
    assert clf.coef_interval()[0].shape == clf.coef_.shape
    assert clf.intercept_interval()[0].shape == (3,)
    status = clf.support_status(X, y)
    assert status.shape == (300, 3)
    assert status.dtype == np.int8
    two = LinearSVC(0.1, random_state=0).fit(X, y == 0)
    assert two.decision_interval(X)[0].shape == two.support_status(X, y == 0).shape == (300,)
    assert two.coef_interval()[1].shape == (1, 5)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, np.float32, pd.DataFrame])
def test_any_form_of_data(fitted: Any, form: Any) -> None:
    clf, X, y = fitted
    X = X.astype(np.float32).astype(np.float64)
    clf = LinearSVC(0.1, tol=1e-6, random_state=0).fit(X, y)
    other = pd.DataFrame(X) if form is pd.DataFrame else form(X)
    close(clf.decision_interval(other), clf.decision_interval(X))
    assert clf.stability(other) == clf.stability(X)
    np.testing.assert_array_equal(clf.support_status(other, y), clf.support_status(X, y))


def test_values_stored_twice_that_cancel() -> None:
    """Products with each of them are off by more than the size of the row tells."""
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    clf = LinearSVC(C=1.0, tol=1e-9).fit(X, [1, 0, 1, 0])
    huge = 2.0**60
    values = np.array([huge, 1.0, -huge])
    twice = sp.csr_matrix((values, np.zeros(3, dtype=np.int32), [0, 3]), shape=(1, 1))
    total = twice.copy()
    total.sum_duplicates()
    for teller in (clf, Model.from_estimator(clf)):
        for ours, theirs in zip(
            teller.decision_interval(twice), teller.decision_interval(total), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


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
    with pytest.raises(ValueError, match="brings its own"):
        clf.stability(blocks, weights)
    with pytest.raises(ValueError, match="y is None"):
        clf.support_status(iter([X]))
    with pytest.raises(ValueError, match="got 4 parts"):
        clf.stability(iter([(X, y, weights, 0)]))


def test_a_model_of_a_stream() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(400) > 0, "yes", "no")

    def blocks() -> Any:
        yield X[:150], y[:150]
        yield X[150:], y[150:]

    model = fit_stream(blocks, C=0.5, tol=1e-8, intercept_scaling=1.0)
    status = model.support_status(blocks)
    assert model.stability(blocks) > 0.99
    fine = LinearSVC(0.5, tol=1e-11, random_state=0).fit(X, y)
    np.testing.assert_array_equal(status, fine.support_status(X, y))
    assert {*status.tolist()} == {-1, 0, 1}


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


def test_without_a_dual_bound_the_intervals_are_wide_and_true(fitted: Any) -> None:
    fine, X, y = fitted
    clf = LinearSVC(0.1, solver="pegasos", max_iter=3, random_state=0).fit(X, y)
    low, high = clf.decision_interval(X)
    scores = fine.decision_function(X)
    assert np.isfinite(low).all()
    assert ((low < scores) & (scores < high)).all()
    assert clf.stability(X) < 0.1


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


def test_no_rows_and_no_weight(fitted: Any) -> None:
    clf, X, y = fitted
    assert Model.from_estimator(clf).decision_interval(np.zeros((0, 5)))[0].shape == (0, 3)
    assert clf.stability(X, np.zeros(300)) == 0.0
    assert clf.stability(iter([])) == 0.0
    assert clf.support_status(X, y, np.zeros(300)).max() == SupportStatus.NONE


def test_arguments_that_will_not_do(fitted: Any) -> None:
    clf, X, y = fitted
    with pytest.raises(ValueError, match="was not trained on"):
        clf.support_status(X, y + 1)
    with pytest.raises(ValueError, match=r"X has \d+ rows"):
        clf.support_status(X, y[:-1])
    with pytest.raises(ValueError, match=r"X has \d+ rows"):
        clf.support_status(X[:-1], y)
    with pytest.raises(ValueError, match="y is None"):
        clf.support_status(X)
    with pytest.raises(ValueError, match="not negative"):
        clf.stability(X, -np.ones(300))
    with pytest.raises(ValueError, match="features"):
        clf.decision_interval(X[:, :2])
    X = X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clf.stability(X)
    with pytest.raises(ValueError, match="NaN"):
        Model.from_estimator(clf).stability(X)
