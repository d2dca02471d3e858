"""Kinds of files; compressed text comes back, or the damage is an error, in little memory."""

import bz2
import gzip
import io
import lzma
import os
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from certsvm.files import DamagedFileError, LibsvmBlocks, LibsvmError, load_libsvm
from certsvm.files.block_sources import kind_of
from certsvm.files.compressed import compression_of, text_of
from certsvm.files.tables import Table, TableError

LINES = [f"{k % 3 - 1} 1:{k} {k + 2}:{k / 7!r}\n".encode() for k in range(3000)]
TEXT = b"".join(LINES)

zstandard = pytest.importorskip("zstandard")


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}
every_compression = pytest.mark.parametrize("name", COMPRESSIONS)


def everything(data: bytes, size: int) -> bytes:
    return b"".join(text_of(io.BytesIO(data), "data", size))


KINDS: list[Any] = [
    ("a", b"ARROW1\0\0", "blocks"),
    ("a.txt", b"PAR1...", "table"),
    ("a.csv", b"a,b\n", "table"),
    ("a.CSV.gz", b"\x1f\x8b", "table"),
    ("a.csv.txt", b"1 1:1\n", "text"),
    ("a.arrow", b"1 1:1\n", "text"),
    ("a.parquet", b"", "text"),
]


@pytest.mark.parametrize(("name", "content", "kind"), KINDS)
def test_kinds(name: str, content: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert kind_of(str(tmp_path / name)) == kind


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert kind_of(tmp_path / "pipe.csv") == "text"


@every_compression
def test_the_text_comes_back(name: str) -> None:
    compress = COMPRESSIONS[name]
    assert compression_of(compress(TEXT)) == name
    assert everything(compress(TEXT) * 2, 1000) == TEXT * 2
    assert everything(compress(TEXT[:200]), 1) == TEXT[:200]
    assert everything(b"".join(map(compress, LINES)), 1 << 20) == TEXT


@every_compression
def test_every_truncation_is_noticed(name: str) -> None:
    data = COMPRESSIONS[name](TEXT[:100])
    magic = {"gzip": 2, "bzip2": 3, "xz": 6, "zstd": 4}[name]
    for length in range(1, len(data)):
        for whole in [data] + [b""] * (length >= magic):
            with pytest.raises(DamagedFileError, match=r"data: .* is truncated or damaged"):
                everything(whole + data[:length], 64)


@every_compression
@pytest.mark.parametrize("rest", [b"1 1:1\n", b"x"])
def test_something_behind_the_stream(name: str, rest: bytes) -> None:
    with pytest.raises(DamagedFileError, match="or something else follows"):
        everything(COMPRESSIONS[name](TEXT) + rest, 1000)


@every_compression
def test_flipped_bits_never_give_another_text(name: str) -> None:
    data = COMPRESSIONS[name](TEXT[:60])
    noticed = 0
    for position in range(6, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        try:
            # A header may hold bits that do not matter, such as a time.
            assert everything(bytes(damaged), 64) == TEXT[:60]
        except DamagedFileError:
            noticed += 1
    assert noticed > len(data) // 2


@every_compression
def test_reading_does_not_go_by_the_name(name: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.gz", tmp_path / "packed.txt"
    plain.write_bytes(TEXT)
    packed.write_bytes(COMPRESSIONS[name](TEXT))
    X, y = load_libsvm(plain)
    for source in (packed, io.BytesIO(packed.read_bytes())):
        Z, z = load_libsvm(source, n_jobs=2)
        np.testing.assert_array_equal(X.toarray(), Z.toarray())
        np.testing.assert_array_equal(y, z)


@every_compression
@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_what_comes_before_the_damage(name: str, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "data"
    noise = b"# " + np.random.default_rng(0).integers(97, 123, 10**6, dtype=np.uint8).tobytes()
    path.write_bytes(COMPRESSIONS[name](b"1 1:x\n" + noise)[:-10_000])
    with pytest.raises(LibsvmError, match="data, line 1, column 5"):
        list(LibsvmBlocks(path, block_bytes))


def test_a_text_file_is_refused() -> None:
    with pytest.raises(TypeError, match="binary"):
        load_libsvm(io.StringIO("1 1:1\n"))


def test_a_disk_that_fails_is_no_damage() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 100:
                raise OSError(5, "Input/output error")
            return super().read(min(size or 0, 100))

    for name, compress in COMPRESSIONS.items():
        with pytest.raises(OSError, match="Input/output error"):
            list(text_of(Failing(compress(TEXT)), name))


@every_compression
def test_text_that_expands_greatly_does_not_fill_the_memory(name: str) -> None:
    data = COMPRESSIONS[name](bytes(1 << 27))
    tracemalloc.start()
    pooled = pa.total_allocated_bytes()
    try:
        source = text_of(io.BytesIO(data), "zeros")
        for _ in range(2000):
            assert set(next(source)) == {0}
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak + pa.total_allocated_bytes() - pooled < 10**7


def test_a_dictionary_of_gigabytes_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    made = bytearray(lzma.compress(TEXT, filters=filters))
    # A byte of the block's header says the size; the header ends in its own checksum.
    end = 12 + 4 * made[12]
    made[made.index(b"\x21\x01") + 2] = 36
    made[end : end + 4] = zlib.crc32(made[12:end]).to_bytes(4, "little")
    with pytest.raises(DamagedFileError, match=r"[Mm]emory"):
        everything(bytes(made), 1000)


START = b"1 1:1\n\n-1 2:1\n"


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 MB of digits, in two megabytes."""
    folder, digits = tmp_path_factory.mktemp("endless"), b"1" * (1 << 20)
    starts = {"text.gz": START + b"1 1:", "t.csv.gz": b"a,label\n1,1\n-1,0\n", "head.csv.gz": b""}
    for name, start in starts.items():
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
    with pytest.raises(TableError, match=r"csv\.gz.*a row is longer than a block"):
        list(Table(endless / name)())
