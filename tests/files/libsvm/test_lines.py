"""Text cut at line ends."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files import (
    LibsvmBlocks,
)
from certsvm.files.compressed import DamagedFileError
from certsvm.files.libsvm.lines import whole_lines


def test_a_line_longer_than_a_block() -> None:
    long = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 500)) + b"\n"
    text = b"1 1:1\n" * 100 + long + b"1 1:1\n" * 1000
    sizes = [block.y.size for block in LibsvmBlocks(io.BytesIO(text), 64)]
    assert sum(sizes) == 1101
    # The long line doubles the buffer until it fits; afterwards blocks are short again.
    assert max(sizes[:9]) <= 11
    assert max(sizes) <= len(long) // 6 + 11
    assert max(sizes[-9:]) <= 11


class Trickle:
    """A source that gives a few bytes at a time."""

    def __init__(self, text: bytes, damaged: bool = False) -> None:
        self.text, self.damaged = text, damaged

    def read(self, size: int) -> bytes:
        head, self.text = self.text[: min(size, 3)], self.text[min(size, 3) :]
        if not head and self.damaged:
            raise DamagedFileError("file", "truncated")
        return head


@given(st.lists(st.sampled_from([b"1", b"23 4:5", b"\n", b"\r\n"])).map(b"".join),
       st.integers(1, 12), st.booleans())  # fmt: skip
def test_blocks_are_whole_lines_and_make_up_the_text(text: bytes, size: int, mark: bool) -> None:
    blocks = [
        bytes(buffer[:end])
        for buffer, end in whole_lines(Trickle(b"\xef\xbb\xbf" * mark + text), size)
    ]
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_lines_before_the_damage_come_first() -> None:
    blocks = whole_lines(Trickle(b"1\n2\n3", damaged=True), 100)
    buffer, end = next(blocks)
    assert bytes(buffer[:end]) == b"1\n2\n"
    with pytest.raises(DamagedFileError):
        next(blocks)
