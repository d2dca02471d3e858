"""What notebooks show of certificates, histories, comparisons and paths."""

from __future__ import annotations

import sys

import pytest
from sklearn.datasets import load_iris

from certsvm import Certificate, LinearSVC, LinearSVCCV, compare, fit_path
from certsvm.training.history import History
from tests.cli.running import noisy
from tests.test_markup import Found


def test_a_certificate() -> None:
    certificate = Certificate(101.0, 100.0, target=0.02, bound="<b>", intercept_scaling=1.0)
    found = Found(certificate._repr_html_())
    assert "within 1 % of the optimum, proved (<b>)" in found.text
    assert certificate.problem in found.text
    assert found.tags.count("b") == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_histories(n_classes: int) -> None:
    X, y = noisy(n_classes=n_classes)
    clf = LinearSVC(solver="dcd", random_state=0).fit(X, y)
    found = Found(clf.history_._repr_html_())
    assert "table" in found.tags
    assert ("svg" in found.tags) == (n_classes == 2)
    assert str(clf.n_iter_) in found.text


def test_a_history_without_a_pass() -> None:
    assert "no pass" in Found(History()._repr_html_()).text


def test_a_comparison() -> None:
    X, y = noisy()
    result = compare(X, y, solvers=["dcd", "pegasos"], max_iter=20)
    found = Found(result._repr_html_())
    assert all(name in found.text for name in ("dcd", "pegasos", "The optimum lies between"))


def test_a_path() -> None:
    X, y = load_iris(return_X_y=True)
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.1, 1.0), tol=0.1)
    found = Found(path._repr_html_())
    assert "worst gap" in found.text
    assert "svg" in found.tags


def test_without_matplotlib_there_are_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    path = fit_path(LinearSVC(random_state=0), X, y == 0, C_range=(0.1, 1.0), tol=0.1)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = Found(path._repr_html_())
    assert "svg" not in found.tags
    assert found.tags.count("tr") == len(path) + 1
    assert "table" in Found(path[0].history_._repr_html_()).tags
    with pytest.raises(ImportError, match=r"certsvm\[plot\]"):
        path.report("never.html")


def test_diagrams_lead_to_the_reference() -> None:
    for estimator in (LinearSVC(), LinearSVCCV()):
        name = type(estimator).__name__
        assert f"api/certsvm.{name}.html" in estimator._repr_html_()
