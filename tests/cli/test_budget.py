"""Memory limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from certsvm.cli.app import BadInput
from certsvm.cli.budget import require_memory
from certsvm.data.block_file import BlockFile
from certsvm.data.convert import convert
from certsvm.data.streams import BlockStream
from certsvm.fitting.settings import Settings
from certsvm.fitting.sources import StreamSource
from tests.cli.running import run, write


def test_too_little_memory(tmp_path: Path) -> None:
    write(tmp_path / "data")
    text = run("train", "data", "--memory", "100M", cwd=tmp_path)
    assert text.code == 2
    assert "certsvm convert data data.arrow" in text.err
    few = run("convert", "data", "data.arrow", "--memory", "50M", cwd=tmp_path)
    assert few.code == 2
    assert "Give at least" in few.err
    assert run("convert", "data", "data.arrow", "-q", cwd=tmp_path).code == 0
    blocks = run("train", "data.arrow", "--memory", "100M", cwd=tmp_path)
    assert blocks.code == 2
    assert "are not enough" in blocks.err


def test_the_message_says_how_much_is_needed(tmp_path: Path) -> None:
    path = write(tmp_path / "data", n_rows=200)
    convert(path, tmp_path / "data.arrow", block_bytes=2000)
    source = StreamSource(BlockStream(BlockFile(tmp_path / "data.arrow")))
    settings = Settings(solver="sgd-s")
    with pytest.raises(BadInput, match="make smaller blocks") as caught:
        require_memory(10**6, source, settings, witness=True)
    (needed,) = re.findall(r"about (\d+) MB", str(caught.value))
    require_memory(2 * 10**6 * int(needed), source, settings, witness=True)
