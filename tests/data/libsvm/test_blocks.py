"""Batches of rows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from certsvm.data import LibsvmBlocks


def test_blocks_of_a_path_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"1 1:1\n2 2:2\n")
    blocks = LibsvmBlocks(path, 6)
    for _ in range(2):
        assert [block.y.tolist() for block in blocks] == [[1.0], [2.0]]
        assert blocks.totals.rows == 2


def test_columns_are_the_indices_of_the_file() -> None:
    blocks = LibsvmBlocks(io.BytesIO(b"1 2:0.5\n-1\n1 7:3\n"), 8)
    batches = list(blocks)
    assert [X.shape for X, _, _ in batches] == [(1, 3), (1, 0), (1, 8)]
    assert [X.indices.tolist() for X, _, _ in batches] == [[2], [], [7]]
    assert all(weights is None for _, _, weights in batches)
    assert (blocks.totals.smallest, blocks.totals.largest) == (2, 7)
    assert not blocks.zero_based


def test_blocks_of_no_bytes() -> None:
    for size in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="block_bytes must be"):
            LibsvmBlocks(io.BytesIO(b""), size)  # type: ignore[arg-type]
