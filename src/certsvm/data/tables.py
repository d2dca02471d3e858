"""Tables: CSV and Parquet files, read a block at a time.

One column holds the labels and one may hold weights. All others must be numeric and become dense
rows. A value that is not a number is an error that names its row and column.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from certsvm.data.batch import Batch
from certsvm.data.compressed import compression_of
from certsvm.problem.rows import Vector

# Sizes of the first block of a CSV file, tried in turn until one holds the names and a row.
_FIRST_BLOCKS = (1 << 20, 1 << 24, 1 << 28)
_ARROW_NAMES = {"gzip": "gzip", "bzip2": "bz2", "zstd": "zstd", None: None}


class TableError(ValueError):
    """A table cannot be used; the message names the file and says why."""


class Table:
    """A CSV or Parquet file.

    Parameters
    ----------
    path : path
        The file. A CSV file may be compressed.
    label : str, default=None
        The column of labels; by default "label", or else the last column.
    weight : str, default=None
        The column of weights.
    header : bool, default=None
        Whether a CSV file has a line of names at the top. If not, the columns are called f0, f1,
        and so on. None means that it does, and a first line that looks like data is an error.
    features : sequence of str, default=None
        The feature columns, in this order; None means all other columns. If they are given without
        a label, the labels are in "label", or in the only other column, or missing.

    Attributes
    ----------
    feature_names : list of str
        The columns of the rows, in their order.
    label : str or None
        The column of labels, if there is one.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        label: str | None = None,
        weight: str | None = None,
        header: bool | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            start = file.read(8)
        self._parquet = start.startswith(b"PAR1")
        compression = None if self._parquet else compression_of(start)
        if compression not in _ARROW_NAMES:
            raise TableError(f"{self.path}: CSV compressed with {compression} cannot be read")
        self._compression = _ARROW_NAMES[compression]
        if self._parquet and header is not None:
            raise TableError(f"{self.path} is a Parquet file, which has names and no header")
        self._header = header
        self._types = self._schema()
        self.weight = weight
        self.label = self._label(label, features)
        self._refuse_unknown(features)
        others = [name for name in self._types if name not in (self.label, weight)]
        self.feature_names = others if features is None else list(features)
        if not self.feature_names:
            raise TableError(f"{self.path} has no columns besides {self.label!r}")
        self._refuse_non_numbers()

    def blocks(self, block_bytes: int) -> Iterator[Batch]:
        """All rows, in blocks of about this size. Missing labels are empty strings."""
        first = 0
        for batch in self._batches(block_bytes):
            if len(batch) == 0:
                continue
            X = np.empty((len(batch), len(self.feature_names)))
            for j, name in enumerate(self.feature_names):
                X[:, j] = self._numbers(batch.column(name), name, first)
            y = np.full(len(batch), "")
            if self.label is not None:
                y = self._labels(batch.column(self.label), self.label, first)
            yield Batch(X, y, self._weights(batch, first))
            first += len(batch)
        if first == 0:
            raise TableError(f"{self.path} has no rows")

    def in_type(self, X: NDArray[np.float64], dtype: Any) -> NDArray[np.floating[Any]]:
        """X as another float type; overflow is an error."""
        with np.errstate(over="ignore"):
            converted: NDArray[np.floating[Any]] = X.astype(dtype, copy=False)
        if not np.isfinite(converted).all():
            row, column = np.argwhere(~np.isfinite(converted))[0]
            raise TableError(
                f"{self.path}: {X[row, column]!r} in column {self.feature_names[column]!r} is too "
                f"large for {np.dtype(dtype).name}"
            )
        return converted

    def _label(self, label: str | None, features: Sequence[str] | None) -> str | None:
        if label is not None and label == self.weight:
            raise TableError(f"{self.path}: column {label!r} cannot hold labels and weights both")
        if label is not None or "label" in self._types:
            return label or "label"
        taken = {*(features or ()), self.weight}
        others = [name for name in self._types if name not in taken]
        if features is None:
            return others[-1] if others else None
        return others[0] if len(others) == 1 else None

    def _refuse_unknown(self, features: Sequence[str] | None) -> None:
        roles = [(self.label, "the labels"), (self.weight, "the weights")]
        for name, role in [*roles, *((name, "the model") for name in features or ())]:
            if name is not None and name not in self._types:
                names = list(self._types)
                shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
                raise TableError(f"{self.path} has no column {name!r} for {role}; it has {shown}")

    def _refuse_non_numbers(self) -> None:
        numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        for name in [*self.feature_names, *([self.weight] if self.weight else [])]:
            kind = self._types[name]
            if not any(is_kind(kind) for is_kind in numbers):
                raise TableError(
                    f"{self.path}: column {name!r} holds {kind}, not numbers. Encode it "
                    "(one-hot, say), or leave it out."
                )

    def _schema(self) -> dict[str, Any]:
        if self._parquet:
            with self._explained(), self._open() as file:
                schema = pa.parquet.read_schema(file)
        else:
            schema = self._csv_schema()
            if self._header is None:
                self._refuse_data_as_names(schema.names)
        if len(set(schema.names)) < len(schema.names):
            raise TableError(
                f"{self.path} has two columns of the same name. If the line of names is missing, "
                "say so: --no-header, or header=False."
            )
        return dict(zip(schema.names, schema.types, strict=True))

    def _refuse_data_as_names(self, names: Sequence[str]) -> None:
        """Raise if the first line holds numbers only, or one that counts nothing."""
        numbers = [name for name in names if _is_number(name)]
        if len(numbers) == len(names) or not all(name.isdecimal() for name in numbers):
            shown = ",".join(names)
            raise TableError(
                f"{self.path}: the first line, {shown[:60]!r}, looks like data, not like the names "
                "of columns. If there are no names, say --no-header (header=False): columns are "
                "then called f0, f1, and so on. If these are the names, say --header (header=True)."
            )

    def _csv_schema(self) -> Any:
        for size in _FIRST_BLOCKS:
            try:
                with self._csv(size) as reader:
                    if reader.read_next_batch().num_rows == 0:
                        raise StopIteration
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
        raise self._error(last)

    def _open(self) -> Any:
        """The file, read by Arrow itself.

        A file of Python's would be released by one of Arrow's threads, which needs the interpreter
        for it: if that is ending just then, the process aborts.
        """
        return pa.OSFile(os.fsencode(self.path))

    @contextmanager
    def _csv(self, block_bytes: int, types: dict[str, Any] | None = None) -> Iterator[Any]:
        options = pa.csv.ReadOptions(
            block_size=block_bytes,
            # Threads would read further blocks ahead.
            use_threads=False,
            autogenerate_column_names=self._header is False,
        )
        convert = pa.csv.ConvertOptions(column_types=types)
        with (
            self._open() as opened,
            pa.input_stream(opened, compression=self._compression) as stream,
            pa.csv.open_csv(stream, read_options=options, convert_options=convert) as reader,
        ):
            yield reader

    def _batches(self, block_bytes: int) -> Iterator[pa.RecordBatch]:
        with self._explained():
            if self._parquet:
                rows = max(1, block_bytes // (8 * len(self._types)))
                with self._open() as opened, pa.parquet.ParquetFile(opened) as file:
                    yield from file.iter_batches(batch_size=rows)
                return
            # The type of a column must not depend on how the file is cut.
            types = {n: pa.float64() for n in self._types if n != self.label}
            types |= {n: k for n, k in self._types.items() if pa.types.is_boolean(k)}
            used = {*self.feature_names, self.weight}
            for name, kind in self._types.items():
                if name not in used:
                    types[name] = pa.string() if pa.types.is_boolean(kind) else kind
            with self._csv(max(block_bytes // 2, 1 << 16), types) as reader:
                yield from reader

    def _weights(self, batch: pa.RecordBatch, first: int) -> Vector | None:
        if self.weight is None:
            return None
        weights = self._numbers(batch.column(self.weight), self.weight, first)
        if (weights < 0).any():
            row = first + int(np.argmax(weights < 0)) + 1
            raise TableError(f"{self.path}: row {row}, column {self.weight!r} is negative")
        return weights

    def _numbers(self, column: pa.Array, name: str, first: int) -> Vector:
        self._refuse_missing(column, name, first)
        with self._explained():
            values: Vector = np.asarray(column.cast(pa.float64()), dtype=np.float64)
        bad = ~np.isfinite(values)
        if bad.any():
            raise TableError(
                f"{self.path}: row {first + int(np.argmax(bad)) + 1}, column {name!r} is not finite"
            )
        return values

    def _labels(self, column: pa.Array, name: str, first: int) -> NDArray[Any]:
        self._refuse_missing(column, name, first)
        if pa.types.is_integer(column.type):
            with self._explained(f"column {name!r} of labels "):
                return np.asarray(column.cast(pa.int64()))
        if pa.types.is_floating(column.type):
            return self._numbers(column, name, first)
        return np.array([str(label) for label in column.to_pylist()])

    def _refuse_missing(self, column: pa.Array, name: str, first: int) -> None:
        if column.null_count:
            missing = np.asarray(column.is_null())
            raise TableError(
                f"{self.path}: row {first + int(np.argmax(missing)) + 1}, column {name!r} is "
                "missing. Fill in such values, or remove the rows."
            )

    @contextmanager
    def _explained(self, what: str = "") -> Iterator[None]:
        """Turn errors of Arrow into errors that name the file."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise self._error(error, what) from None

    def _error(self, error: Exception, what: str = "") -> TableError:
        return TableError(f"{self.path}: {what}cannot be read: {error}")


def _is_number(text: str) -> bool:
    try:
        # Python takes underscores between digits, which names may have.
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False
