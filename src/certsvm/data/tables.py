"""Rows from tables: CSV and Parquet files, a block at a time.

One column holds the labels, one may hold weights; all others must be numbers, and become dense
rows. What cannot be a number is an error that names the row and the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from certsvm.data.shuffle import Rows
from certsvm.rows import Vector


class TableError(ValueError):
    """A table that cannot be used, with the file's name and what is wrong."""


class Table:
    """A CSV or Parquet file.

    Parameters
    ----------
    path : path
        The file. A CSV file has a line of names at the top.
    label : str, default=None
        The column of labels; None means the one called "label", or else the last one.
    weight : str, default=None
        The column of weights.

    Attributes
    ----------
    feature_names : list of str
        The other columns, in their order.
    """

    def __init__(
        self, path: str | Path, *, label: str | None = None, weight: str | None = None
    ) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            self._parquet = file.read(4) == b"PAR1"
        names, types = self._schema()
        if label is None:
            label = "label" if "label" in names else names[-1]
        for name, role in ((label, "labels"), (weight, "weights")):
            if name is not None and name not in names:
                shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
                raise TableError(
                    f"{self.path} has no column {name!r} for the {role}; it has {shown}"
                )
        self.label, self.weight = label, weight
        self.feature_names = [name for name in names if name not in (label, weight)]
        if not self.feature_names:
            raise TableError(f"{self.path} has no columns besides {label!r}")
        numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        for name, kind in zip(names, types, strict=True):
            if name != label and not any(is_kind(kind) for is_kind in numbers):
                raise TableError(
                    f"{self.path}: column {name!r} holds {kind}, not numbers. Encode it "
                    "(one-hot, say), or leave it out."
                )

    def blocks(self, block_bytes: int) -> Iterator[Rows]:
        """All rows, in blocks of about this size."""
        first = 0
        for batch in self._batches(block_bytes):
            if len(batch) == 0:
                continue
            X = np.empty((len(batch), len(self.feature_names)))
            for j, name in enumerate(self.feature_names):
                X[:, j] = self._numbers(batch.column(name), name, first)
            y = self._labels(batch.column(self.label), first)
            weights = None
            if self.weight is not None:
                weights = self._numbers(batch.column(self.weight), self.weight, first)
            yield Rows(X, y, weights)
            first += len(batch)
        if first == 0:
            raise TableError(f"{self.path} has no rows")

    def _schema(self) -> tuple[list[str], list[Any]]:
        try:
            if self._parquet:
                schema = pa.parquet.read_schema(self.path)
            else:
                with pa.csv.open_csv(self.path) as reader:
                    schema = reader.schema
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise TableError(f"{self.path} cannot be read: {error}") from None
        if len(set(schema.names)) < len(schema.names):
            raise TableError(f"{self.path} has two columns of the same name")
        return list(schema.names), list(schema.types)

    def _batches(self, block_bytes: int) -> Iterator[pa.RecordBatch]:
        try:
            if self._parquet:
                rows = max(1, block_bytes // (8 * len(self.feature_names)))
                with pa.parquet.ParquetFile(self.path) as file:
                    yield from file.iter_batches(batch_size=rows)
            else:
                # Threads would read further blocks ahead.
                options = pa.csv.ReadOptions(
                    block_size=max(block_bytes // 2, 1 << 16), use_threads=False
                )
                # Without a word to the contrary, the first block decides what a column holds.
                numbers = [*self.feature_names, *([self.weight] if self.weight else [])]
                convert = pa.csv.ConvertOptions(column_types=dict.fromkeys(numbers, pa.float64()))
                with pa.csv.open_csv(
                    self.path, read_options=options, convert_options=convert
                ) as reader:
                    yield from reader
        except pa.ArrowInvalid as error:
            raise TableError(f"{self.path} cannot be read: {error}") from None

    def _numbers(self, column: pa.Array, name: str, first: int) -> Vector:
        self._refuse_missing(column, name, first)
        values: Vector = np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64)
        bad = ~np.isfinite(values)
        if bad.any():
            raise TableError(
                f"{self.path}: row {first + int(np.argmax(bad)) + 1}, column {name!r} is not finite"
            )
        return values

    def _labels(self, column: pa.Array, first: int) -> NDArray[Any]:
        self._refuse_missing(column, self.label, first)
        if pa.types.is_integer(column.type):
            return np.asarray(column.cast(pa.int64()))
        if pa.types.is_floating(column.type):
            return self._numbers(column, self.label, first)
        return np.array([str(label) for label in column.to_pylist()])

    def _refuse_missing(self, column: pa.Array, name: str, first: int) -> None:
        if column.null_count:
            missing = np.asarray(column.is_null())
            raise TableError(
                f"{self.path}: row {first + int(np.argmax(missing)) + 1}, column {name!r} is "
                "missing. Fill in such values, or remove the rows."
            )
