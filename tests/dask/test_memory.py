"""Data that no single worker can hold."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
from dask import delayed
from distributed import Client

from certsvm.dask import LinearSVC
from tests.dask.conftest import make_cluster

LIMIT = 520 * 2**20
BLOCKS, ROWS, COLUMNS = 40, 20_000, 130  # 416 MB in single precision


def block(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)


def labels(X: Any) -> Any:
    return (X[:, 0] + X[:, 1] > 0.3).astype(int)


def resident() -> int:
    import psutil

    import certsvm.dask  # noqa: F401 - what is loaded for training counts

    return int(psutil.Process().memory_info().rss)


def test_two_workers_hold_what_one_cannot(patience: None) -> None:
    # Killed beyond the limit, without spilling to disk or waiting before.
    memory = {f"distributed.worker.memory.{word}": False for word in ("target", "spill", "pause")}
    with (
        dask.config.set(memory),
        make_cluster(2, memory_limit=LIMIT) as cluster,
        Client(cluster) as client,
    ):
        empty = min(client.run(resident).values())
        # Beyond 95 % of the limit, a worker is killed.
        assert empty + BLOCKS * ROWS * COLUMNS * 4 > 0.95 * LIMIT
        cluster_workers = list(client.run(resident))
        X = [delayed(block, pure=False)(seed) for seed in range(BLOCKS)]
        y = [delayed(labels, pure=False)(part) for part in X]
        clf = LinearSVC(1e-4, tol=0.05, fit_intercept=False, client=client, random_state=0)
        clf.fit(X, y)
        assert clf.certificate_.met
        assert clf.n_samples_seen_ == BLOCKS * ROWS
        # Nobody was killed and started again.
        assert sorted(client.run(resident)) == sorted(cluster_workers)
