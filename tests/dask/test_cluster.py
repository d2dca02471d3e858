"""Calls to a cluster, and what is counted of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client

from certsvm.dask import ClusterLostError, LinearSVC
from certsvm.dask.cluster import Cluster, add_up
from tests.dask.problems import SOLVERS, agrees, cut

DEADLINE = 20.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_too_long_to_travel_with_tasks(client: Client, solver: str) -> None:
    X = sp.random(300, 2500, density=0.01, format="csr", random_state=0)
    y = np.where(X @ np.random.default_rng(1).standard_normal(2500) > 0, 1, -1)
    clf = LinearSVC(0.1, solver=solver, random_state=0).fit(cut(X, 100), cut(y, 100))
    agrees(clf, X, y)


def test_a_sum_leaves_its_terms_alone() -> None:
    terms = [np.ones(2), np.full(2, 2.0)]
    assert add_up(terms).tolist() == [3.0, 3.0]
    assert terms[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("count", [1, 8, 9, 70])
def test_many_results_are_added_on_the_workers(client: Client, count: int) -> None:
    cluster = Cluster(client, DEADLINE)
    address = next(iter(client.nthreads()))
    tasks = [cluster.task("number", int, i) for i in range(count)]
    sums = cluster.summed(tasks, [address] * count)
    assert len(sums) <= 8
    assert sum(cluster.results(cluster.begin(sums))) == sum(range(count))


def test_each_block_is_in_one_group(client: Client) -> None:
    cluster = Cluster(client, DEADLINE)
    futures = cluster.begin([cluster.task("block", np.ones, i) for i in range(7)])
    cluster.wait(futures)
    groups = cluster.groups(futures)
    assert sorted(i for group in groups for i in group.members) == list(range(7))
    # A thread for each of the two workers.
    assert len(groups) <= 2
    holders = client.who_has(futures)
    assert all(group.worker in holders[futures[i].key] for group in groups for i in group.members)


def test_a_lost_cluster_stays_lost(client: Client) -> None:
    cluster = Cluster(client, DEADLINE)
    cluster._lost("it was unplugged")
    with pytest.raises(ClusterLostError, match="unplugged"):
        cluster.begin([])
