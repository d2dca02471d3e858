"""Data for the tests on a cluster, and the comparison with one machine."""

from typing import Any

import numpy as np
from distributed import Client

import certsvm
from certsvm.dask import ClusterSource
from certsvm.dask.cluster import Cluster, ClusterProblem
from certsvm.problem.base import Objective

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


def blocks(rows: int = 4000, count: int = 6) -> tuple[Any, Any, Any, Any]:
    X, y = data(rows, columns=20)
    edges = [rows * i // count for i in range(1, count)]
    return X, y, cut(X, *edges), cut(y, *edges)


def agrees(clf: Any, X: Any, y: Any, weights: Any = None) -> None:
    """The certificate holds for the data, and the interval overlaps with that of one machine."""
    assert clf.certificate_.met
    local = certsvm.LinearSVC(
        clf.C, tol=1e-6, fit_intercept=clf.fit_intercept, class_weight=clf.class_weight,
        intercept_scaling=clf.intercept_scaling, loss=clf.loss,
        penalize_intercept=clf.penalize_intercept, random_state=0,
    ).fit(X, y, weights)  # fmt: skip
    np.testing.assert_array_equal(clf.classes_, local.classes_)
    np.testing.assert_allclose(clf.class_weight_, local.class_weight_)
    for ours, theirs in zip(clf.certificates_, local.certificates_, strict=True):
        slack = 1e-9 * theirs.primal
        assert ours.dual <= theirs.primal + slack
        assert theirs.dual <= ours.primal + slack
    report = certsvm.verify(clf, X, y, sample_weight=weights)
    assert report.ok, str(report)


def cluster_problem(
    client: Client, X: Any, y: Any, weights: Any = None, *, i: int = 0, **options: Any
) -> ClusterProblem:
    """The problem of one class, with all blocks on the workers."""
    names = [name for name in ("C", "loss", "penalize_intercept") if name in options]
    objective = Objective(**{name: options.pop(name) for name in names})
    return ClusterSource(Cluster(client, 20.0), X, y, weights, **options).problem(i, objective)
