"""Tables: CSV and Parquet files, read a block at a time.

One column holds the labels and one may hold weights. All others are features: numbers, or strings
that become one-hot.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from certsvm.files.batch import Batch
from certsvm.files.columns import Columns, TableError, open_for_arrow, types_of
from certsvm.files.csv_file import CsvFile
from certsvm.files.features import Features

__all__ = ["Table", "TableError"]

_LEARNING_BYTES, _BLOCK_BYTES = 4_000_000, 16_000_000


class Table:
    """A CSV or Parquet file, opened anew for each pass.

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
    separator : str, default=None
        The character between the values of a CSV file; None means the one of comma, tab and
        semicolon that is the most frequent in the first line.
    categorical : bool, default=False
        Whether columns of strings become one-hot, which takes a reading of their values. If not,
        they are an error.
    features : Features or sequence of str, default=None
        The features; None means all other columns. If they are given without a label, the labels
        are in "label", or in the only other column, or missing.
    n_features : int, default=None
        How many features there must be. Without a label, a table with exactly so many columns,
        none of them called "label", has no labels.
    ignore : collection of str, default=()
        Columns that are neither features nor labels.
    complete : bool, default=False
        Whether ``features`` must be all columns without another role. The labels are then where
        they are without ``features``: whoever chose these has no say in it.

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
    """

    is_parsed = True

    def __init__(
        self,
        path: str | Path,
        *,
        label: str | None = None,
        weight: str | None = None,
        header: bool | None = None,
        separator: str | None = None,
        categorical: bool = False,
        features: Features | Sequence[str] | None = None,
        n_features: int | None = None,
        ignore: Collection[str] = (),
        complete: bool = False,
    ) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            self._parquet = file.read(8).startswith(b"PAR1")
        if self._parquet:
            for name, value in (("header", header), ("separator", separator)):
                if value is not None:
                    raise TableError(f"{self.path} is a Parquet file, which has no {name}")
            schema = self._parquet_schema()
            index = index_columns(schema)
        else:
            self._csv = CsvFile(self.path, header=header, separator=separator)
            schema = self._csv.schema
            # The name that pandas and R give the index of a frame.
            index = [name for name in schema.names[:1] if name == ""]
        if features is not None and not isinstance(features, Features):
            features = Features(tuple(features))
        types = types_of(schema, str(self.path))
        self._types = types
        self._columns = Columns(
            str(self.path), types, label=label, weight=weight, features=features,
            n_features=n_features, index=index, categorical=categorical, ignore=ignore,
            complete=complete,
        )  # fmt: skip
        self._columns.learn(self._batches(_LEARNING_BYTES, self._columns.strings))
        self._refuse_other_width(n_features)

    @property
    def features(self) -> Features:
        """The features."""
        return self._columns.features

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return self.features.names

    @property
    def label(self) -> str | None:
        """The column of labels, if there is one."""
        return self._columns.label

    @property
    def weight(self) -> str | None:
        """The column of weights, if there is one."""
        return self._columns.weight

    @property
    def ignored(self) -> list[str]:
        """The columns that are not read."""
        return self._columns.ignored

    @property
    def recoded(self) -> list[str]:
        """The columns that are one-hot although they hold no strings."""
        return self._columns.recoded

    @property
    def unseen(self) -> Any:
        """How many values of each one-hot column were not among its values, so far."""
        return self._columns.unseen

    @property
    def origin(self) -> dict[str, Any]:
        """What a model has to know of the table."""
        spans = self.features.spans
        return {} if spans is None else {"one_hot": spans}

    @property
    def notes(self) -> list[str]:
        """Remarks about the columns."""
        notes = [] if self.label is None else [f"labels are in column {self._columns.label_place}"]
        used = self._columns.used
        notes += [
            f"column {name!r} is the index of a frame, and not used"
            for name in self._columns.index
            if name not in used
        ]
        return notes

    def __call__(self) -> Iterator[Batch]:
        """Begin a pass."""
        return self.blocks(_BLOCK_BYTES)

    def blocks(self, block_bytes: int) -> Iterator[Batch]:
        """All rows, in blocks of about this size. Missing labels are empty strings."""
        first = 0
        for batch in self._batches(block_bytes, self._columns.used):
            if len(batch) == 0:
                continue
            yield self._columns.rows(batch, first)
            first += len(batch)
            if self._columns.learnt and self.unseen:
                raise TableError(f"{self.path} changed while it was read")
        if first == 0:
            raise TableError(f"{self.path} has no rows")

    def in_type(self, X: Any, dtype: Any) -> Any:
        """X as another float type; overflow is an error."""
        return self._columns.in_type(X, dtype)

    def _refuse_other_width(self, n_features: int | None) -> None:
        found = len(self.feature_names)
        if n_features is not None and found != n_features:
            label = "no labels" if self.label is None else f"labels in {self.label!r}"
            raise TableError(
                f"{self.path} has {found} columns of features ({label}), the model {n_features}, "
                "and no names to match them by. A table must have the model's columns in their "
                "order, and may have labels (--label) and weights (--weight)."
            )

    def _parquet_schema(self) -> Any:
        try:
            with open_for_arrow(self.path) as file:
                return pa.parquet.read_schema(file)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.path}: cannot be read: {error}") from None

    def _batches(self, block_bytes: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._columns.explained():
            if self._parquet:
                rows = max(1, block_bytes // (8 * len(self._types)))
                with open_for_arrow(self.path) as opened, pa.parquet.ParquetFile(opened) as file:
                    yield from file.iter_batches(batch_size=rows, columns=list(columns))
                return
            # The type of a column must not depend on how the file is cut.
            types = dict.fromkeys((*self.features.values, *self._columns.strings), pa.string())
            for name in self._columns.numbers:
                kind = self._types[name]
                types[name] = kind if pa.types.is_boolean(kind) else pa.float64()
            if self.label is not None and self.label not in types:
                kind = self._types[self.label]
                as_text = pa.types.is_boolean(kind) or pa.types.is_floating(kind)
                types[self.label] = pa.string() if as_text else kind
            yield from self._csv.batches(block_bytes, columns, types)


def index_columns(schema: pa.Schema) -> list[str]:
    """The columns that are the index of the pandas frame that a schema describes."""
    try:
        described = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return []
    # A range of numbers is described by an object, and has no column.
    names = described if isinstance(described, list) else []
    return [name for name in names if isinstance(name, str) and name in schema.names]
