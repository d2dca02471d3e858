"""Tables: CSV and Parquet files, read a block at a time.

One column holds the labels and one may hold weights. All others are features: numbers, or strings
that become one-hot.

Arrow opens the files itself. A file of Python's would be released by one of Arrow's threads, which
needs the interpreter for it: if that is ending just then, the process aborts.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from certsvm.files.batch import Batch
from certsvm.files.columns import Columns, TableError, explained, is_too_long
from certsvm.files.compressed import compression_of
from certsvm.files.memory import LARGEST_BLOCK

_LEARNING_BYTES = 4_000_000
# Separators that are detected, in the order of preference.
_SEPARATORS = (",", "\t", ";")
# Sizes of the first block of CSV, tried in turn until one holds the names and a row. The last is
# the most bytes that a row may have.
_FIRST_BLOCKS = (1 << 20, 1 << 24, 1 << 28)
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


class Table(Columns):
    """A CSV or Parquet file, opened anew for each pass.

    Parameters
    ----------
    path : path
        The file. A CSV file may be compressed with gzip, bzip2 or zstd.
    header : bool, default=None
        Whether a CSV file has a line of names at the top. If not, the columns are called f0, f1,
        and so on. None means that it does, and a first line that looks like data is an error.
    separator : str, default=None
        The character between the values of a CSV file; None means the one of comma, tab and
        semicolon that is the most frequent in the first line.
    label : str, default=None
        The column of labels; by default "label", or else the last column.
    weight : str, default=None
        The column of weights.
    categorical : bool, default=False
        Whether columns of strings become one-hot, which takes a reading of their values. If not,
        they are an error.
    **roles
        ``features``, ``n_features``, ``ignore``, ``columns``, ``complete`` and ``usual_label``, as
        for ``Columns``.

    Attributes
    ----------
    features : Features
        The features.
    feature_names : list of str
        Their names.
    label, weight : str or None
        The columns of labels and weights, if there are any.
    ignored : list of str
        The columns that are not read.
    notes : list of str
        Remarks about the columns.
    origin : dict
        What a model has to know of the table.
    unseen : Counter
        How many values of each one-hot column were not among those of ``features``, so far.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_text("age;eyes;label" + chr(10) + "3;blue;1" + chr(10) + "4;brown;0")
    >>> table = Table(path, categorical=True)
    >>> table.feature_names, [(batch.X.toarray().tolist(), batch.y.tolist()) for batch in table()]
    (['age', 'eyes=blue', 'eyes=brown'], [([[3.0, 1.0, 0.0], [4.0, 0.0, 1.0]], [1, 0])])
    """

    is_parsed = True

    def __init__(
        self, path: str | os.PathLike[str], *, header: bool | None = None,
        separator: str | None = None, **roles: Any,
    ) -> None:  # fmt: skip
        self.path, self._header = Path(path), header
        with self.path.open("rb") as file:
            start = file.read(8)
        self._is_parquet, compression = start.startswith(b"PAR1"), compression_of(start)
        self._compression = "bz2" if compression == "bzip2" else compression
        if self._is_parquet and (header, separator) != (None, None):
            raise TableError(f"{path} is a Parquet file, which has no header and no separator")
        with explained(str(self.path)):
            if self._is_parquet:
                with self._opened() as opened, pa.parquet.ParquetFile(opened) as file:
                    schema = file.schema_arrow
            else:
                self._separator = self._first_separator() if separator is None else separator
                schema = self._inferred()
        super().__init__(str(self.path), schema, **roles)
        if self.learnt:
            self.learn(self._batches(_LEARNING_BYTES, self.strings))

    def blocks(self, block_bytes: int = LARGEST_BLOCK, dtype: Any = np.float64) -> Iterator[Batch]:
        """All rows, in blocks of about this size. Missing labels are empty strings."""
        first = 0
        for batch in self._batches(block_bytes, self.used):
            if len(batch) == 0:
                continue
            yield self.rows(batch, first, dtype)
            first += len(batch)
        if first == 0:
            raise TableError(f"{self.path} has no rows")

    __call__ = blocks

    def _batches(self, block_bytes: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # The type of a column of CSV must not depend on how the file is cut.
        types = dict.fromkeys(self.strings, pa.string())
        for name in self.numbers:
            kind = self._types[name]
            types[name] = kind if pa.types.is_boolean(kind) else pa.float64()
        if self.label is not None:
            kind = self._types[self.label]
            as_text = pa.types.is_boolean(kind) or pa.types.is_floating(kind)
            types.setdefault(self.label, pa.string() if as_text else kind)
        with explained(str(self.path)), self._opened() as opened:
            if self._is_parquet:
                rows = max(1, block_bytes // (8 * len(self._types)))
                with pa.parquet.ParquetFile(opened) as file:
                    yield from file.iter_batches(batch_size=rows, columns=list(columns))
            else:
                size = max(block_bytes // 2, self._least_block)
                with self._csv(opened, size, columns, types) as reader:
                    yield from reader

    def _opened(self) -> Any:
        """The file, as Arrow reads it; text is decompressed."""
        file = pa.OSFile(os.fsencode(self.path))
        return file if self._is_parquet else pa.input_stream(file, compression=self._compression)

    def _first_separator(self) -> str:
        """The separator that the first line has most of."""
        with self._opened() as stream:
            # Arrow's read would leak its buffer if the stream is damaged.
            start = stream.read_buffer(_FIRST_BLOCKS[0]).to_pybytes()
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError("this is UTF-16, not UTF8")
        start = start.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
        # What is between quotes is in a name.
        line = b"".join(start.partition(b"\n")[0].split(b'"')[::2]).decode("latin-1")
        return max(_SEPARATORS, key=line.count)

    def _inferred(self) -> pa.Schema:
        """Names and types of the columns of CSV, as the first block shows them."""
        for size in _FIRST_BLOCKS:
            self._least_block = size
            try:
                with self._opened() as stream, self._csv(stream, size) as reader:
                    if not (first := next(reader, None)):
                        break
            except pa.ArrowInvalid as error:
                if is_too_long(error) and size < _FIRST_BLOCKS[-1]:
                    continue
                raise
            if pa.binary() in first.schema.types:
                raise pa.ArrowInvalid("invalid UTF8 data")
            names = first.schema.names
            numbers = [name for name in names if _NUMBER.fullmatch(name)]
            # Numbers only, or one that counts nothing.
            is_data = len(numbers) == len(names) or not all(name.isdecimal() for name in numbers)
            if is_data and self._header is None:
                raise TableError(
                    f"{self.path}: the first line, {self._separator.join(names)[:60]!r}, looks "
                    "like data, not like the names of columns. If it is data, say --no-header "
                    "(header=False); if these are the names, say --header (header=True)."
                )
            return first.schema
        raise TableError(f"{self.path} has no rows")

    def _csv(
        self, stream: Any, block_bytes: int, columns: Sequence[str] = (),
        types: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        if len(self._separator) != 1 or self._separator in '\r\n"':
            raise TableError(f"a separator is one character, not {self._separator!r}")
        options = pa.csv.ReadOptions(
            block_size=block_bytes,
            # Threads would read further blocks ahead.
            use_threads=False,
            autogenerate_column_names=self._header is False,
        )
        parse = pa.csv.ParseOptions(delimiter=self._separator)
        convert = pa.csv.ConvertOptions(column_types=types, include_columns=list(columns))
        return pa.csv.open_csv(stream, options, parse, convert)
