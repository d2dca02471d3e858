"""Paths, pipes and file objects."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from certsvm.files import (
    LibsvmBlocks,
    LibsvmError,
    load_libsvm,
)


def test_standard_input() -> None:
    code = (
        "import sys; from certsvm.files import load_libsvm; "
        "X, y = load_libsvm(sys.stdin.buffer); print(X.shape, y.sum())"
    )
    text = b"1 1:2\n" * 100_000
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout.split() == [b"(100000,", b"1)", b"100000.0"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"1 1:2\n" * 50_000))
    writer.start()
    X, _ = load_libsvm(path)
    writer.join()
    assert X.shape == (50_000, 1)


def test_a_file_object_is_read_from_where_it_is() -> None:
    file = io.BytesIO(b"header\n1 1:2\n")
    file.readline()
    assert load_libsvm(file)[0].shape == (1, 1)


def test_what_messages_call_the_source(tmp_path: Path) -> None:
    text = b"1 1:x\n"
    with pytest.raises(LibsvmError, match=r"^<input>, line 1"):
        list(LibsvmBlocks(io.BytesIO(text)))
    with pytest.raises(LibsvmError, match=r"^train\.txt, line 1"):
        list(LibsvmBlocks(io.BytesIO(text), name="train.txt"))
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(text))
    for source in (path, str(path), os.fsencode(path)):
        with pytest.raises(LibsvmError) as caught:
            load_libsvm(source)
        assert caught.value.file == str(path)


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="expected a path or a binary file, got int"):
        load_libsvm(3)
    with pytest.raises(FileNotFoundError):
        load_libsvm(tmp_path / "nothing")
    with pytest.raises(ValueError, match="block_bytes must be"):
        LibsvmBlocks(io.BytesIO(b""), 0)
