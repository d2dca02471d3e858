"""Blocks on the workers, from data of any kind."""

import itertools
import math
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask import delayed
from distributed import Client

from certsvm.dask import LinearSVC
from certsvm.files.conversion import convert
from tests.dask.problems import SOLVERS, agrees, cut, data


@pytest.mark.parametrize(("solver", "intercept"), [("cocoa", False), ("smoothed-newton", True)])
def test_dense_arrays(client: Client, solver: str, intercept: bool) -> None:
    X, y = data()
    clf = LinearSVC(0.1, solver=solver, fit_intercept=intercept, random_state=0, tol=1e-3)
    clf.fit(da.from_array(X, chunks=(150, 7)), da.from_array(y, chunks=150))
    agrees(clf, X, y)
    assert clf.solver_ == solver
    assert clf.n_features_in_ == 12
    assert len(clf.history_) == clf.n_iter_


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_chunks_and_many_columns(client: Client, solver: str) -> None:
    # Vectors as long as a row do not travel with each task.
    X = sp.random(400, 2500, density=0.01, format="csr", random_state=0)
    y = np.where(X @ np.random.default_rng(1).standard_normal(2500) > 0, 1, -1)
    blocks = [da.from_delayed(delayed(b), b.shape, X.dtype) for b in cut(X, 90, 220)]
    labels = da.from_array(y, chunks=((90, 130, 180),))
    clf = LinearSVC(1.0, solver=solver, fit_intercept=False, random_state=0, tol=1e-3)
    clf.fit(da.concatenate(blocks), labels)
    agrees(clf, X, y)


def test_files_of_few_columns(client: Client, tmp_path: Path) -> None:
    """Dask reads several of them as one partition, of X and of y each their own way."""
    X, y = data(640, columns=20)
    whole = pd.DataFrame(X, columns=[f"c{i}" for i in range(20)])
    whole = whole.assign(label=y, weight=np.linspace(0.5, 2.0, 640))
    edges = [0, *range(70, 570, 80), 640]
    for i, (first, last) in enumerate(itertools.pairwise(edges)):
        whole[first:last].to_parquet(tmp_path / f"{i}.parquet")
    frame = dd.read_parquet(tmp_path)
    columns = [f"c{i}" for i in range(12)]
    other = dd.read_parquet(tmp_path, columns=["label"])
    for given in (
        (frame[columns], frame["label"]),
        (frame[[*columns, "label"]], "label"),
        (frame[columns], other["label"]),
    ):
        clf = LinearSVC(0.1, random_state=0).fit(*given)
        agrees(clf, X[:, :12], y)
        assert clf.feature_names_in_.tolist() == columns
        assert clf.score(*given) == clf.score(whole[columns], y)
    predicted = clf.predict(frame[columns])
    np.testing.assert_array_equal(predicted.compute(), clf.predict(whole[columns]))
    weighted = frame[[*columns, "label", "weight"]], "label", "weight"
    agrees(LinearSVC(0.1, random_state=0).fit(*weighted), X[:, :12], y, whole["weight"])
    with pytest.raises(ValueError, match="no column 'class'"):
        clf.fit(frame, "class")
    with pytest.raises(ValueError, match="cut alike"):
        clf.fit(frame[columns], frame["label"].values)


def test_vectors_that_are_not_cut_like_the_rows(client: Client) -> None:
    X, y = data()
    rows = da.from_array(X, chunks=(250, -1))
    for bad, message in (
        (None, "y is missing"),
        (da.from_array(y, chunks=100), "cut alike"),
        (da.from_array(y[:-1], chunks=250), "a label for each row"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearSVC().fit(rows, bad)


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
    single = [part.astype(np.float32) for part in parts]
    blocks = [single[0], parts[1], delayed(sp.csr_matrix)(parts[2]), delayed(single[3]), parts[4]]
    clf = LinearSVC(0.1, solver=solver, random_state=0).fit(blocks, labels)
    agrees(clf, X, y)


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


def test_frames_of_several_types_and_none(client: Client) -> None:
    X, y = frame()
    X["d"] = X["d"] > 0
    empty = pd.DataFrame({name: [] for name in "abcd"}, dtype=object)
    clf = LinearSVC(0.1, random_state=0, tol=1e-3)
    clf.fit([X[:100], empty, X[100:]], [y[:100], y[:0], y[100:]])
    agrees(clf, X.astype(float), y)


def test_labels_that_end_in_nul_are_refused(client: Client) -> None:
    X, y = data()
    labels = np.array(["a", "a\0"], dtype=object)[(y == y[0]).astype(int)]
    blocks = [delayed(block) for block in cut(labels, 300)]
    for vector in (blocks, [block.tolist() for block in cut(labels, 300)]):
        with pytest.raises(ValueError, match="ends in NUL"):
            LinearSVC().fit(cut(X, 300), vector)
