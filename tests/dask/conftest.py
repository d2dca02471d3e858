"""Real clusters of processes on this machine."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'certsvm[dask]'")

import dask
from distributed import Client, LocalCluster


def pytest_configure(config: pytest.Config) -> None:
    """Only tests that expect a refuted certificate may see one."""
    config.addinivalue_line("filterwarnings", "error::certsvm.dask.CertificateRefutedWarning")


@pytest.fixture(scope="session", autouse=True)
def patience(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers' files out of the way; dead processes noticed soon."""
    folder: Path = tmp_path_factory.mktemp("dask")
    options = {"temporary-directory": str(folder), "distributed.comm.timeouts.connect": "5s"}
    with dask.config.set(options):
        yield


def make_cluster(workers: int, **options: Any) -> LocalCluster:
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
        silence_logs=50, **options,
    )  # fmt: skip


@pytest.fixture(scope="session")
def cluster(patience: None) -> Iterator[LocalCluster]:
    with make_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as client:
        yield client


def processes(client: Client) -> list[int]:
    """Of the workers."""
    pids: dict[str, int] = client.run(os.getpid)
    return list(pids.values())
