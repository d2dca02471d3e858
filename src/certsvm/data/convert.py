"""From text or tables to a file of blocks, in bounded memory."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from certsvm.data.batch import Batch
from certsvm.data.block_file import BlockFileWriter, Summary
from certsvm.data.kinds import kind_of
from certsvm.data.libsvm import LibsvmBlocks
from certsvm.data.memory import LEAST
from certsvm.data.shuffle import Bucket, shuffled
from certsvm.data.tables import Table
from certsvm.storage.atomic import atomic_write

# Parts of the memory: for a block of text, which takes many times its length while it is parsed and
# sorted; for a run of rows, which is there twice while it is put in order; for a block.
_TEXT, _RUN, _BLOCK = 32, 5, 12
_LARGEST_TEXT, _LARGEST_BLOCK = 32_000_000, 16_000_000
# Bytes of rows for a byte of text, at most, as a guess.
_ROWS_PER_TEXT = 3

Report = Callable[[str, int], None]
"""Called with what is done ("read", "written") and the number of rows so far."""


def convert(
    source: str | Path | Any,
    target: str | Path,
    *,
    memory: int = 500_000_000,
    block_bytes: int | None = None,
    shuffle: bool = True,
    seed: int = 0,
    dtype: Any = np.float64,
    n_features: int | None = None,
    zero_based: bool | None = None,
    label: str | None = None,
    weight: str | None = None,
    report: Report | None = None,
) -> tuple[Summary, list[str]]:
    """Turn libsvm text, CSV or Parquet into a file of blocks to train from.

    Parameters
    ----------
    source : path or binary file object
        libsvm text, plain or compressed; or a CSV or Parquet file.
    target : path
        The file to write, atomically. While at work, a folder beside it holds the rows once more.
    memory : int, default=5 * 10**8
        Bytes that converting may take, besides what the process has already. Batch of hundreds of
        megabytes each need more.
    block_bytes : int, default=None
        Size of a block; None takes up to 16 MB, as the memory allows. Training from the file has
        two blocks in memory.
    shuffle : bool, default=True
        Whether to put the rows in random order, which SGD needs.
    seed : int, default=0
        Of that order.
    dtype : {float64, float32}, default=float64
        Of the values.
    n_features, zero_based
        For libsvm text, as in ``load_libsvm``.
    label, weight : str, default=None
        For tables: the column of labels (None: "label", or the last), and that of weights.
    report : callable, default=None
        Called with "read" or "written" and a number of rows, now and then.

    Returns
    -------
    summary : Summary
        What was written.
    notes : list of str
        What a reader may want to know about the source.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("1 1:0.5 3:1" + chr(10) + "-1 2:1" + chr(10))
    >>> summary, notes = convert(folder / "a.txt", folder / "a.arrow")
    >>> summary.n_rows, summary.n_columns, summary.n_values
    (2, 3, 3)
    """
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    if block_bytes is not None and block_bytes < 1:
        raise ValueError(f"block_bytes must be > 0, got {block_bytes!r}")
    if memory < LEAST:
        raise ValueError(f"memory must be at least {LEAST // 10**6} MB, got {memory / 1e6:.1f} MB")
    block_bytes = block_bytes or min(memory // _BLOCK, _LARGEST_BLOCK)
    reader = _reader(source, min(memory // _TEXT, _LARGEST_TEXT), dtype, n_features, zero_based,
                     label, weight)  # fmt: skip
    counted = _Counted(reader.blocks(), report)
    target = Path(target)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        rng = np.random.default_rng(seed)
        if shuffle:
            runs = shuffled(counted, Path(folder), memory // _RUN, reader.expected_bytes(), rng)
        else:
            runs = _in_order(counted, Path(folder))
        # The first run comes after the last row was read: from then on the counts are known.
        first = next(runs)
        summary = Summary(
            n_rows=counted.n_rows,
            n_columns=reader.n_columns(),
            n_values=counted.n_values,
            shuffled=shuffle,
            feature_names=reader.feature_names,
            source=reader.name,
            zero_based=reader.zero_based(),
        )
        with atomic_write(target) as file, BlockFileWriter(file, summary) as writer:
            written = 0
            for run in _chain(first, runs):
                for block in _cut(reader.finished(run, summary.n_columns), block_bytes):
                    writer.write(*block)
                    written += len(block.y)
                    if report is not None:
                        report("written", written)
    return summary, reader.notes()


class _Counted:
    """Batch on their way, counted."""

    def __init__(self, pieces: Iterable[Batch], report: Report | None) -> None:
        self._pieces = pieces
        self._report = report
        self.n_rows = self.n_values = 0

    def __iter__(self) -> Iterator[Batch]:
        for piece in self._pieces:
            self.n_rows += len(piece.y)
            self.n_values += int(piece.X.nnz if sp.issparse(piece.X) else piece.X.size)
            if self._report is not None:
                self._report("read", self.n_rows)
            yield piece


class _LibsvmReader:
    """libsvm text."""

    feature_names = None

    def __init__(
        self, source: Any, block_bytes: int, dtype: Any, n_features: int | None,
        zero_based: bool | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._n_features = n_features
        self.name = Path(source).name if isinstance(source, str | Path) else "a stream"
        self._text = LibsvmBlocks(
            source, block_bytes, n_features=n_features, zero_based=zero_based, dtype=dtype
        )

    def blocks(self) -> Iterator[Batch]:
        """Batch with indices as they are in the file."""
        for block in self._text:
            width = int(block.indices.max(initial=-1)) + 1
            X = sp.csr_matrix((len(block.labels), width), dtype=block.values.dtype)
            X.data, X.indices, X.indptr = block.values, block.indices, block.indptr
            yield Batch(X, block.labels, None)

    def expected_bytes(self) -> int:
        """How much there will be, as a guess."""
        if not isinstance(self._source, str | Path):
            return sys.maxsize // 4
        return _ROWS_PER_TEXT * Path(self._source).stat().st_size

    def n_columns(self) -> int:
        """The number of columns; known when all was read."""
        if self._n_features is not None:
            return self._n_features
        return (self._text.largest_index or 0) + int(self._text.zero_based)

    def finished(self, rows: Batch, n_columns: int) -> Batch:
        """Batch whose columns count from zero."""
        kind: type[np.signedinteger[Any]] = np.int32 if n_columns < 2**31 else np.int64
        indices = (rows.X.indices - (not self._text.zero_based)).astype(kind)
        X = sp.csr_matrix((rows.X.shape[0], n_columns), dtype=rows.X.dtype)
        X.data, X.indices, X.indptr = rows.X.data, indices, rows.X.indptr
        return Batch(X, rows.y, rows.weights)

    def zero_based(self) -> bool:
        """Whether indices count from zero; known when all was read."""
        return self._text.zero_based

    def notes(self) -> list[str]:
        """What was noticed."""
        return list(self._text.notes)


class _TableReader:
    """CSV or Parquet."""

    def __init__(self, table: Table, block_bytes: int, dtype: Any) -> None:
        self._table = table
        self._block_bytes = block_bytes
        self._dtype = dtype
        self.feature_names: list[str] | None = table.feature_names
        self.name = table.path.name

    def blocks(self) -> Iterator[Batch]:
        """Dense rows."""
        for rows in self._table.blocks(self._block_bytes):
            yield Batch(self._table.in_type(rows.X, self._dtype), rows.y, rows.weights)

    def expected_bytes(self) -> int:
        """How much there will be, as a guess; compressed tables may be many times as large."""
        return 4 * _ROWS_PER_TEXT * self._table.path.stat().st_size

    def n_columns(self) -> int:
        """The number of columns."""
        return len(self._table.feature_names)

    def finished(self, rows: Batch, n_columns: int) -> Batch:
        """The rows as they are."""
        return rows

    def zero_based(self) -> None:
        """There are no indices."""

    def notes(self) -> list[str]:
        """Where the labels came from."""
        return [f"labels are in column {self._table.label!r}"]


def _reader(
    source: Any, block_bytes: int, dtype: Any, n_features: int | None, zero_based: bool | None,
    label: str | None, weight: str | None,
) -> _LibsvmReader | _TableReader:  # fmt: skip
    table = isinstance(source, str | Path) and kind_of(source) == "table"
    wrong = {"n_features": n_features, "zero_based": zero_based} if table else {
        "label": label, "weight": weight}  # fmt: skip
    for name, value in wrong.items():
        if value is not None:
            kind = "libsvm text" if table else "tables (CSV, Parquet)"
            raise ValueError(f"{name} is for {kind}, and {source} is none")
    if table:
        return _TableReader(Table(source, label=label, weight=weight), block_bytes, dtype)
    return _LibsvmReader(source, block_bytes, dtype, n_features, zero_based)


def _in_order(pieces: Iterable[Batch], folder: Path) -> Iterator[Batch]:
    """The rows as they come, but only when the last of them was read."""
    bucket = Bucket(folder / "rows")
    sparse = weighted = False
    for rows in pieces:
        sparse, weighted = sp.issparse(rows.X), rows.weights is not None
        bucket.put(rows)
    yield from bucket.pieces(sparse=sparse, weighted=weighted)


def _chain(first: Batch, others: Iterator[Batch]) -> Iterator[Batch]:
    yield first
    yield from others


def _cut(run: Batch, block_bytes: int) -> Iterator[Batch]:
    n_blocks = min(len(run.y), -(-run.nbytes // block_bytes))
    yield from run.cut(np.arange(n_blocks + 1) * len(run.y) // n_blocks)
