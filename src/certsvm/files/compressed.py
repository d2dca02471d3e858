"""The text of files that may be compressed, which their first bytes tell.

Consecutive streams, as parallel compressors write them, form one text. A stream that ends early, a
wrong checksum, and other data after the last stream, which may be the rest of the file, are errors.

Little is held in memory at a time, also of a hostile file that expands to many times its size.
"""

from __future__ import annotations

import bz2
import itertools
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

# Bytes of text that are decompressed at a time.
_TEXT = 1 << 15
# Most memory for decompressing xz: four times what `xz -9` needs.
_XZ_BYTES = 1 << 28


class DamagedFileError(ValueError):
    """A compressed file that cannot be decompressed to its end; the message names it."""


_MAGIC = {
    b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"
}  # fmt: skip
# What begins a stream; zstd is read by Arrow.
_STARTS: dict[str, Callable[[], Any]] = {
    "gzip": partial(zlib.decompressobj, 31),
    "bzip2": bz2.BZ2Decompressor,
    "xz": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _XZ_BYTES),
}


def compression_of(first: bytes) -> str | None:
    """The compression of a file that begins like this, if any.

    >>> compression_of(b"BZh91AY")
    'bzip2'
    >>> compression_of(b"+1 1:0.5")
    """
    return next((name for magic, name in _MAGIC.items() if first.startswith(magic)), None)


def text_of(file: Any, name: str, size: int = 1 << 16) -> Iterator[bytes]:
    """The bytes of a file in parts, decompressed if it is compressed.

    Parameters
    ----------
    file : binary file object
        Read once, from its current position; it need not be seekable.
    name : str
        Name of the file in error messages.
    size : int, default=65536
        Bytes that are read at a time.
    """
    parts, first = _parts(file, size), b""
    while len(first) < 6 and (part := next(parts, b"")):
        first += part
    parts, compression = itertools.chain([first], parts), compression_of(first)
    if compression is None:
        yield from parts
        return
    start = _STARTS.get(compression)
    try:
        yield from _zstd(parts) if start is None else _decompressed(parts, start)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # The file cannot be read.
        raise DamagedFileError(
            f"{name}: the {compression} stream is truncated or damaged, or something else follows "
            f"it ({error}). Copy or download the file again."
        ) from error


def _parts(file: Any, size: int) -> Iterator[bytes]:
    while data := file.read(size):
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError('a binary file is needed: open it with mode "rb"')
        yield bytes(data)


def _decompressed(parts: Iterator[bytes], start: Callable[[], Any]) -> Iterator[bytes]:
    """The text of consecutive streams, between which there may be zeros."""
    stream = None
    for data in parts:
        while data := data if stream else data.lstrip(b"\0"):
            stream = stream or start()
            text = b"..."
            while text and not stream.eof:
                text = stream.decompress(data, _TEXT)
                # zlib returns what it has not read, the others keep it.
                data = getattr(stream, "unconsumed_tail", b"")
                if text:
                    yield text
            if stream.eof:
                data, stream = stream.unused_data, None
    if stream is not None:
        raise EOFError("the stream ends early")


class _Parts:
    """A file object for Arrow."""

    closed = False

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest = parts, b""

    def read(self, size: int) -> bytes:
        data = self._rest or next(self._parts, b"")
        self._rest = data[size:]
        return data[:size]

    def close(self) -> None:
        """The caller does."""


def _zstd(parts: Iterator[bytes]) -> Iterator[bytes]:
    try:
        import pyarrow as pa
    except ImportError:
        what = "this file is compressed with zstd; to read it: pip install pyarrow"
        raise ModuleNotFoundError(what) from None
    stream = pa.input_stream(_Parts(parts), compression="zstd")
    # Arrow's read would leak its buffer if the stream is damaged.
    while text := stream.read_buffer(_TEXT).to_pybytes():
        yield text
