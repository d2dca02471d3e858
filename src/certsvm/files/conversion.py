"""Converting text or tables to a block file, in bounded memory."""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from certsvm.files.atomic import atomic_write
from certsvm.files.batch import Batch, csr
from certsvm.files.block_file import BlockFileWriter, Summary
from certsvm.files.compressed import kind_of
from certsvm.files.labels import LabelCheck
from certsvm.files.libsvm import LibsvmBlocks
from certsvm.files.libsvm.lines import LONGEST_LINE
from certsvm.files.memory import LARGEST_BLOCK, LEAST
from certsvm.files.shuffle import Bucket, shuffled
from certsvm.files.tables import Table

# Fractions of the memory: 1/32 for a block of text, which takes many times its length while it is
# parsed and sorted; 1/20 for a line, if it is longer; 1/5 for a run of rows, of which shuffling
# makes a copy; 1/12 for a block.
_TEXT, _LINE, _RUN, _BLOCK = 32, 20, 5, 12
_LARGEST_TEXT = 32_000_000
# Bytes of rows per byte of text, estimated from above.
_ROWS_PER_TEXT = 3

Report = Callable[[str, int], None]
"""Called with "read" or "written" and the number of rows so far."""


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
    header: bool | None = None,
    separator: str | None = None,
    categorical: bool = False,
    report: Report | None = None,
) -> tuple[Summary, list[str]]:
    """Convert libsvm text, CSV or Parquet to a block file to train from.

    Parameters
    ----------
    source : path or binary file object
        libsvm text, plain or compressed; or a CSV or Parquet file.
    target : path
        The file to write, atomically. A temporary folder beside it holds a copy of the rows.
    memory : int, default=5 * 10**8
        Bytes that converting may use in addition to those in use now. A line of libsvm text may
        have a twentieth of them, and 256 MiB at most.
    block_bytes : int, default=None
        Size of a block; by default up to 16 MB, as the memory allows. Training from the file holds
        two blocks in memory.
    shuffle : bool, default=True
        Whether to shuffle the rows; SGD needs a random order.
    seed : int, default=0
        Seed of the random order.
    dtype : {float64, float32}, default=float64
        Type of the values.
    n_features : int, default=None
        For libsvm text: the number of columns. By default, the largest index decides.
    zero_based : bool, default=None
        For libsvm text: whether indices count from zero. By default they do if there is an index 0.
    label, weight : str, default=None
        For tables: the columns of labels (by default "label", or the last) and of weights.
    header : bool, default=None
        For CSV: whether it begins with a line of names. None means that it does, and a first line
        of numbers is an error.
    separator : str, default=None
        For CSV: the character between values; by default it is found in the first line.
    categorical : bool, default=False
        For tables: whether columns of strings become one-hot. Their values are read beforehand.
    report : callable, default=None
        Called now and then with "read" or "written" and the number of rows so far.

    Returns
    -------
    summary : Summary
        The header of the file.
    notes : list of str
        Remarks about the source.

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
    block_bytes = block_bytes or min(memory // _BLOCK, LARGEST_BLOCK)
    for_text = {"n_features": n_features, "zero_based": zero_based}
    for_table = {
        "label": label, "weight": weight, "header": header, "separator": separator,
        "categorical": categorical or None,
    }  # fmt: skip
    reader = _reader(source, memory, dtype, for_text, for_table)
    counted = _Counted(reader.blocks(), report)
    target = Path(target)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        rng = np.random.default_rng(seed)
        if shuffle:
            runs = shuffled(counted, Path(folder), memory // _RUN, reader.expected_bytes(), rng)
        else:
            runs = _in_order(counted, Path(folder))
        # The first run comes after the last row was read, so the counts are known.
        first = next(runs)
        summary = Summary(
            n_rows=counted.n_rows,
            n_columns=reader.n_columns(),
            n_values=counted.n_values,
            shuffled=shuffle,
            feature_names=reader.feature_names,
            source=reader.name,
            zero_based=reader.zero_based(),
            one_hot=reader.one_hot,
            label=reader.label,
            weight=reader.weight,
        )
        with atomic_write(target) as file, BlockFileWriter(file, summary) as writer:
            written = 0
            for run in itertools.chain([first], runs):
                for block in _cut(reader.finished(run, summary.n_columns), block_bytes):
                    writer.write(*block)
                    written += len(block.y)
                    if report is not None:
                        report("written", written)
    return summary, reader.notes()


class _Counted:
    """Passes batches on and counts their rows and values."""

    def __init__(self, batches: Iterable[Batch], report: Report | None) -> None:
        self._batches = batches
        self._report = report
        self._labels = LabelCheck()
        self.n_rows = self.n_values = 0

    def __iter__(self) -> Iterator[Batch]:
        for batch in self._batches:
            self.n_rows += len(batch.y)
            self.n_values += batch.n_values
            self._labels.add(batch.y)
            if self._report is not None:
                self._report("read", self.n_rows)
            yield batch
        self._labels.finish()


class _LibsvmReader:
    """libsvm text."""

    feature_names = one_hot = label = weight = None

    def __init__(
        self, source: Any, memory: int, dtype: Any, n_features: int | None,
        zero_based: bool | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._n_features = n_features
        self.name = Path(source).name if isinstance(source, str | Path) else "a stream"
        self._text = LibsvmBlocks(
            source, _text_bytes(memory), longest_line=min(memory // _LINE, LONGEST_LINE),
            n_features=n_features,
            zero_based=zero_based, dtype=dtype,
        )  # fmt: skip

    def blocks(self) -> Iterator[Batch]:
        """Rows with indices as in the file."""
        return iter(self._text)

    def expected_bytes(self) -> int:
        """Estimated size of all rows."""
        if not isinstance(self._source, str | Path):
            return sys.maxsize // 4
        return _ROWS_PER_TEXT * Path(self._source).stat().st_size

    def n_columns(self) -> int:
        """Number of columns; known at the end of the text."""
        if self._n_features is not None:
            return self._n_features
        return max(self._text.totals.largest, 0) + int(self._text.zero_based)

    def finished(self, rows: Batch, n_columns: int) -> Batch:
        """Rows whose columns count from zero."""
        X, y, weights = rows
        dtype = np.int32 if n_columns < 2**31 else np.int64
        indices = (X.indices - (not self._text.zero_based)).astype(dtype)
        return Batch(csr(X.data, indices, X.indptr, (len(y), n_columns)), y, weights)

    def zero_based(self) -> bool:
        """Whether indices count from zero; known at the end of the text."""
        return self._text.zero_based

    def notes(self) -> list[str]:
        """Remarks about the text."""
        return list(self._text.notes)


class _TableReader:
    """CSV or Parquet."""

    def __init__(self, table: Table, memory: int, dtype: Any) -> None:
        self._table = table
        self._block_bytes = _text_bytes(memory)
        self._dtype = dtype
        self.feature_names: list[str] | None = table.feature_names
        self.one_hot = table.features.spans
        self.label, self.weight = table.label, table.weight
        self.name = table.path.name

    def blocks(self) -> Iterator[Batch]:
        """Dense rows."""
        return self._table.blocks(self._block_bytes, self._dtype)

    def expected_bytes(self) -> int:
        """Estimated size of all rows; the file may be compressed."""
        return 4 * _ROWS_PER_TEXT * self._table.path.stat().st_size

    def n_columns(self) -> int:
        """Number of columns."""
        return len(self._table.feature_names)

    def finished(self, rows: Batch, n_columns: int) -> Batch:
        """The rows as they are."""
        return rows

    def zero_based(self) -> None:
        """There are no indices."""

    def notes(self) -> list[str]:
        """Remarks about the columns."""
        return self._table.notes


def _text_bytes(memory: int) -> int:
    """Length of a block of text."""
    return min(memory // _TEXT, _LARGEST_TEXT)


def _reader(
    source: Any, memory: int, dtype: Any, for_text: dict[str, Any], for_table: dict[str, Any]
) -> _LibsvmReader | _TableReader:
    table = isinstance(source, str | Path) and kind_of(source) == "table"
    for name, value in (for_text if table else for_table).items():
        if value is not None:
            kind = "libsvm text" if table else "tables (CSV, Parquet)"
            raise ValueError(f"{name} is for {kind}, and {source} is none")
    if table:
        given = {name: value for name, value in for_table.items() if value is not None}
        return _TableReader(Table(source, **given), memory, dtype)
    return _LibsvmReader(source, memory, dtype, **for_text)


def _in_order(batches: Iterable[Batch], folder: Path) -> Iterator[Batch]:
    """The batches in their order, but not before the last was read."""
    bucket = Bucket(folder / "rows")
    sparse = weighted = False
    for rows in batches:
        sparse, weighted = sp.issparse(rows.X), rows.weights is not None
        bucket.put(rows)
    yield from bucket.batches(sparse=sparse, weighted=weighted)


def _cut(run: Batch, block_bytes: int) -> Iterator[Batch]:
    n_blocks = min(len(run.y), -(-run.nbytes // block_bytes))
    yield from run.cut(np.arange(n_blocks + 1) * len(run.y) // n_blocks)
