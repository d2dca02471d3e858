"""Kinds of data files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from certsvm.files.kinds import kind_of


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a", b"ARROW1\0\0", "blocks"),
        ("a.txt", b"PAR1...", "table"),
        ("a.csv", b"a,b\n", "table"),
        ("a.CSV.gz", b"\x1f\x8b", "table"),
        ("a.csv.txt", b"1 1:1\n", "text"),
        ("a.arrow", b"1 1:1\n", "text"),
        ("a.parquet", b"", "text"),
    ],
)
def test_kinds(name: str, content: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert kind_of(tmp_path / name) == kind
    assert kind_of(str(tmp_path / name)) == kind


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert kind_of(tmp_path / "pipe.csv") == "text"
