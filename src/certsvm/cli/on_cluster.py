"""`certsvm train --dask`: rows on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.dask import ClusterSource


@contextmanager
def cluster_source(
    path: str, address: str, deadline: float, intercept_scaling: float
) -> Iterator[ClusterSource]:
    """The rows of a block file, or of a folder of block files, that all workers can read."""
    try:
        from certsvm.dask import CertificateRefutedError, ClusterLostError, ClusterSource
        from certsvm.dask.cluster import Cluster
    except ImportError as error:
        raise BadInput(str(error)) from None
    with _client(address, deadline) as client:
        try:
            yield ClusterSource(
                Cluster(client, deadline), path, intercept_scaling=intercept_scaling
            )
        except ClusterLostError as error:
            raise BadInput(f"the cluster is lost, before anything was proved: {error}") from None
        except CertificateRefutedError as error:
            raise BadInput(str(error)) from None


@contextmanager
def _client(address: str, deadline: float) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    kind, _, number = address.partition(":")
    if kind == "local":
        if not (number.isdigit() and int(number) > 0):
            raise BadInput(f"--dask {address}: write local:N, with N processes")
        with (
            LocalCluster(
                n_workers=int(number),
                threads_per_worker=1,
                silence_logs=50,
                # Any free port; without an address, a port in use is warned of.
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
            ) as cluster,  # fmt: skip
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=deadline)
    except (OSError, ValueError) as error:
        raise BadInput(f"--dask {address}: no scheduler answers there ({error})") from None
    with client:
        yield client
