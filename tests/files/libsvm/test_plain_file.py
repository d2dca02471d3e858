"""Regular files, and files that change while they are read."""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files import (
    LibsvmError,
    load_libsvm,
)
from certsvm.files.libsvm import pieces
from certsvm.files.libsvm.options import ParseOptions
from certsvm.files.libsvm.plain_file import PlainFile, first_of_plain_file
from certsvm.parallel import Team


@pytest.mark.parametrize("change", ["shorter", "longer", "denser"])
def test_a_file_that_changes_between_counting_and_parsing(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"1 1:1000\n" * 1000)
    count = PlainFile.pieces

    def count_then_change(*arguments: Any) -> Any:
        pieces = count(*arguments)
        if change == "shorter":
            os.truncate(path, 4000)
        elif change == "denser":
            with open(path, "r+b") as file:
                file.write(b"1 1:1 2:1\n1\n")
        else:
            with open(path, "ab") as file:
                file.write(b"1 1:1\n")
        return pieces

    monkeypatch.setattr(PlainFile, "pieces", count_then_change)
    with pytest.raises(LibsvmError, match="changed while it was read"):
        load_libsvm(path)


@pytest.mark.parametrize(
    ("content", "first"),
    [
        (b"1 1:1\n", 0),
        (b"\xef\xbb\xbf1 1:1\n", 3),
        (b"", None),
        (gzip.compress(b"1 1:1\n", mtime=0), None),
    ],
)
def test_where_the_text_begins(content: bytes, first: int | None, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with path.open("rb", buffering=0) as file:
        assert first_of_plain_file(file, path) == first
        assert first_of_plain_file(file, file) is None
        assert file.tell() == 0


@given(
    st.lists(st.sampled_from([b"1", b"23 4:5", b"\n", b"6:7 "]), min_size=1).map(b"".join),
    st.integers(1, 3),
)
def test_pieces_are_whole_lines_and_make_up_the_file(text: bytes, n_jobs: int) -> None:
    options = ParseOptions.checked("text", np.float64, None, None, n_jobs)
    with (
        tempfile.TemporaryFile(buffering=0) as file,
        pytest.MonkeyPatch.context() as patch,
        Team(n_jobs) as team,
    ):
        file.write(text)
        patch.setattr(pieces, "_PIECE_BYTES", 8)
        plain = PlainFile(file, options)
        cut = plain.pieces(team, 0)
        texts = [bytes(buffer[:end]) for buffer, end in (piece.fetch() for piece in cut)]
        plain.refuse_changed()
    assert b"".join(texts) == text
    assert all(piece.endswith(b"\n") for piece in texts[:-1])
    for piece, content in zip(cut, texts, strict=True):
        assert (piece.lines, piece.colons) == (content.count(b"\n"), content.count(b":"))
