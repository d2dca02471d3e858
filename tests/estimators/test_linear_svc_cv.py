"""LinearSVCCV: scikit-learn's conventions, and what is proved."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold

from certsvm import LinearSVC, LinearSVCCV, verify
from certsvm.fitting import cross_validation

X, y = make_classification(n_samples=200, n_informative=4, n_classes=3, random_state=0)
binary = y == 1
CS = [0.001, 0.01, 0.1, 1.0]


@pytest.mark.parametrize(
    ("labels", "cv", "n_jobs", "objective"),
    [
        (binary, 3, 1, {"loss": "squared_hinge"}),
        (np.array(["a", "b", "c"])[y], KFold(3), 2, {}),
        (
            binary, ShuffleSplit(4, train_size=0.5, test_size=0.2, random_state=1), 2,
            {"penalize_intercept": False},
        ),
    ],
)  # fmt: skip
def test_it_finds_what_grids_find(labels: Any, cv: Any, n_jobs: int, objective: Any) -> None:
    options: dict[str, Any] = {"tol": 1e-9, "random_state": 0, "max_iter": 5000, **objective}
    options["class_weight"] = "balanced"
    ours = LinearSVCCV(Cs=CS, cv=cv, n_jobs=n_jobs, **options).fit(X, labels)
    theirs = GridSearchCV(LinearSVC(**options), {"C": CS}, cv=cv).fit(X, labels)
    splits = [theirs.cv_results_[f"split{i}_test_score"] for i in range(theirs.n_splits_)]
    np.testing.assert_allclose(ours.scores_, splits)
    assert ours.scores_.shape == (theirs.n_splits_, len(CS))
    assert theirs.best_params_["C"] == ours.C_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_allclose(ours.coef_, theirs.best_estimator_.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert not ours.certified_
    assert ours.error_bound_ == 0.0
    assert ours.Cs_.tolist() == CS


def test_other_scores() -> None:
    options = {"tol": 1e-9, "random_state": 0}
    for scoring in ("roc_auc", get_scorer("f1")):
        ours = LinearSVCCV(Cs=CS, cv=3, scoring=scoring, **options).fit(X, binary)
        theirs = GridSearchCV(LinearSVC(**options), {"C": CS}, cv=3, scoring=scoring)
        theirs.fit(X, binary)
        assert ours.best_score_ == pytest.approx(theirs.best_score_)
        assert theirs.best_params_["C"] == ours.C_
        assert ours.score(X, binary) == pytest.approx(theirs.score(X, binary))


def test_the_smallest_of_equally_good_values() -> None:
    rows = np.array([[1.0], [2.0], [-1.0], [-2.0]] * 5)
    labels = (rows[:, 0] > 0).astype(int)
    clf = LinearSVCCV(Cs=[10.0, 0.1, 1.0], cv=2, fit_intercept=False).fit(rows, labels)
    assert clf.scores_.tolist() == [[1.0] * 3] * 2
    assert clf.C_ == 0.1


@pytest.mark.parametrize("labels", [binary, y])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_certified_choice(labels: Any, form: Any) -> None:
    clf = LinearSVCCV(C_range=(0.001, 1.0), cv=3, certify=0.05, random_state=0)
    clf.fit(form(X), labels)
    assert clf.certified_
    assert 1 - clf.best_score_ <= clf.error_bound_ + 0.05 + 1e-9
    assert clf.C_ in clf.Cs_
    assert clf.scores_.shape == clf.n_iter_.shape == (3, clf.Cs_.size)
    curve = clf.curve_
    assert (curve.edges[0], curve.edges[-1]) == (0.001, 1.0)
    assert curve.bound == curve.lower.min() == clf.error_bound_
    assert (curve.lower <= curve.upper + 1e-12).all()
    assert clf.certificate_ is not None
    assert clf.certificate_.met
    assert verify(clf, X, labels).ok


@pytest.mark.parametrize("options", [{"Cs": CS}, {"C_range": (0.01, 1.0), "certify": 0.05}])
@pytest.mark.parametrize("labels", [np.array(["a", "b", "c"])[y], binary])
def test_processes_do_not_matter(
    monkeypatch: pytest.MonkeyPatch, options: Any, labels: Any
) -> None:
    # However small the data.
    monkeypatch.setattr(cross_validation, "_WORTH_IT", 0)
    fits = [
        LinearSVCCV(cv=3, n_jobs=n, random_state=0, **options).fit(form(X), labels)
        for n, form in ((1, np.asarray), (2, np.asarray), (1, sp.csr_matrix), (2, sp.csr_matrix))
    ]
    for one, two in (fits[:2], fits[2:]):
        np.testing.assert_array_equal(one.scores_, two.scores_)
        np.testing.assert_array_equal(one.curve_.lower, two.curve_.lower)
        np.testing.assert_array_equal(one.curve_.edges, two.curve_.edges)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert one.C_ == two.C_


def test_the_choice_is_as_good_as_that_of_exact_fits() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3000, 30)) * np.exp(rng.standard_normal(30))
    labels = rows[:, :5].sum(axis=1) + 3.0 * rng.standard_normal(3000) > 0
    options: dict[str, Any] = {"Cs": 9, "C_range": (1e-5, 1e-1), "refit": False}
    quick = LinearSVCCV(**options).fit(rows, labels)
    exact = LinearSVCCV(tol=1e-8, **options).fit(rows, labels)
    errors = dict(zip(exact.Cs_, 1.0 - exact.scores_.mean(axis=0), strict=True))
    # The standard error of an error is 0.007.
    assert errors[quick.C_] <= errors[exact.C_] + 0.002
    assert abs(quick.scores_ - exact.scores_).mean() <= 0.002


@pytest.mark.parametrize(
    ("Cs", "edge"), [([1e-4, 0.01], "highest"), ([0.01, 100.0], "lowest"), ([1e-4, 0.01, 100], "")]
)
def test_a_choice_at_the_edge_is_warned_of(Cs: list[float], edge: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 60)) + 0.5
    labels = rows[:, 0] + rng.standard_normal(200) > 1.0
    clf = LinearSVCCV(Cs=Cs, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(rows, labels)
    assert [f"the {edge} C" in str(w.message) for w in caught] == [True] * bool(edge)


def test_results_have_the_form_of_a_grid_search() -> None:
    options: dict[str, Any] = {"tol": 1e-8, "random_state": 0}
    ours = LinearSVCCV(Cs=CS, cv=3, **options).fit(X, binary).cv_results_
    grid = GridSearchCV(LinearSVC(**options), {"C": CS}, cv=3).fit(X, binary).cv_results_
    assert ours.keys() == grid.keys()
    assert ours.pop("params") == grid.pop("params")
    for name, values in grid.items():
        assert len(ours[name]) == len(CS)
        if "time" not in name:
            assert type(ours[name]) is type(values)
            assert list(ours[name]) == pytest.approx(list(values))
    assert (ours["mean_fit_time"] > 0.0).all()


def test_groups_reach_the_splitter() -> None:
    groups = np.arange(len(y)) // 20
    clf = LinearSVCCV(Cs=CS, cv=GroupKFold(5), tol=1e-9, random_state=0)
    with pytest.raises(ValueError, match="groups"):
        clf.fit(X, binary)
    clf.fit(X, binary, groups=groups)
    grid = GridSearchCV(LinearSVC(tol=1e-9, random_state=0), {"C": CS}, cv=GroupKFold(5))
    assert clf.best_score_ == pytest.approx(grid.fit(X, binary, groups=groups).best_score_)
    with pytest.raises(TypeError, match="unexpected"):
        clf.fit(X, binary, colour="red")


def test_metadata_routing() -> None:
    groups, weights = np.arange(len(y)) // 20, np.where(binary, 3.0, 1.0)
    options = {"Cs": CS, "cv": GroupKFold(5), "random_state": 0, "tol": 1e-9}
    scores = []
    with config_context(enable_metadata_routing=True):
        for asked in (True, False):
            scorer = get_scorer("accuracy").set_score_request(sample_weight=asked)
            clf = LinearSVCCV(scoring=scorer, **options)
            scores.append(clf.fit(X, binary, sample_weight=weights, groups=groups).scores_)
    plain = LinearSVCCV(**options).fit(X, binary, sample_weight=weights, groups=groups)
    # Without routing, scores are weighted as training is.
    np.testing.assert_allclose(scores[0], plain.scores_)
    assert not np.allclose(scores[1], plain.scores_)


def test_weights_count_as_rows() -> None:
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    splits = list(StratifiedKFold(3).split(X, y))
    repeated = [
        (np.flatnonzero(np.isin(rows, train)), np.flatnonzero(np.isin(rows, test)))
        for train, test in splits
    ]
    options = {"Cs": CS, "tol": 1e-9, "random_state": 0}
    one = LinearSVCCV(cv=splits, **options).fit(X, y, sample_weight=weights)
    two = LinearSVCCV(cv=repeated, **options).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.scores_, two.scores_)
    assert not np.allclose(one.scores_, LinearSVCCV(cv=splits, **options).fit(X, y).scores_)


def test_what_is_missed_is_told() -> None:
    clf = LinearSVCCV(C_range=(0.001, 10.0), cv=3, certify=1e-4, max_fits=7, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_fits reached after 7 values of C\. The"):
        clf.fit(X, binary)
    assert not clf.certified_
    assert clf.Cs_.size == 7
    assert 0.0 <= clf.error_bound_ <= 1 - clf.best_score_
    clf.set_params(max_iter=1, solver="dcd")
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, binary)
    assert not clf.certified_
    assert clf.error_bound_ < 0.5 * (1 - clf.best_score_)
    with pytest.warns(ConvergenceWarning, match="not reached in 15 of 15 fits"):
        LinearSVCCV(Cs=[1.0, 10.0, 100.0], max_iter=1, tol=1e-6, solver="dcd").fit(X, binary)
    clf = LinearSVCCV(Cs=CS, max_time=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_time reached after 1 values"):
        clf.fit(X, binary)
    assert np.isnan(clf.scores_[:, 1:]).all()
    assert clf.C_ == 0.001


@pytest.mark.parametrize(
    "options",
    [
        {"certify": 0.1, "scoring": "roc_auc"},
        {"certify": 0.1, "solver": "pegasos"},
        {"certify": 0.1, "Cs": [1.0]},
        {"certify": 0.1, "penalize_intercept": False},
        {"certify": 1.5},
        {"max_fits": 5},
        {"Cs": [1.0, -1.0]},
        {"Cs": [5.0], "C_range": (1, 2)},
        {"C_range": (2, 1)},
        {"Cs": 1},
        {"scoring": "nonsense"},
        {"cv": []},
        {"cv": [(np.arange(30), [])]},
        {"cv": [([], np.arange(30))]},
        {"cv": [(np.arange(30), np.zeros((2, 2), int))]},
    ],
)
def test_errors_change_nothing(options: dict[str, Any]) -> None:
    clf = LinearSVCCV(Cs=[0.1, 1.0], random_state=0).fit(X, binary)
    C, coef = clf.C_, clf.coef_.copy()
    with pytest.raises(ValueError):  # noqa: PT011  many kinds
        clf.set_params(**{"Cs": None, **options}).fit(X, binary)
    assert clf.C_ == C
    np.testing.assert_array_equal(clf.coef_, coef)


def test_progress_and_picture(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    clf = LinearSVCCV(Cs=CS, random_state=0, verbose=2).fit(X, binary)
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if "values of C" in line]) == len(CS)
    clf.curve_.plot(str(tmp_path / "curve.png"))
    assert (tmp_path / "curve.png").exists()


def test_without_a_refit_there_is_no_model() -> None:
    clf = LinearSVCCV(Cs=[0.1, 1.0], refit=False, random_state=0).fit(X, binary)
    assert clf.C_ in (0.1, 1.0)
    assert not hasattr(clf, "predict")
    assert not hasattr(clf, "coef_")
