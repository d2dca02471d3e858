"""Calls to a cluster, and what is counted of them."""

from __future__ import annotations

import pytest
from distributed import Client

from certsvm.dask.cluster import Cluster


@pytest.mark.parametrize("count", [1, 8, 9, 70])
def test_many_results_are_added_on_the_workers(client: Client, count: int) -> None:
    cluster = Cluster(client, 20.0)
    address = next(iter(client.nthreads()))
    tasks = [cluster.task("number", int, i) for i in range(count)]
    sums = cluster.summed(tasks, [address] * count)
    assert len(sums) <= 8
    assert sum(cluster.results(cluster.begin(sums))) == sum(range(count))
