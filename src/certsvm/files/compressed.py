"""The bytes of a file, decompressed if it is compressed.

The first bytes of a file, not its name, decide how it is decompressed. Consecutive streams, as
parallel compressors write them, form one text. A stream that ends early, a wrong checksum, and
other data after the last stream, which may be the rest of the file, are errors.

Little is held in memory at a time, also of a hostile file that expands to many times its size.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

Readable = Any
"""A binary file object: anything with ``read(size) -> bytes``."""


class DamagedFileError(ValueError):
    """A compressed file that cannot be decompressed to its end.

    Attributes
    ----------
    file : str
        Its name.
    """

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file = file


class ByteSource(Protocol):
    """A source of bytes."""

    def read(self, size: int) -> bytes:
        """At least one byte and at most ``size``; none at the end."""
        ...


class _GzipStream:
    """zlib's decompressor with the interface of ``bz2.BZ2Decompressor``."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        # A full output may hide more, even if all input was consumed.
        return not (self._full or self._inner.unconsumed_tail)

    def decompress(self, data: bytes, most: int) -> bytes:
        text = self._inner.decompress(self._inner.unconsumed_tail + data, most)
        self._full = len(text) == most
        return text


class _ZstdStream:
    """zstandard's decompressor with the interface of ``bz2.BZ2Decompressor``."""

    needs_input = True

    def __init__(self) -> None:
        try:
            import zstandard
        except ImportError:
            raise ModuleNotFoundError(
                "this file is compressed with zstd; to read it: pip install zstandard"
            ) from None
        self._inner: Any = zstandard.ZstdDecompressor().decompressobj()
        self._error: type[Exception] = zstandard.ZstdError

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data)

    def decompress(self, data: bytes, most: int) -> bytes:
        try:
            return bytes(self._inner.decompress(data))
        except self._error as error:
            raise OSError(str(error)) from error


class _Format(NamedTuple):
    name: str
    magic: bytes
    stream: Callable[[], Any]
    padded: bool  # Whether zeros may follow a stream.
    expansion: int = 0  # The most bytes of text per byte, if the stream cannot limit its output.


_FORMATS = (
    _Format("gzip", b"\x1f\x8b", _GzipStream, padded=True),
    _Format("bzip2", b"BZh", bz2.BZ2Decompressor, padded=False),
    _Format("xz", b"\xfd7zXZ\x00", lzma.LZMADecompressor, padded=True),
    # A block takes four bytes at least and has 128 KiB of text at most.
    _Format("zstd", b"\x28\xb5\x2f\xfd", _ZstdStream, padded=False, expansion=1 << 15),
)
# Bytes of compressed data that are read at a time: fewer where their text could be too long, but
# not so few that reading is slow.
_MOST_READ, _LEAST_READ = 1 << 16, 1 << 8
_LONGEST_MAGIC = max(len(form.magic) for form in _FORMATS)


class _Pushback:
    """A file whose first bytes were read already and are given once more."""

    def __init__(self, file: Readable, first: bytes) -> None:
        self._file = file
        self._first = first

    def read(self, size: int) -> bytes:
        if self._first:
            head, self._first = self._first[:size], self._first[size:]
            return head
        return _read(self._file, size)


class _Decompressed:
    """The text of the streams in a compressed file."""

    def __init__(self, file: ByteSource, form: _Format, name: str) -> None:
        self._file = file
        self._form = form
        self._name = name
        self._stream: Any = form.stream()
        self._left = b""  # Decompressed text that was not asked for yet.
        self._rest = b""  # Compressed bytes after the end of a stream.

    def read(self, size: int) -> bytes:
        while not self._left:
            if self._stream.eof and not self._next_stream():
                return b""
            data = b""
            if self._stream.needs_input and not (data := self._compressed(size)):
                raise DamagedFileError(
                    self._name,
                    f"the {self._form.name} stream ends early: the file is truncated. "
                    "Copy or download it again.",
                )
            self._left = self._decompress(data, size)
        head, self._left = self._left[:size], self._left[size:]
        return head

    def _compressed(self, size: int = 0) -> bytes:
        """Compressed bytes, of which ``size`` bytes of text are wanted."""
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        if not self._form.expansion:
            return self._file.read(_MOST_READ)
        return self._file.read(min(max(size // self._form.expansion, _LEAST_READ), _MOST_READ))

    def _decompress(self, data: bytes, size: int) -> bytes:
        try:
            return bytes(self._stream.decompress(data, size))
        except (zlib.error, OSError, lzma.LZMAError) as error:
            raise DamagedFileError(
                self._name, f"the {self._form.name} stream is damaged ({error})"
            ) from error

    def _next_stream(self) -> bool:
        """Begin the next stream; False if there is none."""
        rest = self._stream.unused_data
        while True:
            if self._form.padded:
                rest = rest.lstrip(b"\0")
            if len(rest) >= len(self._form.magic) or not (more := self._compressed()):
                break
            rest += more
        if not rest:
            return False
        if not rest.startswith(self._form.magic):
            raise DamagedFileError(
                self._name,
                f"something else follows the {self._form.name} stream; the file is damaged",
            )
        self._rest = rest
        self._stream = self._form.stream()
        return True


def _read(file: Readable, size: int) -> bytes:
    data = file.read(size)
    if data is None:
        raise BlockingIOError("the file has no data yet; it must be in blocking mode")
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(
            f"a binary file is needed, but reading gave {type(data).__name__}; "
            'open it with mode "rb", or use sys.stdin.buffer'
        )
    return bytes(data)


def compression_of(first: bytes) -> str | None:
    """The compression of a file that begins like this, if any.

    >>> compression_of(b"BZh91AY")
    'bzip2'
    >>> compression_of(b"+1 1:0.5")
    """
    for form in _FORMATS:
        if first.startswith(form.magic):
            return form.name
    return None


def open_source(file: Readable, name: str) -> ByteSource:
    """The bytes of a file, decompressed if it is compressed.

    Parameters
    ----------
    file : binary file object
        Read once, from its current position; it need not be seekable.
    name : str
        Name of the file in error messages.
    """
    first = b""
    while len(first) < _LONGEST_MAGIC and (more := _read(file, _LONGEST_MAGIC - len(first))):
        first += more
    source = _Pushback(file, first)
    for form in _FORMATS:
        if form.name == compression_of(first):
            return _Decompressed(source, form, name)
    return source
