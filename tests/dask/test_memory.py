"""Data that no single worker can hold."""

from typing import Any

import dask
import numpy as np
from dask import delayed
from distributed import Client

from certsvm.dask import LinearSVC
from tests.dask.conftest import make_cluster
from tests.platforms import linux

BLOCKS, ROWS, COLUMNS = 24, 20_000, 130
TOTAL = BLOCKS * ROWS * COLUMNS * 4  # 250 MB, in single precision
# Beyond this share of its limit, Dask kills a worker.
KILLED = 0.95


def block(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((ROWS, COLUMNS), dtype=np.float32)


def labels(X: Any) -> Any:
    return (X[:, 0] + X[:, 1] > 0.3).astype(int)


def peak() -> int:
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fitted(client: Client, blocks: int) -> Any:
    X = [delayed(block, pure=False)(seed) for seed in range(blocks)]
    y = [delayed(labels, pure=False)(part) for part in X]
    clf = LinearSVC(1e-4, tol=0.05, fit_intercept=False, client=client, random_state=0)
    return clf.fit(X, y)


@linux
def test_two_workers_hold_what_one_cannot(patience: None) -> None:
    with make_cluster(1) as cluster, Client(cluster) as client:
        fitted(client, 2)
        # All that is loaded and compiled, and two blocks.
        (alone,) = client.run(peak).values()
    limit = int((alone + 0.8 * TOTAL) / KILLED)
    # Killed beyond the limit, without spilling to disk or waiting before.
    memory = {f"distributed.worker.memory.{word}": False for word in ("target", "spill", "pause")}
    with (
        dask.config.set(memory),
        make_cluster(2, memory_limit=limit) as cluster,
        Client(cluster) as client,
    ):
        before = sorted(client.run(peak))
        clf = fitted(client, BLOCKS)
        assert clf.certificate_.met
        assert clf.n_samples_seen_ == BLOCKS * ROWS
        # Nobody was killed and started again, and nobody could have held it all.
        assert sorted(client.run(peak)) == before
        assert alone + TOTAL > KILLED * limit
