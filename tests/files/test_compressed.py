import bz2
import gzip
import io
import lzma
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from certsvm.files import DamagedFileError, LibsvmBlocks, LibsvmError, load_libsvm
from certsvm.files.compressed import compression_of, open_source

zstandard = pytest.importorskip("zstandard")

LINES = [f"{k % 3 - 1} 1:{k} {k + 2}:{k / 7!r}\n".encode() for k in range(3000)]
TEXT = b"".join(LINES)

Compress = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


COMPRESSIONS: dict[str, Compress] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}
every_compression = pytest.mark.parametrize("name", COMPRESSIONS)


def everything(data: bytes, size: int) -> bytes:
    source = open_source(io.BytesIO(data), "data")
    text = b""
    while some := source.read(size):
        assert len(some) <= size
        text += some
    return text


@every_compression
@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_the_text_comes_back(name: str, size: int) -> None:
    data = COMPRESSIONS[name](TEXT)
    assert compression_of(data) == name
    assert everything(data, size) == TEXT
    assert everything(data + data, size) == TEXT * 2


@every_compression
def test_single_bytes(name: str) -> None:
    assert everything(COMPRESSIONS[name](TEXT[:200]), 1) == TEXT[:200]


def test_plain_text_of_any_length() -> None:
    for length in range(10):
        assert everything(TEXT[:length], 3) == TEXT[:length]


@every_compression
def test_a_file_of_thousands_of_streams(name: str) -> None:
    compress = COMPRESSIONS[name]
    assert everything(b"".join(compress(line) for line in LINES), 1 << 16) == TEXT


@every_compression
def test_every_truncation_is_noticed(name: str) -> None:
    data = COMPRESSIONS[name](TEXT[:100])
    magic = {"gzip": 2, "bzip2": 3, "xz": 6, "zstd": 4}[name]
    for length in range(magic, len(data)):
        with pytest.raises(DamagedFileError, match=r"data: .* ends early: the file is truncated"):
            everything(data[:length], 64)


@every_compression
def test_something_behind_the_stream(name: str) -> None:
    data = COMPRESSIONS[name](TEXT)
    for rest in (b"1 1:1\n", b"x"):
        with pytest.raises(DamagedFileError, match="something else follows"):
            everything(data + rest, 1000)


@pytest.mark.parametrize("name", ["gzip", "xz"])
def test_zeros_may_follow_where_the_format_has_padding(name: str) -> None:
    data = COMPRESSIONS[name](TEXT)
    assert everything(data + b"\0" * 100_000 + data + b"\0" * 8, 1000) == TEXT * 2


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
@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_reading_does_not_go_by_the_name(name: str, block_bytes: int, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.gz", tmp_path / "packed.txt"
    plain.write_bytes(TEXT)
    packed.write_bytes(COMPRESSIONS[name](TEXT))
    X, y = load_libsvm(plain)
    for source in (packed, io.BytesIO(packed.read_bytes())):
        Z, z = load_libsvm(source, n_jobs=2)
        np.testing.assert_array_equal(X.data, Z.data)
        np.testing.assert_array_equal(X.indices, Z.indices)
        np.testing.assert_array_equal(X.indptr, Z.indptr)
        np.testing.assert_array_equal(y, z)
        assert X.shape == Z.shape
    blocks = list(LibsvmBlocks(packed, block_bytes))
    np.testing.assert_array_equal(np.concatenate([b.X.data for b in blocks]), X.data)


@every_compression
@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_what_comes_before_the_damage_is_judged_first(
    name: str, block_bytes: int, tmp_path: Path
) -> None:
    path = tmp_path / "data"
    rng = np.random.default_rng(0)
    noise = b"# " + rng.integers(97, 123, 200_000, dtype=np.uint8).tobytes() + b"\n"
    path.write_bytes(COMPRESSIONS[name](TEXT + noise)[:-10_000])
    with pytest.raises(DamagedFileError, match="truncated"):
        list(LibsvmBlocks(path, block_bytes))
    path.write_bytes(COMPRESSIONS[name](b"1 1:x\n" + noise * 8)[:-10_000])
    with pytest.raises(LibsvmError, match="data, line 1, column 5"):
        list(LibsvmBlocks(path, block_bytes))


def test_without_the_zstandard_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ModuleNotFoundError, match="pip install zstandard"):
        load_libsvm(io.BytesIO(zstd(TEXT)))


def test_a_text_file_is_refused() -> None:
    with pytest.raises(TypeError, match="binary"):
        load_libsvm(io.StringIO("1 1:1\n"))


def test_a_file_without_data_yet() -> None:
    class Silent(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> None:
            return None

    with pytest.raises(BlockingIOError, match="blocking mode"):
        load_libsvm(Silent())


@every_compression
def test_text_that_expands_greatly_does_not_fill_the_memory(name: str) -> None:
    data = COMPRESSIONS[name](bytes(1 << 28))
    tracemalloc.start()
    try:
        source = open_source(io.BytesIO(data), "zeros")
        for _ in range(20):
            assert set(source.read(1 << 20)) == {0}
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * 10**7
