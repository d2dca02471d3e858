"""Batches of rows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from certsvm.files import LibsvmBlocks
from certsvm.files.libsvm.errors import LibsvmError


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


@pytest.mark.parametrize("block_bytes", [4, 16, 1000])
def test_a_line_longer_than_allowed_is_an_error_with_its_number(block_bytes: int) -> None:
    text = b"1 1:1\n\n-1 2:1\n" + b"1 " + b"3:1 " + b" " * 5000 + b"\n1 1:1\n"
    for limit in (4000, 5006):
        blocks = LibsvmBlocks(
            io.BytesIO(text), block_bytes, longest_line=limit, zero_based=False, name="a"
        )
        if limit == 5006:
            assert sum(len(y) for _, y, _ in blocks) == 4
            continue
        with pytest.raises(LibsvmError, match=r"a, line 4, column 1: this line is longer than"):
            list(blocks)
        assert blocks.totals.rows == 2
