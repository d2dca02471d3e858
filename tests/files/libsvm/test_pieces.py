"""Text cut into pieces for threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.libsvm import pieces
from certsvm.files.libsvm.pieces import cut
from tests.files.libsvm.reading import SAMPLE, Options, check


def test_cuts_at_every_byte(tmp_path: Path) -> None:
    for length in range(len(SAMPLE) + 1):
        check(SAMPLE[:length], Options(), tmp_path)


@pytest.mark.parametrize("piece", [1, 7, 40])
def test_pieces_of_any_length(piece: int, tmp_path: Path) -> None:
    check(SAMPLE, Options(), tmp_path, piece)


@given(
    st.lists(st.sampled_from([b"1", b"23 4:5", b"\n", b"6:7 "]), min_size=1).map(b"".join),
    st.integers(1, 5),
)
def test_text_in_memory_is_cut_at_line_ends(text: bytes, n_jobs: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_PIECE_BYTES", 4)
        found = cut(np.frombuffer(text + b"rest", dtype=np.uint8), len(text), n_jobs)
    texts = [bytes(buffer[:end]) for buffer, end in (piece.fetch() for piece in found)]
    assert b"".join(texts) == text
    assert len(found) <= n_jobs
    assert all(piece.endswith(b"\n") for piece in texts[:-1])
    for piece, content in zip(found, texts, strict=True):
        assert (piece.lines, piece.colons) == (content.count(b"\n"), content.count(b":"))
