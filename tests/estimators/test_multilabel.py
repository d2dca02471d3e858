"""Several labels a row: each column of zeros and ones is a problem of its own."""

import copy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification

from certsvm import LinearSVC, LinearSVCCV, SupportStatus, verify
from certsvm.certificates.certificate import Certificates

KINDS = ("array", "tensor")


def data(n_classes: int = 4) -> tuple[Any, Any]:
    X, Y = make_multilabel_classification(150, 12, n_classes=n_classes, random_state=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), Y


def given(kind: str, *arrays: Any) -> tuple[Any, ...]:
    if kind == "array":
        return arrays
    torch = pytest.importorskip("torch")
    return tuple(map(torch.from_numpy, arrays))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_each_column_is_a_problem(kind: str, n_classes: int, loss: str) -> None:
    X, Y = data(n_classes)
    # Nobody has the first label.
    Y[:, 0] = 0
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    factors = {1: 3.0}
    clf = LinearSVC(0.5, loss=loss, tol=1e-8, class_weight=factors, store_dual=True)
    x, y, w = given(kind, X, Y, weights)
    clf.fit(x, y, w)
    assert clf.multilabel_
    assert clf.classes_.tolist() == [*range(n_classes)]
    assert clf.coef_.shape == (n_classes, 12)
    for i in range(1, n_classes):
        alone = LinearSVC(0.5, loss=loss, tol=1e-8, class_weight=factors if i == 1 else None)
        alone.fit(X, Y[:, i], weights)
        np.testing.assert_allclose(clf.coef_[i], alone.coef_[0], atol=1e-3)
        assert clf.certificates_
        assert clf.certificates_[i].primal == pytest.approx(alone.certificate_.primal)
    for exact in (False, True):
        report = verify(clf, X, Y, weights, exact=exact)
        assert report.verdict == "confirmed"
        assert [found.label for found in report] == [*range(n_classes)]
    assert verify(clf, X, 1 - Y, weights).verdict == "refuted"


def test_no_forgery_is_confirmed() -> None:
    """Neither with weights or certificates that nobody checks, nor with labels behind a mask."""
    X, Y = data()
    clf = LinearSVC(store_dual=True).fit(X, Y)
    assert clf.certificates_
    forged = Certificates([clf.certificates_[0], *clf.certificates_[:3]], clf.classes_)
    longer = np.vstack([clf.coef_, clf.coef_])
    changes = {"classes_": np.arange(1), "coef_": longer, "intercept_": np.zeros(8)}
    changes |= {"class_weight_": np.ones(8)}
    for name, value in changes.items():
        changed = copy.copy(clf)
        vars(changed).update({"certificates_": forged, name: value})
        with pytest.raises(ValueError, match="do not belong together"):
            verify(changed, X, Y)
    with pytest.raises(ValueError, match="masked"):
        verify(clf, X, np.ma.array(Y, mask=Y == 1))
    vars(clf)["certificates_"] = forged
    assert verify(clf, X, Y).verdict == verify(clf, X, sp.csr_array(Y), exact=True).verdict
    assert verify(clf, X, Y).verdict == "refuted"


@pytest.mark.parametrize("kind", KINDS)
def test_answers(kind: str) -> None:
    X, Y = data()
    x, y = given(kind, X, Y)
    rough, fine = (
        LinearSVC(0.5, tol=tol, solver=solver).fit(x, y)
        for tol, solver in ((0.01, "newton"), (1e-9, "auto"))
    )
    scores, labels = (np.asarray(a) for a in (fine.decision_function(x), fine.predict(x)))
    assert isinstance(fine.predict(x), type(y))
    np.testing.assert_array_equal(labels, scores > 0)
    assert fine.score(x, y) == np.mean((labels == Y).all(axis=1))
    low, high = (np.asarray(end) for end in rough.decision_interval(x))
    assert ((low <= scores) & (scores <= high)).all()
    # All labels of a row must be sure.
    assert rough.stability(x) == np.mean(((low > 0) | (high <= 0)).all(axis=1)) < 1.0
    status = np.asarray(rough.support_status(x, y))
    margins = np.where(Y == 1, 1, -1) * scores
    assert (margins[status == SupportStatus.NONE] > 1).all()
    assert (margins[status == SupportStatus.SUPPORT] < 1).all()
    assert (status != SupportStatus.UNDECIDED).any()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_indicator_is_refused(kind: str) -> None:
    X, Y = data()
    x, y, wrong = given(kind, X, Y, 2 * Y)
    with pytest.raises(ValueError, match="zeros and ones"):
        LinearSVC().fit(x, wrong)
    with pytest.raises(ValueError, match="balanced"):
        LinearSVC(class_weight="balanced").fit(x, y)
    clf = LinearSVC().fit(x, y)
    with pytest.raises(ValueError, match=r"shape|multilabel"):
        clf.score(x, y[:, 0])
    with pytest.raises(ValueError, match="one label a row"):
        clf.top_k_accuracy(x, y, 2)
    with pytest.raises(ValueError, match="one label a row"):
        clf.to_model()
    with pytest.raises(ValueError, match="y has shape"):
        verify(clf, X, Y[:, :2])
    with pytest.raises(ValueError, match="not trained on, such as 2"):
        clf.support_status(x, wrong)


def test_one_label_a_row_only() -> None:
    X, Y = data()
    clf = LinearSVC().fit(X, sp.csr_array(Y))
    np.testing.assert_array_equal(clf.coef_, LinearSVC().fit(X, Y).coef_)
    with pytest.raises(ValueError, match="one label a row"):
        clf.partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="one label a row"):
        LinearSVCCV(Cs=[0.1, 1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="are on the same side"):
        LinearSVC(penalize_intercept=False).fit(X, np.column_stack([Y[:, 0], 0 * Y[:, 1]]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [np.arange(5), np.array([*"abcde"])])
def test_top_k_accuracy(kind: str, labels: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    codes = (X[:, :5] + rng.standard_normal((300, 5))).argmax(axis=1)
    x, *numbers = given(kind, X, *([labels[codes]] if labels.dtype.kind == "i" else []))
    y = numbers[0] if numbers else labels[codes]
    weights = rng.random(300)
    clf = LinearSVC(tol=1e-3).fit(x, y)
    scores = clf.decision_function(X)
    for k in (1, 2, 4):
        right = (np.argsort(-scores, axis=1)[:, :k] == codes[:, None]).any(axis=1)
        assert clf.top_k_accuracy(x, y, k) == pytest.approx(np.mean(right))
        weighted = clf.top_k_accuracy(x, y, k, weights)
        assert weighted == pytest.approx(np.average(right, weights=weights))
    assert clf.top_k_accuracy(x, y, 1) == clf.score(x, y)
    with pytest.raises(ValueError, match="1 <= k < 5"):
        clf.top_k_accuracy(x, y, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_with_other_labels(kind: str) -> None:
    """Two labels a row are two problems, and two classes one."""
    X, Y = data(2)
    x, y = given(kind, X, Y)
    clf = LinearSVC(warm_start=True)
    for labels, n_problems in ((y[:, 0], 1), (y, 2), (y[:, 0], 1)):
        assert clf.fit(x, labels).coef_.shape == (n_problems, 12)
