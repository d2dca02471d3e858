"""Data files of all kinds, right and wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from certsvm import Model
from certsvm.files.block_file import BlockFile
from tests.cli.running import run, write


def test_standard_input_and_output(tmp_path: Path) -> None:
    write(tmp_path / "data")
    text = (tmp_path / "data").read_bytes()
    assert run("train", "-", "-o", "m", "-q", cwd=tmp_path, stdin=text).code == 0
    assert run("train", "data", "-o", "same", "-q", cwd=tmp_path).code == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "same").read_bytes()
    out = run("predict", "m", "-", "-q", cwd=tmp_path, stdin=gzip.compress(text))
    assert len(out.out.splitlines()) == 300
    assert not out.err
    assert run("verify", "m", "-", cwd=tmp_path, stdin=text).code == 3
    assert run("convert", "-", "a.arrow", "-q", cwd=tmp_path, stdin=text).code == 0
    assert BlockFile(tmp_path / "a.arrow").summary.n_rows == 300


BAD = {
    "nan": (b"1 1:nan\n-1 1:1\n", "line 1, column 5"),
    "one class": (b"1 1:1\n1 2:1\n", "only one class"),
    "empty": (b"", "no rows"),
    "descending": (b"1 1:1\n-1 3:1 2:1\n", "line 2, column 8"),
    "garbage": (b"1 1:1\n-1 hello\n", 'line 2, column 4: expected index:value, found "hello"'),
    "overflow": (b"1 1:1e999\n-1 1:1\n", "line 1, column 5"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files(kind: str, tmp_path: Path) -> None:
    text, message = BAD[kind]
    (tmp_path / "data").write_bytes(text)
    Model(np.ones((1, 1)), np.zeros(1), np.arange(2), np.ones(2)).save(tmp_path / "data.model")
    before = (tmp_path / "data.model").read_bytes()
    refused = run("train", "data", cwd=tmp_path)
    assert refused.code == 2
    assert message.split(":")[0] in refused.err
    assert "Traceback" not in refused.err
    assert (tmp_path / "data.model").read_bytes() == before
