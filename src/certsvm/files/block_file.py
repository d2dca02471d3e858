"""Block files: blocks of rows in an Arrow IPC file.

Each record batch is a block, small enough that two fit in memory, with the columns

    label     float64, int64 or string
    weight    float64; may be missing, then all are 1
    row       list<struct<index, value>> for sparse rows, fixed_size_list<value> for dense ones

Any program that reads Arrow can read it. The schema's metadata, under the key "certsvm", holds the
counts of the whole file; the metadata of each batch holds its position and digest. The file is
read, not mapped: mapped pages would count as memory of the process, and truncating the file
meanwhile would kill it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import scipy.sparse as sp

from certsvm.files.batch import Batch, csr
from certsvm.files.columns import Features
from certsvm.files.streams import DataChangedError, block_digest, checked_block
from certsvm.matrices import exact_labels

_KEY, _DIGEST_KEY = b"certsvm", b"certsvm-digest"
_FORMAT = 2


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
        for value in (self.n_rows, self.n_columns, self.n_values):
            if type(value) is not int or not 0 <= value < 2**63:
                raise ValueError(f"the data cannot have {value!r} rows, columns or values")
        names = [self.label, self.weight, *(self.feature_names or [])]
        if not all(isinstance(name, str | None) for name in names):
            raise ValueError("names of columns must be strings")
        if self.one_hot is not None:
            Features.from_names(self.feature_names or [], self.one_hot)


def write_blocks(file: IO[bytes], summary: Summary, blocks: Iterable[Batch]) -> None:
    """Write a block file; the counts of the summary must be those of the blocks."""
    header = json.dumps({"format": _FORMAT, **asdict(summary)}).encode()
    metadata = {_KEY: header, _DIGEST_KEY: _checksum(header)}
    writer: Any = None
    try:
        for i, block in enumerate(blocks):
            batch = packed(block).replace_schema_metadata(metadata)
            writer = writer or pa.ipc.new_file(file, batch.schema)
            mark = _mark(i, unpacked(batch, summary.n_columns))
            writer.write_batch(batch, custom_metadata={_KEY: mark})
    finally:
        if writer is not None:
            writer.close()


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
        reader = self._opened()
        self.n_blocks, metadata = reader.num_record_batches, reader.schema.metadata or {}
        header = metadata.get(_KEY, b"")
        if not header:
            raise BlockFileError(
                f"{self.path} is an Arrow file, but not one that certsvm made. Turn it into "
                "Parquet or CSV, and convert that: certsvm convert FILE.parquet OUT.arrow"
            )
        try:
            if metadata.get(_DIGEST_KEY) != _checksum(header):
                raise ValueError("it does not fit its digest")
            known = json.loads(header)
            if (version := known.pop("format", None)) != _FORMAT:
                raise ValueError(f"format {version!r} is not {_FORMAT}: convert the data again")
            self.summary = Summary(**known)
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            raise BlockFileError(f"{self.path} has a header that is damaged: {error}") from None
        self.feature_names = self.summary.feature_names
        facts = {name: getattr(self.summary, name) for name in ("zero_based", "one_hot", "label")}
        self.origin = {name: fact for name, fact in facts.items() if fact is not None}

    def __call__(self) -> Iterator[Batch]:
        """Begin a pass: the blocks, each checked against its digest."""
        rows, reader = 0, self._opened()
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
        return self._block(self._opened(), i)

    def _block(self, reader: Any, i: int) -> Batch:
        if reader.num_record_batches != self.n_blocks:
            raise DataChangedError(f"{self.path} changed while it was read. Nothing is certified.")
        n_columns = self.summary.n_columns
        try:
            batch, metadata = reader.get_batch_with_custom_metadata(i)
            batch.validate(full=True)
            # Whoever can compute a digest can write any block.
            block = checked_block(unpacked(batch, n_columns))
            if block.X.shape[1] != n_columns or block.X.dtype not in (np.float32, np.float64):
                raise ValueError(f"its rows are {block.X.shape[1]} values of type {block.X.dtype}")
            if (metadata or {}).get(_KEY) != _mark(i, block):
                raise ValueError("it does not agree with its digest")
        except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
            raise BlockFileError(
                f"{self.path}: block {i + 1} of {self.n_blocks} is damaged: {error}"
            ) from None
        return block

    def _opened(self) -> Any:
        file = pa.OSFile(os.fsencode(self.path))
        try:
            return pa.ipc.open_file(file)
        except (pa.ArrowException, OSError) as error:
            what = f"{self.path} is not an Arrow file, or not a whole one: {error}"
            raise BlockFileError(what) from None


def _checksum(header: bytes) -> bytes:
    return b"%08x" % zlib.crc32(header)


def _mark(i: int, block: Batch) -> bytes:
    """What is stored with the i-th block."""
    return f"{i} {block_digest(*block).hex()}".encode()


def packed(block: Batch) -> pa.RecordBatch:
    """A block as a record batch."""
    X, y, weights = block
    if y.dtype.kind in "USO":
        label = pa.array([str(name) for name in y.tolist()])
    else:
        label = pa.array(y.astype(np.float64 if y.dtype.kind == "f" else np.int64))
    columns = {"label": label}
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
    return pa.RecordBatch.from_pydict(columns)


def unpacked(batch: pa.RecordBatch, n_columns: int | None = None) -> Batch:
    """The block in a record batch; nothing but strings is copied.

    Without a number of columns, sparse rows are as wide as they need to be.
    """
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
    indices = row.values.field("index").to_numpy(zero_copy_only=True)
    values = row.values.field("value").to_numpy(zero_copy_only=True)
    offsets = row.offsets.to_numpy(zero_copy_only=True)
    width = int(indices.max(initial=-1)) + 1 if n_columns is None else n_columns
    return Batch(csr(values, indices, offsets, (len(batch), width)), y, weights)
