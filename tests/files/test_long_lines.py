"""A line without an end is refused before it fills the memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from certsvm.files import LibsvmError, load_libsvm
from certsvm.files.libsvm import LibsvmBlocks
from certsvm.files.tables import Table, TableError

START = b"1 1:1\n\n-1 2:1\n"


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 MB of digits, in two megabytes."""
    folder, digits = tmp_path_factory.mktemp("endless"), b"1" * (1 << 20)
    for name, start in (("text.gz", START + b"1 1:"), ("t.csv.gz", b"a,label\n1,1\n-1,0\n"),
                        ("head.csv.gz", b"")):  # fmt: skip
        with gzip.open(folder / name, "wb", compresslevel=1) as file:
            file.write(start)
            for _ in range(400):
                file.write(digits)
    return folder


def test_compressed_text(endless: Path) -> None:
    for read in (load_libsvm, lambda path: list(LibsvmBlocks(path))):
        with pytest.raises(LibsvmError, match=r"text\.gz, line 4, column 1: .* longer than 268"):
            read(endless / "text.gz")


def test_plain_text(tmp_path: Path) -> None:
    """The file is sparse on the disk."""
    with (tmp_path / "text").open("wb") as file:
        file.write(START)
        file.truncate(1 << 29)
    with pytest.raises(LibsvmError, match=r"text, line 4, column 1: .* longer than 268"):
        load_libsvm(tmp_path / "text")


@pytest.mark.parametrize("name", ["t.csv.gz", "head.csv.gz"])
def test_csv(name: str, endless: Path) -> None:
    with pytest.raises(TableError, match=r"csv\.gz: a row is longer than"):
        list(Table(endless / name)())
