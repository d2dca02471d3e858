"""Training on a cluster: the same optimum as on one machine, from whatever the data comes in."""

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import certsvm
from certsvm.dask import Cocoa, LinearSVC
from tests.dask.problems import SOLVERS, agrees, cut, data


@pytest.mark.parametrize("classes", [2, 3])
def test_intervals_are_lazy(client: Client, classes: int) -> None:
    X, y = data(classes=classes)
    clf = LinearSVC(0.1, tol=1e-5, random_state=0).fit(cut(X, 300), cut(y, 300))
    x = da.from_array(X, chunks=(200, -1))
    expected = clf.decision_interval(X)
    for end, known in zip(clf.decision_interval(x), expected, strict=True):
        assert end.shape == known.shape
        np.testing.assert_allclose(end.compute(), known)
    share = clf.stability(x)
    assert share == pytest.approx(clf.stability(X))
    weights = np.random.default_rng(0).random(600)
    share = clf.stability(x, da.from_array(weights, chunks=200))
    assert share == pytest.approx(clf.stability(X, weights))
    some = x[x[:, 0] > 1e9]
    assert clf.decision_interval(some)[0].compute().shape[0] == 0
    assert clf.support_status(X, y).shape == expected[0].shape


@pytest.mark.parametrize(
    ("solver", "classes", "loss", "penalised"),
    [
        ("smoothed-newton", 2, "hinge", True),
        ("smoothed-newton", 3, "hinge", False),
        ("smoothed-newton", 3, "squared_hinge", True),
        ("cocoa", 2, "hinge", True),
        ("cocoa", 2, "squared_hinge", True),
    ],
)
def test_objectives(client: Client, solver: str, classes: int, loss: str, penalised: bool) -> None:
    X, y = data(classes=classes)
    # The intercept matters, and so does its penalty.
    X = X + 2.0
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], 600)
    clf = LinearSVC(
        0.05, loss=loss, tol=1e-3, solver=solver, penalize_intercept=penalised, store_dual=True,
        intercept_scaling=0.8, class_weight="balanced", random_state=0,
    )  # fmt: skip
    clf.fit(*(cut(array, 100, 350, 351) for array in (X, y, weights)))
    agrees(clf, X, y, weights)
    assert clf.dual_coef_.shape == (len(clf.coef_), 600)
    assert all(c.dual_verified for c in certsvm.verify(clf, X, y, sample_weight=weights))


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_classes(client: Client, solver: str) -> None:
    X, y = data(classes=4)
    clf = LinearSVC(0.1, solver=solver, random_state=0).fit(cut(X, 300), cut(y, 300))
    agrees(clf, X, y)
    assert clf.coef_.shape == (4, 12)
    x = da.from_array(X, chunks=(200, -1))
    np.testing.assert_allclose(clf.decision_function(x).compute(), clf.decision_function(X))
    assert clf.decision_function(x).shape == (600, 4)
    right = clf.score(x, da.from_array(y, chunks=200))
    assert isinstance(right, float)
    assert right == pytest.approx(clf.score(X, y))
    weights = np.arange(600.0)
    right = clf.score(x, da.from_array(y, chunks=200), da.from_array(weights, chunks=200))
    assert right == pytest.approx(clf.score(X, y, weights))


def test_auto_knows_the_objective(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """CoCoA, for many columns, penalises the intercept."""
    monkeypatch.setattr("certsvm.dask.source._FEW_COLUMNS", 5)
    X, y = data()
    for penalize, solver in ((True, "cocoa"), (False, "smoothed-newton")):
        clf = LinearSVC(0.01, tol=0.1, penalize_intercept=penalize, random_state=0)
        assert clf.fit(cut(X, 300), cut(y, 300)).solver_ == solver
    path = certsvm.fit_path(clf, cut(X, 300), cut(y, 300), Cs=[0.01, 0.1])
    assert [model.solver_ for model in path] == ["smoothed-newton"] * 2


def test_arguments_that_will_not_do(client: Client) -> None:
    X, y = data()
    with pytest.raises(TypeError, match=r"use certsvm\.LinearSVC"):
        LinearSVC().fit(X, y)
    for how, message in (
        ({"solver": certsvm.solvers.DCD()}, "does not run on a cluster"),
        ({"solver": "dcd"}, "solver"),
        ({"solver": "cocoa", "penalize_intercept": False}, "penalize_intercept=True"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearSVC(**how).fit(cut(X, 300), cut(y, 300))
    three = np.arange(600) % 3
    with pytest.raises(ValueError, match="on the same side"):
        LinearSVC(penalize_intercept=False, class_weight={1: 0.0}).fit(cut(X, 300), cut(three, 300))
    problem = certsvm.Problem(certsvm.Rows(X), np.where(y == "yes", 1.0, -1.0))
    with pytest.raises(ValueError, match="rows on a cluster"):
        certsvm.train(problem, Cocoa())


def test_without_a_client() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="No clients found"):
        LinearSVC().fit(cut(X, 300), cut(y, 300))


def test_copies_of_the_estimator(client: Client) -> None:
    X, y = data()
    clf = LinearSVC(0.5, client=client, random_state=0).fit(cut(X, 300), cut(y, 300))
    other = clone(clf)
    assert other.client is client
    assert other.C == 0.5
    loaded = pickle.loads(pickle.dumps(clf))
    assert loaded.client is None
    np.testing.assert_array_equal(loaded.predict(X), clf.predict(X))
    with pytest.raises(AttributeError, match="no partial_fit"):
        clf.partial_fit(X, y)


@pytest.mark.parametrize(("solver", "passes"), [("smoothed-newton", 4), ("cocoa", 2)])
def test_checkpoints(client: Client, tmp_path: Path, solver: str, passes: int) -> None:
    X, y = data()
    how: Any = {"C": 0.1, "tol": 1e-6, "checkpoint": tmp_path, "solver": solver, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        stopped = LinearSVC(max_iter=passes, **how).fit(cut(X, 300), cut(y, 300))
    clf = LinearSVC(**how).fit(cut(X, 300), cut(y, 300))
    agrees(clf, X, y)
    # It goes on where training ended.
    assert clf.n_iter_ > passes
    assert clf.history_[0].primal <= stopped.certificate_.primal * (1 + 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_C_in_a_range(client: Client, solver: str) -> None:
    X, y = data(classes=3)
    estimator = LinearSVC(solver=solver, tol=0.05, random_state=0)
    path = certsvm.fit_path(estimator, cut(X, 300), cut(y, 300), C_range=(0.01, 0.1), tol=0.05)
    assert path.met
    model = path.model(0.0345)
    assert model.certificate_ is not None
    assert model.certificate_.met
    assert certsvm.verify(model, X, y).ok
