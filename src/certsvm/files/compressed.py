"""What a file holds, by its first bytes: its kind, and its text if that is compressed.

Consecutive streams, as parallel compressors write them, form one text. A stream that ends early, a
wrong checksum, and other data after the last stream, which may be the rest of the file, are errors.

Little is held in memory at a time, also of a hostile file that expands to many times its size.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

Readable = Any
"""A binary file object: anything with ``read(size) -> bytes``, which is empty at the end only."""

CSV_ENDINGS = tuple(
    name + packed for name in (".csv", ".tsv") for packed in ("", ".gz", ".bz2", ".zst")
)
# Bytes that are read at a time, and bytes of text.
_READ, _TEXT = 1 << 16, 1 << 15
# Most memory for decompressing xz: four times what `xz -9` needs.
_XZ_BYTES = 1 << 28


class DamagedFileError(ValueError):
    """A compressed file that cannot be decompressed to its end; the message names it."""


class _Source:
    """A file of the caller's, whose first bytes are known."""

    closed = False

    def __init__(self, file: Readable) -> None:
        self._file, self._unread, self.first = file, b"", b""
        while (left := _LONGEST_MAGIC - len(self.first)) and (more := self.read(left)):
            self.first += more
        self._unread = self.first

    def read(self, size: int) -> bytes:
        if self._unread:
            data, self._unread = self._unread[:size], self._unread[size:]
            return data
        data = self._file.read(size)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError('a binary file is needed: open it with mode "rb"')
        return bytes(data)

    def close(self) -> None:
        """The caller does."""


class _Streams:
    """The text of consecutive streams.

    The standard library's files of bzip2 and xz drop what follows the first stream, without a word,
    if it is damaged.
    """

    def __init__(self, start: Callable[[], Any], padding: bytes, file: Readable) -> None:
        self._start, self._padding, self._file = start, padding, file
        self._stream = start()

    def read1(self, size: int) -> bytes:
        while True:
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data.lstrip(self._padding)
                while not data and (more := self._file.read(_READ)):
                    data = more.lstrip(self._padding)
                if not data:
                    return b""
                self._stream = self._start()
            elif self._stream.needs_input and not (data := self._file.read(_READ)):
                raise EOFError("the stream ends early")
            if text := self._stream.decompress(data, size):
                return bytes(text)


def _zstd(file: Readable) -> Callable[[int], Any]:
    """By Arrow, whose ``read`` leaks its buffer if the stream is damaged."""
    try:
        import pyarrow as pa
    except ImportError:
        what = "this file is compressed with zstd; to read it: pip install pyarrow"
        raise ModuleNotFoundError(what) from None
    return pa.input_stream(file, compression="zstd").read_buffer  # type: ignore[no-any-return]


_xz = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _XZ_BYTES)
# By the first bytes: the name, and what begins to read the text.
_FORMATS: dict[bytes, tuple[str, Callable[[Any], Callable[[int], Any]]]] = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(None, "rb", 9, file).read1),
    b"BZh": ("bzip2", lambda file: _Streams(bz2.BZ2Decompressor, b"", file).read1),
    b"\xfd7zXZ\x00": ("xz", lambda file: _Streams(_xz, b"\0", file).read1),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
_LONGEST_MAGIC = max(map(len, _FORMATS))


class _Decompressed:
    """A file object of text; what goes wrong names the file."""

    def __init__(self, read: Callable[[int], Any], name: str, compression: str) -> None:
        self._read, self._name, self._compression = read, name, compression

    def read(self, size: int) -> bytes:
        try:
            return bytes(self._read(min(size, _TEXT)))
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # The file cannot be read.
            raise DamagedFileError(
                f"{self._name}: the {self._compression} stream is truncated or damaged, or "
                f"something else follows it ({error}). Copy or download the file again."
            ) from error


def compression_of(first: bytes) -> str | None:
    """The compression of a file that begins like this, if any.

    >>> compression_of(b"BZh91AY")
    'bzip2'
    >>> compression_of(b"+1 1:0.5")
    """
    return next((name for magic, (name, _) in _FORMATS.items() if first.startswith(magic)), None)


def kind_of(path: str | os.PathLike[str]) -> str:
    """One of "blocks", "table" and "text"; the name tells CSV from text.

    Pipes are text: bytes read from them to find out would be lost.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return "text"
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"ARROW1"):
        return "blocks"
    if start.startswith(b"PAR1") or os.fspath(path).lower().endswith(CSV_ENDINGS):
        return "table"
    return "text"


def open_source(file: Readable, name: str) -> Readable:
    """The bytes of a file, decompressed if it is compressed.

    Parameters
    ----------
    file : binary file object
        Read once, from its current position; it need not be seekable.
    name : str
        Name of the file in error messages.
    """
    source = _Source(file)
    for magic, (compression, opened) in _FORMATS.items():
        if source.first.startswith(magic):
            return _Decompressed(opened(source), name, compression)
    return source
