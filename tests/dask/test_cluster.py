"""Calls to a cluster, and what is counted of them."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client

from certsvm.dask import ClusterLostError, LinearSVC
from certsvm.dask.cluster import Cluster, Group, WorkerGoneError, add_up, size_of
from tests.dask.problems import SOLVERS, agrees, cut, data

DEADLINE = 20.0


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


def test_tasks_have_names(client: Client) -> None:
    X, y = data()
    LinearSVC(0.1, random_state=0).fit(cut(X, 300), cut(y, 300))
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"certsvm-labels", "certsvm-read-part", "certsvm-recheck"} <= set(names)


@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_too_long_to_travel_with_tasks(client: Client, solver: str) -> None:
    X = sp.random(300, 2500, density=0.01, format="csr", random_state=0)
    y = np.where(X @ np.random.default_rng(1).standard_normal(2500) > 0, 1, -1)
    clf = LinearSVC(0.1, solver=solver, random_state=0).fit(cut(X, 100), cut(y, 100))
    agrees(clf, X, y)


def test_patience_begins_with_the_first_failure(client: Client) -> None:
    """A round that took long before it failed is tried again all the same."""
    cluster = Cluster(client, deadline=0.2)
    calls = []

    def attempt() -> str:
        calls.append("attempt")
        if calls.count("attempt") < 3:
            time.sleep(0.6)
            raise WorkerGoneError("gone")
        return "done"

    assert cluster.insistent(attempt, lambda: calls.append("again")) == "done"
    assert calls == ["attempt", "again", "attempt", "again", "attempt"]

    def hopeless() -> None:
        raise WorkerGoneError("gone")

    with pytest.raises(ClusterLostError, match="again and again"):
        cluster.insistent(hopeless, lambda: None)


def test_nothing_can_be_sent_to_a_worker_that_is_gone(client: Client) -> None:
    cluster = Cluster(client, DEADLINE)
    with pytest.raises(WorkerGoneError, match="nothing can be sent"):
        cluster.send(np.zeros(10_000), [Group("tcp://127.0.0.1:1", [0])])


def test_a_sum_leaves_its_terms_alone() -> None:
    terms = [np.ones(2), np.full(2, 2.0)]
    assert add_up(terms).tolist() == [3.0, 3.0]
    assert terms[0].tolist() == [1.0, 1.0]


def test_sizes() -> None:
    assert size_of(sp.csr_matrix(np.eye(3))) == 3 * 8 + 3 * 4 + 4 * 4
    assert size_of([np.zeros(3, np.float32), (1, 2.0), "text", None]) == 12 + 16
    assert size_of(Group("address", [1, 2, 3])) == 24
    assert size_of(Group) == 0


@pytest.mark.parametrize("count", [1, 8, 9, 70])
def test_many_results_are_added_on_the_workers(client: Client, count: int) -> None:
    cluster = Cluster(client, DEADLINE)
    (address, _), *_ = cluster.workers()
    groups = [Group(address, [i]) for i in range(count)]
    tasks = [cluster.task("number", int, i) for i in range(count)]
    sums = cluster.summed(tasks, groups)
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
        cluster.workers()
