"""What a model can do while its weights are a sparse matrix: the same as before."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm import LinearSVC, bound, verify


def hashed(classes: int, dtype: str = "f8") -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows with values in a twentieth of the columns only."""
    rng = np.random.default_rng(classes)
    y = rng.integers(classes, size=300)
    X = np.zeros((300, 400), dtype=dtype)
    X[:, ::20] = rng.standard_normal((300, 20)) + 0.7 * (y[:, None] == np.arange(20) % classes)
    return sp.csr_matrix(X), y


def fitted(classes: int = 2, **parameters: Any) -> LinearSVC:
    return LinearSVC(**({"C": 0.1, "random_state": 0} | parameters)).fit(*hashed(classes))


CLASSES = pytest.mark.parametrize("classes", [2, 3])


@CLASSES
def test_there_and_back(classes: int) -> None:
    clf = fitted(classes)
    coef = clf.coef_
    assert clf.sparsify() is clf
    assert (clf.coef_.format, clf.coef_.shape) == ("csr", coef.shape)
    # Only the columns that occur.
    assert 0 < clf.coef_.nnz <= coef.size / 20
    np.testing.assert_array_equal(clf.sparsify().coef_.toarray(), coef)
    assert type(clf.densify().coef_) is np.ndarray
    np.testing.assert_array_equal(clf.coef_, coef)


@CLASSES
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, lambda X: X.toarray()])
def test_predictions(classes: int, dtype: str, form: Any) -> None:
    X, y = hashed(classes, dtype)
    clf, X = fitted(classes), form(X)
    scores, labels, score = clf.decision_function(X), clf.predict(X), clf.score(X, y)
    clf.sparsify()
    assert type(clf.decision_function(X)) is np.ndarray
    np.testing.assert_allclose(clf.decision_function(X), scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), labels)
    assert clf.score(X, y) == score


@CLASSES
def test_certificates(classes: int) -> None:
    X, y = hashed(classes)
    clf = fitted(classes, store_dual=True)
    theirs = bound(clf, X, y)
    clf.sparsify()
    assert verify(clf, X, y).dual_verified
    assert bound(clf, X, y) == theirs
    # Of other weights, the certificate is as untrue as ever.
    clf.coef_ = 1.5 * clf.coef_
    assert not verify(clf, X, y).ok


@CLASSES
def test_learning_goes_on(classes: int) -> None:
    X, y = hashed(classes)
    for how in ({"warm_start": True, "solver": "dcd"}, {}):
        one, other = fitted(classes, **how), fitted(classes, **how).sparsify()
        np.testing.assert_array_equal(other.fit(X, y).coef_, one.fit(X, y).coef_)
        assert other.n_iter_ == one.n_iter_
