"""Reports in a real browser: they open, the slider moves, nothing is fetched."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import confusion_matrix
from sklearn.preprocessing import StandardScaler

from certsvm import LinearSVC, LinearSVCCV, fit_path
from certsvm.certificates.certificate import Certificate
from certsvm.report import verdict
from tests.report.browser import opened


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    scaled = pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns)
    return scaled, np.where(y == 1, "benign", "<img src=x>malignant")


def text_of(driver: Any, selector: str) -> str:
    from selenium.webdriver.common.by import By

    return driver.find_element(By.CSS_SELECTOR, selector).text


def move(driver: Any, position: int) -> None:
    driver.execute_script(
        "const input = document.querySelector('input[type=range]');"
        "input.value = arguments[0]; input.dispatchEvent(new Event('input'));",
        position,
    )


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (400, True)])
def test_a_fit(data: tuple[Any, Any], tmp_path: Path, width: int, dark: bool) -> None:
    X, y = data
    page = tmp_path / "fit.html"
    clf = LinearSVC(C=0.1, solver="working-set", random_state=0).fit(X, y)
    clf.report(page, X, y)
    counts = confusion_matrix(y, clf.predict(X))
    with opened(page, width, dark=dark) as driver:
        assert "of the best possible value" in text_of(driver, ".verdict")
        text = text_of(driver, "body")
        for told in ("<img src=x>malignant", "could not flip", "certsvm.verify(clf, X, y)",
                     "L remains a claim"):  # fmt: skip
            assert told in text
        assert "worst texture" in driver.page_source
        cells = driver.execute_script(
            "return [...document.querySelectorAll('table:last-of-type td')].map((c) => c.innerText)"
        )
        for row, label in zip(counts, clf.classes_, strict=True):
            at = len(cells) - 1 - cells[::-1].index(label)
            assert cells[at + 1 : at + 3] == [str(count) for count in row]
        fits = "return document.documentElement.scrollWidth <= window.innerWidth"
        assert driver.execute_script(fits)


def test_a_path(data: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = data
    page = tmp_path / "path.html"
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.01, 1.0))
    path.report(page, X, y)
    with opened(page) as driver:
        assert "hinge loss, intercept in the penalty" in text_of(driver, "body")
        cursor = "return document.querySelector('.cursor').getAttribute('x1')"
        seen = set()
        for position in (0, 50, 10_000):
            move(driver, position)
            seen |= {text_of(driver, "output[data-column='C']"), driver.execute_script(cursor)}
        assert len(seen) == 6
        assert text_of(driver, "output[data-column='C']") == "1"
        assert text_of(driver, "output[data-column='model']") == "fitted"
        error = text_of(driver, "output[data-column='error']")
        assert error == f"{100 * np.mean(path.model(1.0).predict(X) != y):.2f} %"


def test_without_a_path_notebooks_show_the_page(
    data: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.01, 1.0))
    search = LinearSVCCV(Cs=2, random_state=0).fit(X, y)
    shown = [made.report(X=X, y=y) for made in (path, search, path[0])]
    assert {Path(page) for page in shown} == set(tmp_path.glob("*/report.html"))
    notebook = tmp_path / "notebook.html"
    icon, frames = '<link rel="icon" href="data:,">', "".join(p._repr_html_() for p in shown)
    notebook.write_text(f"<!DOCTYPE html>{icon}<p class='verdict'>around</p>{frames}")
    with opened(notebook) as driver:
        around = "return getComputedStyle(document.querySelector('p')).borderLeftWidth"
        assert driver.execute_script(around) == "0px"
        for i, title in enumerate(("for every C", "the choice of C", "the fit and its proof")):
            driver.switch_to.frame(i)
            assert title in text_of(driver, "h1")
            if i == 0:
                before = text_of(driver, "output[data-column='C']")
                move(driver, 0)
                assert text_of(driver, "output[data-column='C']") == "0.01" != before
            driver.switch_to.default_content()


def test_a_path_shows_the_largest_weights_at_each_C_first(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.01, 1.0))
    path.report(tmp_path / "path.html")
    script = """return [...document.querySelectorAll('.bar')].map((bar) => [
        bar.querySelector('span').title, Number(bar.querySelector('b').textContent),
        bar.querySelector('i').style.left])"""
    with opened(tmp_path / "path.html") as driver:
        for position, C in ((0, 0.01), (10_000, 1.0), (33, None)):
            move(driver, position)
            C = C or float(text_of(driver, "output[data-column='C']"))
            coef = path.model(C).coef_
            for i, bars in enumerate(np.array_split(driver.execute_script(script), 3)):
                order = np.argsort(-np.abs(coef[i]))
                assert [int(name.split()[1]) for name, _, _ in bars] == order.tolist()
                values = np.array([float(value) for _, value, _ in bars])
                np.testing.assert_allclose(values, coef[i][order], rtol=0.01)
                # Bars point to their sign.
                assert [left == "50%" for _, _, left in bars] == (values >= 0).tolist()


def test_a_choice(data: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = data
    page = tmp_path / "choice.html"
    clf = LinearSVCCV(C_range=(0.01, 0.1), certify=0.02, random_state=0).fit(X, y)
    clf.report(page, X, y)
    with opened(page) as driver:
        assert "has an error below" in text_of(driver, ".verdict")
        assert "The model of all rows" in text_of(driver, "body")


def test_pages_without_rows_or_proofs(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    page = tmp_path / "page.html"
    LinearSVC(random_state=0).fit(X, y).report(page)
    assert page.read_text().count("<details") == 3
    assert "could not flip" not in page.read_text()
    LinearSVC().partial_fit(X, y, classes=[0, 1, 2]).report(page)
    assert "Nothing is proved" in page.read_text()
    LinearSVCCV(Cs=3, refit=False).fit(X, y).report(page)
    assert "Nothing is proved about other values" in page.read_text()
    assert "<input" not in page.read_text()


@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, penalize_intercept: bool) -> None:
    X, y = load_iris(return_X_y=True)
    page = tmp_path / "fit.html"
    clf = LinearSVC(penalize_intercept=penalize_intercept).fit(X, y)
    path = fit_path(clf, X, y, [0.1, 1.0])
    with pytest.raises(ValueError, match="features"):
        clf.report(page, X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        clf.report(page, np.full(X.shape, np.nan))
    with pytest.raises(ValueError, match="y without X"):
        clf.report(page, y=y)
    with pytest.raises(ValueError, match="both X and y"):
        path.report(page, X)
    for report in (clf.report, path.report):
        for labels in (y[:1], y[:, np.newaxis]):
            with pytest.raises(ValueError, match="do not go with labels"):
                report(page, X, labels)
    assert not page.exists()
    clf.report(page, X)
    assert ("could not flip" in page.read_text()) == penalize_intercept


def test_labels_of_no_class_are_never_right(tmp_path: Path) -> None:
    X = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    clf = LinearSVC().fit(X, [1, 1, 0, 0])
    clf.report(tmp_path / "fit.html", X, [1.0, 3.0, 0.0, 0.0])
    page = (tmp_path / "fit.html").read_text()
    assert "75.00" in page
    assert "<td>other labels</td><td>0</td><td>1</td>" in page
    path = fit_path(LinearSVC(), X, [2, 2, 0, 0], [0.1, 1.0])
    errors = path._points(X, [1, 1, 0, 0])["errors"]
    assert errors is not None
    assert set(errors) == {0.5}


def test_one_class_that_is_not_proved_is_not_hidden_by_the_others() -> None:
    good = Certificate(primal=1.0, dual=0.999, target=0.01)
    contradiction = Certificate(primal=1.0, dual=2.0, target=0.01)
    missed = Certificate(primal=1.0, dual=0.9995, target=1e-9)
    assert verdict([good, good])[0]
    for bad in ([contradiction, good], [good, contradiction]):
        met, sentence = verdict(bad)
        assert "a contradiction" in sentence
        assert not met
    for bad in ([missed, good], [good, missed]):
        # The gap is that of every class, and the target that of the class that misses it.
        met, sentence = verdict(bad)
        assert "<strong>0.101 %</strong>" in sentence
        assert "Target of 1e-07 % not met" in sentence
        assert not met
