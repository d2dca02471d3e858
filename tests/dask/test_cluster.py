"""Calls to a cluster, and what is counted of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client

from certsvm.dask import LinearSVC
from certsvm.dask.cluster import Cluster
from tests.dask.problems import SOLVERS, agrees, cut


@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_too_long_to_travel_with_tasks(client: Client, solver: str) -> None:
    X = sp.random(300, 2500, density=0.01, format="csr", random_state=0)
    y = np.where(X @ np.random.default_rng(1).standard_normal(2500) > 0, 1, -1)
    clf = LinearSVC(0.1, solver=solver, random_state=0).fit(cut(X, 100), cut(y, 100))
    agrees(clf, X, y)


@pytest.mark.parametrize("count", [1, 8, 9, 70])
def test_many_results_are_added_on_the_workers(client: Client, count: int) -> None:
    cluster = Cluster(client, 20.0)
    address = next(iter(client.nthreads()))
    tasks = [cluster.task("number", int, i) for i in range(count)]
    sums = cluster.summed(tasks, [address] * count)
    assert len(sums) <= 8
    assert sum(cluster.results(cluster.begin(sums))) == sum(range(count))
