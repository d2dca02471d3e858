"""Block files: blocks of rows in an Arrow IPC file.

Each record batch is a block, small enough that two fit in memory, with the columns

    label     float64, int64 or string
    weight    float64; may be missing, then all are 1
    row       list<struct<index, value>> for sparse rows, fixed_size_list<value> for dense ones

Any program that reads Arrow can read it. The schema's metadata, under the key "certsvm", holds the
counts of the whole file; the metadata of each batch holds its position, counts and digest. The file
is read, not mapped: mapped pages would count as memory of the process, and truncating the file
meanwhile would kill it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import scipy.sparse as sp
import xxhash
from numpy.typing import NDArray

from certsvm.files.batch import Batch, csr
from certsvm.files.columns import Features
from certsvm.files.streams import DataChangedError, block_digest
from certsvm.matrices import exact_labels, refuse_broken
from certsvm.problem.rows import Vector

_KEY, _DIGEST_KEY = b"certsvm", b"certsvm-digest"
_FORMAT = 1


class BlockFileError(ValueError):
    """A block file cannot be read; the message names it and says why."""


@dataclass(frozen=True)
class Summary:
    """The header of a block file.

    Attributes
    ----------
    n_rows, n_columns, n_values : int
        Size of the data.
    shuffled : bool
        Whether the rows are in random order.
    feature_names : list of str, default=None
        Names of the columns.
    source : str
        Name of the file it was made from.
    zero_based : bool or None
        Whether the indices in that text counted from zero; None if it was not text.
    one_hot : dict or None
        The columns of strings of a table that became one-hot: their first feature, and their last
        plus one.
    label, weight : str or None
        The columns of labels and weights of a table.
    """

    n_rows: int
    n_columns: int
    n_values: int
    shuffled: bool
    feature_names: list[str] | None = None
    source: str = ""
    zero_based: bool | None = None
    one_hot: dict[str, list[int]] | None = None
    label: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        for name in ("n_rows", "n_columns", "n_values"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < 2**63:
                raise ValueError(f"{name} cannot be {value!r}")
        names = self.feature_names
        if names is not None and not (
            isinstance(names, list) and all(isinstance(name, str) for name in names)
        ):
            raise ValueError("feature_names must be strings")
        if not all(isinstance(name, str | None) for name in (self.label, self.weight)):
            raise ValueError("label and weight must be strings")
        if self.one_hot is not None:
            Features.from_names(names or [], self.one_hot)


class BlockFileWriter:
    """Writes a block file; a context manager.

    Parameters
    ----------
    file : binary file
        The file to write to.
    summary : Summary
        Header; its counts must match the blocks that will be written.
    """

    def __init__(self, file: IO[bytes], summary: Summary) -> None:
        self._file = file
        self._summary = summary
        header = json.dumps({"format": _FORMAT, **asdict(summary)})
        self._metadata = {_KEY: header, _DIGEST_KEY: xxhash.xxh3_64_hexdigest(header.encode())}
        self._writer: Any = None
        self._written = 0
        self._rows = 0
        self._values = 0

    def __enter__(self) -> BlockFileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
        written = self._rows, self._values
        stated = self._summary.n_rows, self._summary.n_values
        if kind is None and written != stated:
            raise ValueError(f"{written} rows and values were written, {stated} announced")

    def write(self, X: Any, y: NDArray[Any], weights: Vector | None = None) -> None:
        """Append a block."""
        batch = _record_batch(X, y, weights).replace_schema_metadata(self._metadata)
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._file, batch.schema)
        n_values = Batch(X, y).n_values
        place = {
            "block": self._written,
            "rows": len(y),
            "values": n_values,
            "digest": block_digest(*_unpacked(batch, self._summary.n_columns)).hex(),
        }
        self._writer.write_batch(batch, custom_metadata={_KEY: json.dumps(place)})
        self._written += 1
        self._rows += len(y)
        self._values += n_values


class BlockFile:
    """A block file, opened anew for each pass.

    Parameters
    ----------
    path : path
        The file, written by ``certsvm convert``.

    Attributes
    ----------
    summary : Summary
        The header.
    n_blocks : int
        Number of blocks.
    feature_names : list of str, or None
        Names of the columns.
    origin : dict
        What a model has to know of the file that the rows come from.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self._open() as reader:
            metadata = reader.schema.metadata or {}
            if _KEY not in metadata:
                raise BlockFileError(
                    f"{self.path} is an Arrow file, but not one that certsvm made. Turn it into "
                    "Parquet or CSV, and convert that: certsvm convert FILE.parquet OUT.arrow"
                )
            digest = xxhash.xxh3_64_hexdigest(metadata[_KEY])
            if metadata.get(_DIGEST_KEY) != digest.encode():
                raise BlockFileError(f"{self.path} is damaged: its header does not fit its digest")
            header = self._parsed(metadata[_KEY])
            version = header.pop("format", None)
            if version != _FORMAT:
                raise BlockFileError(
                    f"{self.path} has format {version!r}; this certsvm reads format {_FORMAT}"
                )
            try:
                self.summary = Summary(**header)
            except (TypeError, ValueError) as error:
                raise BlockFileError(
                    f"{self.path} is damaged: its header is incomplete or wrong: {error}"
                ) from None
            self.n_blocks = reader.num_record_batches
        self.feature_names = self.summary.feature_names
        origin = {"zero_based": self.summary.zero_based, "one_hot": self.summary.one_hot}
        self.origin = {name: fact for name, fact in origin.items() if fact is not None}

    def __call__(self) -> Iterator[Batch]:
        """Begin a pass: the blocks, each checked against its digest."""
        rows = 0
        with self._open() as reader:
            for i in range(self.n_blocks):
                batch = self._block(reader, i)
                rows += len(batch.y)
                yield batch
        if rows != self.summary.n_rows:
            raise BlockFileError(
                f"{self.path} is damaged: it has {rows} rows and says {self.summary.n_rows}"
            )

    def block(self, i: int) -> Batch:
        """The i-th block by itself, checked against its digest."""
        with self._open() as reader:
            return self._block(reader, i)

    def _block(self, reader: Any, i: int) -> Batch:
        if reader.num_record_batches != self.n_blocks:
            raise DataChangedError(f"{self.path} changed while it was read. Nothing is certified.")
        try:
            batch, metadata = reader.get_batch_with_custom_metadata(i)
            batch.validate(full=True)
            place = self._parsed((metadata or {})[_KEY])
            block = _unpacked(batch, self.summary.n_columns)
            _refuse_unsafe(block, self.summary.n_columns)
        except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
            raise BlockFileError(
                f"{self.path}: block {i + 1} of {self.n_blocks} cannot be read: {error}"
            ) from None
        if place.get("block") != i or place.get("digest") != block_digest(*block).hex():
            raise BlockFileError(
                f"{self.path}: block {i + 1} of {self.n_blocks} is damaged, or was changed: it "
                "does not agree with its digest"
            )
        return block

    def _open(self) -> Any:
        try:
            return _Reader(self.path)
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise BlockFileError(
                f"{self.path} is not an Arrow file, or not a whole one: {error}"
            ) from None

    def _parsed(self, text: bytes) -> dict[str, Any]:
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise BlockFileError(f"{self.path} is damaged: its metadata is not valid")
        return parsed


class _Reader:
    """An Arrow reader that closes its file."""

    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(os.fsencode(path))
        try:
            self._reader = pa.ipc.open_file(self._file)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Any:
        return self._reader

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _record_batch(X: Any, y: NDArray[Any], weights: Vector | None) -> pa.RecordBatch:
    columns = {"label": _labels(y)}
    if weights is not None:
        columns["weight"] = pa.array(weights)
    if sp.issparse(X):
        index, value = pa.array(X.indices), pa.array(X.data)
        fields = [pa.field("index", index.type, False), pa.field("value", value.type, False)]
        offsets = pa.array((X.indptr - X.indptr[0]).astype(np.int32))
        values = pa.StructArray.from_arrays([index, value], fields=fields)
        columns["row"] = pa.ListArray.from_arrays(offsets, values)
    else:
        flat = pa.array(np.ascontiguousarray(X).reshape(-1))
        columns["row"] = pa.FixedSizeListArray.from_arrays(flat, X.shape[1])
    return pa.record_batch(list(columns.values()), names=list(columns))


def _labels(y: NDArray[Any]) -> pa.Array:
    if y.dtype.kind in "USO":
        return pa.array([str(label) for label in y.tolist()])
    return pa.array(y.astype(np.float64) if y.dtype.kind == "f" else y.astype(np.int64))


def _unpacked(batch: pa.RecordBatch, n_columns: int) -> Batch:
    """The rows of a record batch; nothing but strings is copied."""
    label = batch.column("label")
    if pa.types.is_string(label.type):
        y = exact_labels(label.to_pylist()).astype(np.str_)
    else:
        y = label.to_numpy(zero_copy_only=True)
    weights = None
    if "weight" in batch.schema.names:
        weights = batch.column("weight").to_numpy(zero_copy_only=True)
    row = batch.column("row")
    if pa.types.is_fixed_size_list(row.type):
        values = row.flatten().to_numpy(zero_copy_only=True)
        return Batch(values.reshape(len(batch), row.type.list_size), y, weights)
    if not (pa.types.is_list(row.type) and pa.types.is_struct(row.type.value_type)):
        raise ValueError(f"its rows are of type {row.type}")
    offsets = row.offsets.to_numpy(zero_copy_only=True)
    inner = row.values
    indices = inner.field("index").to_numpy(zero_copy_only=True)
    values = inner.field("value").to_numpy(zero_copy_only=True)
    return Batch(csr(values, indices, offsets, (len(batch), n_columns)), y, weights)


def _refuse_unsafe(block: Batch, n_columns: int) -> None:
    """Raise ValueError if a block is not what ``BlockFileWriter`` could have written.

    Whoever can compute a digest can write any block.
    """
    refuse_broken(block.X)
    if block.X.shape[1] != n_columns or block.X.dtype not in (np.float32, np.float64):
        raise ValueError(f"its rows are {block.X.shape[1]} values of type {block.X.dtype}")
    w = block.weights
    if w is not None and not (w.dtype == np.float64 and (np.isfinite(w) & (w >= 0.0)).all()):
        raise ValueError("its weights must be finite numbers >= 0")
    if block.y.dtype.kind == "f" and not np.isfinite(block.y).all():
        raise ValueError("its labels must be finite")
