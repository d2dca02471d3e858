"""CSV files, plain or compressed, as Arrow's record batches."""

from __future__ import annotations

import codecs
import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from certsvm.files.columns import TableError, open_for_arrow
from certsvm.files.compressed import compression_of

SEPARATORS = (",", "\t", ";")
"""Separators that are detected, in the order of preference."""

# Sizes of the first block, tried in turn until one holds the names and a row. The last is the most
# bytes that a row may have.
_FIRST_BLOCKS = (1 << 20, 1 << 24, 1 << 28)
_ARROW_NAMES = {"gzip": "gzip", "bzip2": "bz2", "zstd": "zstd", None: None}


class CsvFile:
    """A CSV file.

    Parameters
    ----------
    path : path
        The file, plain or compressed with gzip, bzip2 or zstd.
    header : bool, default=None
        Whether it begins with a line of names. If not, the columns are called f0, f1, and so on.
        None means that it does, and a first line that looks like data is an error.
    separator : str, default=None
        The character between values. None means the one of comma, tab and semicolon that is the
        most frequent in the first line.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns, as the first rows show them.
    """

    def __init__(
        self, path: Path, *, header: bool | None = None, separator: str | None = None
    ) -> None:
        self.path = path
        with path.open("rb") as file:
            compression = compression_of(file.read(8))
        if compression not in _ARROW_NAMES:
            raise TableError(f"{path}: CSV compressed with {compression} cannot be read")
        self._compression = _ARROW_NAMES[compression]
        self._header = header
        if separator is not None and (len(separator) != 1 or separator in '\r\n"'):
            raise TableError(f"a separator is one character, not {separator!r}")
        self._refuse_other_encodings(_FIRST_BLOCKS[0])
        self.separator = separator or self._detected()
        self._row_bytes = 0
        self.schema = self._schema()
        if header is None:
            self._refuse_data_as_names(self.schema.names)

    def batches(
        self, block_bytes: int, columns: Sequence[str], types: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of all rows, with these types."""
        block_bytes = max(block_bytes // 2, 1 << 16, self._row_bytes)
        try:
            with self._opened(block_bytes, columns, types) as reader:
                yield from reader
        except pa.ArrowInvalid as error:
            raise self._error(error, block_bytes) from None

    def _detected(self) -> str:
        try:
            with self._stream() as stream:
                start = stream.read(_FIRST_BLOCKS[0])
        except (pa.ArrowException, OSError) as error:
            raise self._error(error) from None
        line = start.decode("utf-8", "replace").lstrip("\ufeff").partition("\n")[0]
        # What is between quotes is in a name.
        bare = "".join(line.split('"')[::2])
        if ".tsv" in self.path.name.lower() and "\t" in bare:
            return "\t"
        return max(SEPARATORS, key=bare.count)

    def _refuse_data_as_names(self, names: Sequence[str]) -> None:
        """Raise if the first line holds numbers only, or one that counts nothing."""
        numbers = [name for name in names if _is_number(name)]
        if len(numbers) == len(names) or not all(name.isdecimal() for name in numbers):
            shown = self.separator.join(names)
            raise TableError(
                f"{self.path}: the first line, {shown[:60]!r}, looks like data, not like the names "
                "of columns. If there are no names, say --no-header (header=False): columns are "
                "then called f0, f1, and so on. If these are the names, say --header (header=True)."
            )

    def _schema(self) -> Any:
        for size in _FIRST_BLOCKS:
            try:
                with self._opened(size) as reader:
                    if reader.read_next_batch().num_rows == 0:
                        raise StopIteration
                    if size > _FIRST_BLOCKS[0]:
                        self._row_bytes = size
                    return reader.schema
            except StopIteration:
                raise TableError(f"{self.path} has no rows") from None
            except pa.ArrowInvalid as error:
                # A row, or the line of names, may be longer than the block.
                last = error
            except (pa.ArrowException, OSError) as error:
                raise self._error(error) from None
            if self.path.stat().st_size <= size and self._compression is None:
                break
        raise self._error(last, size)

    @contextmanager
    def _opened(
        self, block_bytes: int, columns: Sequence[str] = (), types: dict[str, Any] | None = None
    ) -> Iterator[Any]:
        options = pa.csv.ReadOptions(
            block_size=block_bytes,
            # Threads would read further blocks ahead.
            use_threads=False,
            autogenerate_column_names=self._header is False,
        )
        parse = pa.csv.ParseOptions(delimiter=self.separator)
        convert = pa.csv.ConvertOptions(column_types=types, include_columns=list(columns))
        with (
            self._stream() as stream,
            pa.csv.open_csv(
                stream, read_options=options, parse_options=parse, convert_options=convert
            ) as reader,
        ):
            yield reader

    @contextmanager
    def _stream(self) -> Iterator[Any]:
        with (
            open_for_arrow(self.path) as opened,
            pa.input_stream(opened, compression=self._compression) as stream,
        ):
            yield stream

    def _error(self, error: Exception, block_bytes: int = 0) -> TableError:
        text = str(error)
        if "straddling" in text or (block_bytes == _FIRST_BLOCKS[-1] and "Empty CSV" in text):
            limit = min(block_bytes, _FIRST_BLOCKS[-1])
            return TableError(
                f"{self.path}: a row is longer than {limit / 1e6:.1f} MB, the longest that is read "
                "here. Is it a file of lines, and not damaged?"
            )
        if "UTF8" in text:
            self._refuse_other_encodings()
        return TableError(f"{self.path}: cannot be read: {error}")

    def _refuse_other_encodings(self, most: int | None = None) -> None:
        """Raise, with the line, if the text, or its first bytes, are not UTF-8."""
        decoder, line, n_bytes = codecs.getincrementaldecoder("utf-8")(), 1, 0
        try:
            with self._stream() as stream:
                while n_bytes != most and (data := stream.read(_FIRST_BLOCKS[0])):
                    decoder.decode(data)
                    line += data.count(b"\n")
                    n_bytes += len(data)
            decoder.decode(b"", final=n_bytes != most)
        except UnicodeDecodeError as error:
            text = error.object
            line += text.count(b"\n", 0, error.start)
            utf16 = line == 1 and text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            name = self.path.name
            raise TableError(
                f"{self.path}, line {line}: {text[error.start : error.start + 1]!r} is not UTF-8. "
                "Convert the text, for example from "
                + ("UTF-16: iconv -f UTF-16" if utf16 else "Latin-1: iconv -f LATIN1")
                + f" -t UTF-8 {shlex.quote(name)} > {shlex.quote('utf8-' + name)}"
                + (" (decompress it first)" if self._compression else "")
            ) from None
        except (pa.ArrowException, OSError) as error:
            raise self._error(error) from None


def _is_number(text: str) -> bool:
    try:
        # Python takes underscores between digits, which names may have.
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False
