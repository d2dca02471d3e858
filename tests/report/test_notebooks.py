"""What notebooks, consoles and plots show of certificates, verdicts, models and histories."""

import pickle
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from sklearn import config_context
from sklearn.datasets import load_iris

from certsvm import Certificate, LinearSVC, LinearSVCCV, bound, compare, fit_path, train, verify
from certsvm.certificates.certificate import Certificates
from certsvm.markup import Html, element, table
from certsvm.plots import comparison_charts, draw_bounds, draw_gap, plot, svg
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.training.history import History, Record
from certsvm.verification.verify import verify_model
from tests.cli.running import noisy

HOSTILE = '<script>alert("x")</script>&amp;\'"'


class Found(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")))
def test_what_goes_in_is_what_is_read(text: str) -> None:
    found = Found(element("p", text, title=text))
    assert found.tags == ["p"]
    assert found.text == text
    assert found.attributes == {"title": text}


def test_hostile_text_stays_text() -> None:
    for made in (table([HOSTILE], [[HOSTILE]]), element("p", HOSTILE, Html("<b>bold</b>"))):
        found = Found(made)
        assert "script" not in found.tags
        assert HOSTILE in found.text


def test_a_certificate() -> None:
    certificate = Certificate(101.0, 100.0, target=0.02, bound="<b>", intercept_scaling=1.0)
    found = Found(certificate._repr_html_())
    assert "within 1 % of the optimum, proved; target 2 % met" in found.text
    assert "(<b>)" in found.text
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
    assert all(name in found.text for name in ("dcd", "pegasos", "the optimum lies between"))


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


@pytest.fixture(scope="module")
def fitted() -> Any:
    X, y = load_iris(return_X_y=True)
    return LinearSVC(store_dual=True, random_state=0).fit(X, y), X, y


def test_a_console_shows_sentences(fitted: Any) -> None:
    clf, X, y = fitted
    for certificate in (clf.certificate_, bound(clf.coef_[0], X, y == 0, C=1.0)):
        assert repr(certificate) == str(certificate)
        assert "(" not in repr(certificate)
    model, report = clf.to_model(X, y), verify(clf, X, y)
    assert "within" in repr(model)
    assert repr(report).startswith("confirmed: 3 classes")
    assert repr(report[0]).startswith("confirmed: class 0: primal")
    comparison = compare(X, y == 0, solvers="dcd")
    result = train(Problem(Rows(X), np.where(y == 0, 1.0, -1.0)), "dcd", keep_alpha=True, seed=0)
    for shown in (clf.certificate_, model, model.witness, report, report[0], result, result.start):
        assert "\n" not in repr(shown)
        assert "array(" not in repr(shown)
        assert len(repr(shown)) < 250
    assert "array(" not in repr(comparison)


def test_a_verdict_about_other_data_is_no_confirmation(fitted: Any) -> None:
    clf, X, y = fitted
    report = verify_model(clf.to_model(X, y), [(X[::-1], y[::-1])])
    assert "refuted" in repr(report)
    assert "not the data" in repr(report)
    assert "#b91c1c" in report._repr_html_()


def test_nothing_is_claimed_by_a_model_that_contradicts_itself(fitted: Any) -> None:
    model = fitted[0].to_model()
    good, *others = model.certificates
    contradiction = Certificate(1.0, 2.0, 0.01, C=good.C, intercept_scaling=1.0)
    for certificates in ([], [contradiction, *others], [*others, contradiction]):
        changed = replace(model, certificates=tuple(certificates), parameters={})
        assert repr(changed).endswith("nothing is proved")
        assert ("contradiction" in str(changed)) == bool(certificates)
        assert Found(changed._repr_html_()).tags.count("tr") == 1 + len(certificates)


def test_certificates_of_several_classes_are_a_table(fitted: Any) -> None:
    clf, X, y = fitted
    model = clf.to_model(X, y)
    for shown in (clf.certificates_, bound(clf, X, y), model, verify(clf, X, y)):
        found = Found(shown._repr_html_())
        assert found.tags.count("tr") == 4
    assert clf.certificate_.bound in Found(clf.certificates_._repr_html_()).text
    assert repr(clf.certificates_).count("class ") == 3
    copied = pickle.loads(pickle.dumps(clf.certificates_))
    assert copied == clf.certificates_
    assert copied._repr_html_() == clf.certificates_._repr_html_()
    hostile = Certificates([Certificate(2.0, 1.0, 1.0, bound="<script>")], ["<img>"])
    assert "<img>" in Found(hostile._repr_html_()).text


def test_plots_show_themselves(fitted: Any, tmp_path: Path) -> None:
    X, y = noisy()
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.1, 1.0), tol=0.1)
    search = LinearSVCCV(Cs=2, random_state=0).fit(X, y)
    comparison = compare(X, y, solvers="dcd")
    for drawn in (path, comparison, search.curve_, path[0].history_, fitted[0].history_):
        assert drawn.plot(tmp_path / "plot.png")._repr_png_().startswith(b"\x89PNG")
        assert (tmp_path / "plot.png").exists()

    # Matplotlib's own backend for notebooks shows what it opened: nothing is shown twice.
    assert pyplot.get_fignums() == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solver", ["dcd", "pegasos"])
def test_a_path_of_one_fit_is_drawn(solver: str) -> None:
    X, y = noisy()
    axis = fit_path(LinearSVC(solver=solver, random_state=0), X, y, [0.1]).plot().axes[0]
    assert ("nothing is proved" in [text.get_text() for text in axis.texts]) == (solver != "dcd")


@pytest.mark.parametrize("solver", ["dcd", "pegasos"])
@pytest.mark.parametrize("max_iter", [1, 20])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:The target accuracy")
def test_histories_are_drawn(solver: str, max_iter: int, n_classes: int) -> None:
    X, y = noisy(n_classes=n_classes)
    clf = LinearSVC(solver=solver, max_iter=max_iter, tol=1e-6, random_state=0).fit(X, y)
    axes = clf.history_.plot().axes
    # Without a bound there is no gap.
    assert len(axes) == (2 if n_classes == 2 and solver == "dcd" else 1)
    for axis in axes:
        for line in axis.lines:
            points = np.isfinite(line.get_ydata()).sum()
            assert points
            assert line.get_marker() == "o" or points > 1
    if n_classes == 3:
        assert [text.get_text() for text in axes[0].get_legend().texts] == ["0", "1", "2"]
    elif solver == "dcd":
        gaps = clf.history_["relative_gap"]
        shown = axes[1].lines[0].get_ydata()
        np.testing.assert_array_equal(shown, gaps[np.isfinite(gaps)])


def test_a_choice(fitted: Any) -> None:
    _, X, y = fitted
    clf = LinearSVCCV(Cs=2, random_state=0)
    assert "the choice is" not in clf._repr_html_()
    clf.fit(X, y)
    for shown in (clf._repr_html_(), clf._repr_mimebundle_()["text/html"]):
        assert f"the choice is {clf.C_:.4g}" in shown
        assert "of the optimum, proved" in shown
        assert "<svg" in shown
    with config_context(display="text"):
        assert not hasattr(clf, "_repr_html_")
        assert "text/html" not in clf._repr_mimebundle_()
    assert "the choice is" in LinearSVCCV(Cs=2, refit=False).fit(X, y)._repr_html_()


def test_diagrams_lead_to_the_reference() -> None:
    for estimator in (LinearSVC(), LinearSVCCV()):
        name = type(estimator).__name__
        assert f"api/certsvm.{name}.html" in estimator._repr_html_()


def test_lines_are_accuracies_and_proved_gaps(tmp_path: Path) -> None:
    X, y = noisy()
    result = compare(X, y, solvers=["dcd", "pegasos"], max_iter=20, random_state=0)
    path = tmp_path / "plot.png"
    figure = plot(comparison_charts(result.histories, result.dual, 0.01), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [axis.get_xlabel() for axis in figure.axes] == ["seconds", "passes"]
    _, passes = figure.axes
    lines = {line.get_label(): line for line in passes.lines}
    for name in ("dcd", "pegasos"):
        history = result.histories[name]
        computed = np.isfinite(history["primal"])
        np.testing.assert_array_equal(lines[name].get_xdata(), history["passes"][computed])
        accuracy = lines[name].get_ydata()
        assert (np.diff(accuracy) <= 0).all()
        assert accuracy[-1] == np.nanmin(history["primal"]) / result.dual - 1
    dashed = [line for line in passes.lines if line.get_linestyle() == "--"]
    assert max(len(line.get_xdata()) for line in dashed) > 0


def test_a_gap_below_rounding_has_a_place_on_the_axis() -> None:
    history = History()
    for passes, (primal, gap) in enumerate([(3.0, 0.5), (2.0, 0.0)], start=1):
        history.append(Record(0.1 * passes, passes, passes, primal=primal, relative_gap=gap))
    figure = plot(comparison_charts({"solver": history}, 2.0000000000000004, 0.01))
    solid, dashed, _ = figure.axes[1].lines
    assert 0.0 < solid.get_ydata()[-1] == dashed.get_ydata()[-1] < 1e-15


EXTREMES = [-np.inf, -1e308, -1e-320, 0.0, 5e-324, 1e-300, 1.0, 1e300, 1.7e308, np.inf]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(EXTREMES), min_size=2, max_size=5))
def test_whatever_a_file_says_can_be_drawn(values: list[float]) -> None:
    x = list(range(1, len(values) + 1))
    for draw in (
        lambda axis: draw_bounds(axis, "passes", x, values, values[::-1]),
        lambda axis: draw_gap(axis, "passes", x, values),
    ):
        drawn = svg(draw, "chart")
        assert drawn.startswith("<svg")
        assert "passes" in drawn
        # Pages have other colours.
        assert "#000000" not in drawn
