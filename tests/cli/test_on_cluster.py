"""Connecting to a Dask cluster; training on one is tested in tests/dask."""

from __future__ import annotations

from pathlib import Path

import pytest

from certsvm.cli.app import BadInput
from certsvm.cli.on_cluster import cluster_source

pytest.importorskip("distributed")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("local:none", "write local:N"),
        ("local:0", "write local:N"),
        ("tcp://127.0.0.1:1", "no scheduler answers there"),
    ],
)
def test_addresses_that_lead_nowhere(address: str, message: str, tmp_path: Path) -> None:
    with (
        pytest.raises(BadInput, match=message),
        cluster_source(str(tmp_path), address, 0.5, 1.0),
    ):
        pass
