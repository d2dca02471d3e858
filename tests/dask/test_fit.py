"""Training on a cluster: the same optimum as on one machine, from whatever the data comes in."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import certsvm
from certsvm.dask import ClusterSource, Cocoa, LinearSVC
from certsvm.dask.messages import packed, unpacked
from certsvm.data.convert import convert
from certsvm.estimators.sklearn_callbacks import FitTasks
from certsvm.solvers import SmoothedNewton

SOLVERS = ["smoothed-newton", "cocoa"]


def data(rows: int = 600, columns: int = 12, seed: int = 0, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    if classes == 2:
        score = X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(rows)
        return X, np.where(score > 0, "yes", "no")
    return X, np.argmax(X[:, :classes] + 0.3 * rng.standard_normal((rows, classes)), axis=1)


def cut(array: Any, *edges: int) -> list[Any]:
    return [array[a:b] for a, b in zip((0, *edges), (*edges, array.shape[0]), strict=True)]


def agrees(clf: Any, X: Any, y: Any, weights: Any = None) -> None:
    """The certificate holds for the data, and the interval overlaps with that of one machine."""
    assert clf.certificate_.met
    local = certsvm.LinearSVC(
        clf.C, tol=1e-6, fit_intercept=clf.fit_intercept, class_weight=clf.class_weight,
        intercept_scaling=clf.intercept_scaling, random_state=0,
    ).fit(X, y, weights)  # fmt: skip
    np.testing.assert_array_equal(clf.classes_, local.classes_)
    np.testing.assert_allclose(clf.class_weight_, local.class_weight_)
    for ours, theirs in zip(clf.certificates_, local.certificates_, strict=True):
        slack = 1e-9 * theirs.primal
        assert ours.dual <= theirs.primal + slack
        assert theirs.dual <= ours.primal + slack
    report = certsvm.verify(clf, X, y, sample_weight=weights)
    assert report.ok, str(report)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
def test_dense_arrays(client: Client, solver: str, intercept: bool) -> None:
    X, y = data()
    clf = LinearSVC(0.1, solver=solver, fit_intercept=intercept, random_state=0, tol=1e-3)
    clf.fit(da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=150))
    agrees(clf, X, y)
    assert clf.solver_ == solver
    assert clf.n_features_in_ == 12
    assert len(clf.history_) == clf.n_iter_


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_chunks_and_many_columns(client: Client, solver: str) -> None:
    X = sp.random(400, 900, density=0.02, format="csr", random_state=0)
    y = np.where(X @ np.random.default_rng(1).standard_normal(900) > 0, 1, -1)
    blocks = [da.from_delayed(delayed(b), b.shape, X.dtype) for b in cut(X, 90, 220)]
    labels = da.from_array(y, chunks=((90, 130, 180),))
    clf = LinearSVC(1.0, solver=solver, fit_intercept=False, random_state=0, tol=1e-3)
    clf.fit(da.concatenate(blocks), labels)
    agrees(clf, X, y)


def test_data_frames(client: Client) -> None:
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    clf = LinearSVC(0.1, random_state=0)
    clf.fit(dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3))
    agrees(clf, X, y)
    assert clf.feature_names_in_.tolist() == frame.columns.tolist()
    predicted = clf.predict(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_array_equal(predicted.compute(), clf.predict(frame))


def test_chunks_of_unknown_size(client: Client) -> None:
    X, y = data()
    x = da.from_array(X, chunks=(200, -1))
    labels = da.from_array(y, chunks=200)
    keep = labels != "maybe"
    clf = LinearSVC(0.1, random_state=0).fit(x[keep], labels[keep])
    agrees(clf, X, y)
    assert all(math.isnan(size) for size in x[keep].chunks[0])
    assert clf.predict(x[keep]).compute().shape == (600,)


@pytest.mark.parametrize("solver", SOLVERS)
def test_lists_of_blocks_of_all_kinds(client: Client, solver: str) -> None:
    """Delayed or not, sparse or dense, in both precisions, empty, of one class, uneven."""
    X, y = data()
    order = np.argsort(y, kind="stable")
    X, y = X[order].astype(np.float32).astype(np.float64), y[order]
    parts, labels = cut(X, 7, 7, 300, 590), cut(y, 7, 7, 300, 590)
    blocks = [
        parts[0].astype(np.float32),
        parts[1],
        delayed(sp.csr_matrix)(parts[2]),
        delayed(parts[3].astype(np.float32)),
        parts[4],
    ]
    clf = LinearSVC(0.1, solver=solver, random_state=0).fit(blocks, labels)
    agrees(clf, X, y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_of_rows_and_classes(client: Client, solver: str) -> None:
    X, y = data()
    weights = np.random.default_rng(2).integers(0, 4, 600).astype(float)
    clf = LinearSVC(0.05, solver=solver, class_weight="balanced", random_state=0)
    clf.fit(cut(X, 100, 350), cut(y, 100, 350), cut(weights, 100, 350))
    agrees(clf, X, y, weights)


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
    assert not isinstance(right, float)
    assert float(right.compute()) == pytest.approx(clf.score(X, y))


def test_a_folder_of_files(client: Client, tmp_path: Path) -> None:
    X, y = data()
    whole = np.column_stack([X, np.where(y == "yes", 1, 0)])
    (tmp_path / "blocks").mkdir()
    for i, part in enumerate(cut(whole, 250)):
        table = tmp_path / f"part-{i}.csv"
        names = [*(f"c{j}" for j in range(12)), "label"]
        pd.DataFrame(part, columns=names).to_csv(table, index=False)
        convert(table, tmp_path / "blocks" / f"part-{i}.arrow", label="label", memory=2**26)
    clf = LinearSVC(0.1, random_state=0).fit(tmp_path / "blocks")
    agrees(clf, X, np.where(y == "yes", 1, 0))
    with pytest.raises(ValueError, match="no block files"):
        LinearSVC().fit(tmp_path)
    with pytest.raises(ValueError, match="pass y=None"):
        LinearSVC().fit(tmp_path / "blocks", y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_dual_point_can_be_kept_and_checked(client: Client, solver: str) -> None:
    X, y = data()
    clf = LinearSVC(0.1, solver=solver, store_dual=True, random_state=0)
    clf.fit(cut(X, 100, 350), cut(y, 100, 350))
    assert clf.dual_coef_.shape == (1, 600)
    report = certsvm.verify(clf, X, y)
    assert report.ok, str(report)
    assert all(checked.dual is not None for checked in report)


def test_traffic_is_counted(client: Client) -> None:
    X, y = data()
    blocks = cut(X, 100, 350), cut(y, 100, 350)
    newton = LinearSVC(0.1, solver="newton", fit_intercept=False, random_state=0).fit(*blocks)
    matrices = newton.traffic_.rounds * newton.traffic_.workers * 12 * 12 * 8
    sample = 2 * 8 * X.shape[0] * X.shape[1]
    assert matrices < newton.traffic_.from_workers < 3 * matrices + sample
    assert newton.traffic_.per_round_and_worker > 12 * 12 * 8
    cocoa = LinearSVC(0.1, solver="cocoa", fit_intercept=False, random_state=0).fit(*blocks)
    assert 0 < cocoa.traffic_.from_workers < newton.traffic_.from_workers * cocoa.n_iter_


def test_vectors_are_packed_when_that_is_less() -> None:
    dense = np.arange(1.0, 100.0)
    assert packed(dense).indices is None
    sparse = np.zeros(100)
    sparse[[3, 50]] = 1.0, -2.0
    message = packed(sparse)
    assert message.values.nbytes + message.indices.nbytes == 24
    for vector in (dense, sparse):
        np.testing.assert_array_equal(unpacked(packed(vector)), vector)


def test_limits_and_the_word_about_them(client: Client) -> None:
    X, y = data()
    clf = LinearSVC(10.0, tol=1e-9, solver=Cocoa(passes=1), max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        clf.fit(cut(X, 300), cut(y, 300))
    assert clf.n_iter_ == 3
    assert 0 < clf.certificate_.dual <= clf.certificate_.primal


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.ones((2, 3)), np.ones((2, 4))]], [["a", "b"], ["a", "b"]], "numbers of columns"),
        ([[np.ones((2, 3))]], [["a", "a"]], "class"),
        ([[np.ones((2, 3))]], [["a", "b"], ["a"]], "cut alike"),
        ([[np.full((2, 3), np.nan)]], [["a", "b"]], "block 1 of the data.*NaN"),
        ([[np.ones((2, 3)), np.ones((2, 3))]], [["a", "b"], [1, 2]], "text in some blocks"),
        ([[np.ones((2, 3))]], [["a", "b", "a"]], "a label for each row"),
        ([[np.ones((0, 3))]], [[]], "no rows"),
        ([[]], [], "no blocks"),
        ([[np.array([["x", "y"]])]], [["a"]], "not numbers"),
    ],
)
def test_data_that_will_not_do(client: Client, X: Any, y: Any, message: str) -> None:
    clf = LinearSVC(random_state=0)
    with pytest.raises(ValueError, match=message):
        clf.fit(X[0], [np.array(labels) for labels in y])
    assert not hasattr(clf, "coef_")


def test_arguments_that_will_not_do(client: Client) -> None:
    X, y = data()
    with pytest.raises(ValueError, match="rows must be whole"):
        LinearSVC().fit(da.from_array(X, chunks=(200, 6)), da.from_array(y, chunks=200))
    with pytest.raises(TypeError, match=r"use certsvm\.LinearSVC"):
        LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="does not run on a cluster"):
        LinearSVC(solver=certsvm.solvers.DCD()).fit(cut(X, 300), cut(y, 300))
    with pytest.raises(ValueError, match="solver"):
        LinearSVC(solver="dcd").fit(cut(X, 300), cut(y, 300))
    problem = certsvm.Problem(certsvm.Rows(X), np.where(y == "yes", 1.0, -1.0))
    with pytest.raises(ValueError, match="rows on a cluster"):
        certsvm.train(problem, Cocoa())


def test_without_a_client() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="there is no Dask client"):
        LinearSVC().fit(cut(X, 300), cut(y, 300))


def test_a_client_that_is_given(cluster: LocalCluster) -> None:
    X, y = data()
    with Client(cluster, set_as_default=False) as client:
        clf = LinearSVC(0.1, solver=SmoothedNewton(), client=client).fit(cut(X, 300), cut(y, 300))
    assert clf.certificate_.met


def test_tasks_have_names(client: Client) -> None:
    X, y = data()
    LinearSVC(0.1, random_state=0).fit(cut(X, 300), cut(y, 300))
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"certsvm-labels", "certsvm-read-part", "certsvm-recheck-part"} <= set(names)


@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_too_long_to_travel_with_tasks(client: Client, solver: str) -> None:
    X = sp.random(300, 2500, density=0.01, format="csr", random_state=0)
    y = np.where(X @ np.random.default_rng(1).standard_normal(2500) > 0, 1, -1)
    clf = LinearSVC(0.1, solver=solver, random_state=0).fit(cut(X, 100), cut(y, 100))
    agrees(clf, X, y)


def frame(columns: str = "abcd", rows: int = 200) -> tuple[pd.DataFrame, pd.Series]:
    X, y = data(rows, columns=len(columns))
    return pd.DataFrame(X, columns=list(columns)), pd.Series(y)


def test_columns_are_known_by_their_names(client: Client, tmp_path: Path) -> None:
    X, y = frame()
    clf = LinearSVC(0.1, random_state=0)
    with pytest.raises(ValueError, match=r"different columns.*in block 2"):
        clf.fit([X[:100], X[100:][["b", "a", "c", "d"]]], [y[:100], y[100:]])
    clf.fit([X[:100], X[100:]], [y[:100], y[100:]])
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    other = dd.from_pandas(X[["d", "c", "b", "a"]], npartitions=2)
    with pytest.raises(ValueError, match="in the same order"):
        clf.predict(other)
    for name, columns in (("one", "ab"), ("two", "ba")):
        table = X[list(columns)].assign(label=y)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        convert(str(tmp_path / f"{name}.csv"), str(tmp_path / f"{name}.arrow"), label="label")
    with pytest.raises(ValueError, match="has other columns than"):
        clf.fit(str(tmp_path))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 1, np.nan, None] * 50, dtype=object), "without a label"),
        (np.array(["a", "b", np.nan, "a"] * 50, dtype=object), "without a label"),
        (np.random.default_rng(0).standard_normal(200), "Unknown label type"),
    ],
)
def test_labels_that_are_none(client: Client, labels: Any, message: str) -> None:
    X, _ = data(200)
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(cut(X, 100), cut(labels, 100))


def test_labels_that_a_common_type_would_merge(client: Client) -> None:
    X, _ = data(200)
    whole = np.where(X[:100, 0] > 0, 2**53 + 1, 0)
    parts = np.where(X[100:, 0] > 0, 2.0**53, 0.0)
    with pytest.raises(ValueError, match="cannot be told apart"):
        LinearSVC().fit(cut(X, 100), [whole, parts])


def test_frames_of_several_types_and_none(client: Client) -> None:
    X, y = frame()
    X["d"] = X["d"] > 0
    empty = pd.DataFrame({name: [] for name in "abcd"}, dtype=object)
    clf = LinearSVC(0.1, random_state=0, tol=1e-3)
    clf.fit([X[:100], empty, X[100:]], [y[:100], y[:0], y[100:]])
    agrees(clf, X.astype(float), y)


def test_scores_of_labels_in_a_column(client: Client) -> None:
    X, y = data()
    rows, labels = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
    clf = LinearSVC(random_state=0).fit(rows, labels)
    assert clf.score(rows, labels[:, None]).compute() == clf.score(X, y)


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
    with pytest.raises(TypeError, match="for each block"):
        clf.predict([delayed(X)])


def test_what_came_of_each_class_is_printed(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = data(classes=3)
    LinearSVC(0.1, random_state=0, verbose=1).fit(cut(X, 300), cut(y, 300))
    lines = capsys.readouterr().err.splitlines()
    for label in range(3):
        assert any(line.startswith(f"class {label}: ") and "proved" in line for line in lines)


def test_callbacks_are_given_the_weights(client: Client) -> None:
    pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    seen = []

    class Recorder:
        def setup(self, estimator: Any, context: Any) -> None: ...

        def teardown(self, estimator: Any, context: Any) -> None: ...

        def on_fit_task_begin(self, estimator: Any, context: Any, *, metadata: Any) -> None:
            seen.append(metadata)

        def on_fit_task_end(self, estimator: Any, context: Any) -> None: ...

    X, y = data()
    weights = cut(np.linspace(0.5, 2.0, len(y)), 300)
    clf = LinearSVC(0.1, random_state=0).set_callbacks(Recorder())
    clf.fit(cut(X, 300), cut(y, 300), sample_weight=weights)
    assert seen[0] == {"sample_weight": weights}


def test_an_interrupt_keeps_the_classes_before(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data(classes=3)

    def begin(self: Any, i: int, label: Any, problem: Any) -> Any:
        if i == 1:
            raise KeyboardInterrupt
        return ()

    monkeypatch.setattr(ClusterSource, "at_once", lambda *_: 1)
    monkeypatch.setattr(FitTasks, "begin", begin)
    with pytest.warns(ConvergenceWarning, match="2 of 3 classes"):
        clf = LinearSVC(0.1, random_state=0).fit(cut(X, 300), cut(y, 300))
    assert clf.coef_[0].any()
    assert not clf.coef_[1:].any()
    assert certsvm.verify(clf, X, y).ok
