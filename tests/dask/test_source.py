"""The source of labelled rows on a cluster."""

from typing import Any

import numpy as np
import pytest
from distributed import Client

import certsvm
import certsvm.dask.source as source_module
from certsvm.dask import ClusterLostError, LinearSVC
from tests.dask.problems import blocks, cut, data


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (
            [[np.ones((2, 3)), np.ones((2, 4))]],
            [["a", "b"], ["a", "b"]],
            "different columns: 3 in block 1, 4 in block 2",
        ),
        ([[np.ones((2, 3))]], [["a", "a"]], "class"),
        ([[np.ones((2, 3))]], [["a", "b"], ["a"]], "cut alike"),
        ([[np.full((2, 3), np.nan)]], [["a", "b"]], "block 1 of the data.*NaN"),
        (
            [[np.ones((2, 3)), np.ones((2, 3))]],
            [["a", "b"], [1, 2]],
            "different types in different blocks",
        ),
        ([[np.ones((2, 3))]], [["a", "b", "a"]], "a label for each row"),
        ([[np.ones((0, 3))]], [[]], "no rows"),
        ([[]], [], "no rows"),
        ([[np.array([["x", "y"]])]], [["a"]], "must hold real numbers"),
    ],
)
def test_data_that_will_not_do(client: Client, X: Any, y: Any, message: str) -> None:
    clf = LinearSVC(random_state=0)
    with pytest.raises(ValueError, match=message):
        clf.fit(X[0], [np.array(labels) for labels in y])
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 1, np.nan, None] * 50, dtype=object), "a label is missing"),
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
    with pytest.raises(ValueError, match="different types in different blocks"):
        LinearSVC().fit(cut(X, 100), [whole, parts])


def test_a_cluster_lost_during_recheck(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, parts, labels = blocks()

    def lost(*_: Any) -> Any:
        raise ClusterLostError("gone")

    monkeypatch.setattr(source_module, "recheck", lost)
    with pytest.raises(ClusterLostError, match="gone") as caught:
        LinearSVC(0.1, random_state=0, client=client).fit(parts, labels)
    assert certsvm.verify(caught.value.model, X, y).ok
