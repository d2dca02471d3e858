"""Converting text or tables to a block file, in bounded memory.

Shuffling: each row goes into a bucket, a temporary file of blocks, drawn at random; then each
bucket is shuffled in memory. All orders of the rows are equally likely. A bucket that does not fit
in memory is split again in the same way. Without shuffling, there is one bucket.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from certsvm.files.atomic import atomic_write
from certsvm.files.batch import Batch, joined, refuse_label_of_each_row
from certsvm.files.block_file import Summary, packed, unpacked, write_blocks
from certsvm.files.block_sources import kind_of
from certsvm.files.libsvm import LONGEST_LINE, LibsvmBlocks
from certsvm.files.memory import LARGEST_BLOCK, LEAST
from certsvm.files.tables import Table

# Fractions of the memory: 1/32 for a block of text, which takes many times its length while it is
# parsed and sorted; 1/20 for a line, if it is longer; 1/5 for a run of rows, of which shuffling
# makes a copy; 1/12 for a block.
_TEXT, _LINE, _RUN, _BLOCK = 32, 20, 5, 12
_LARGEST_TEXT = 32_000_000
_MOST_BUCKETS = 256
# So many labels are collected before it is clear that they are no classes.
_MOST_LABELS = 100_000

Report = Callable[[str, int], None]
"""Called with "read" or "written" and the number of rows so far."""


def convert(
    source: str | Path | Any, target: str | Path, *, memory: int = 500_000_000,
    block_bytes: int | None = None, shuffle: bool = True, seed: int = 0, dtype: Any = np.float64,
    report: Report = lambda what, n_rows: None, **options: Any,
) -> tuple[Summary, list[str]]:  # fmt: skip
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
    report : callable, default=does nothing
        Called now and then with "read" or "written" and the number of rows so far.
    **options
        How to read it. For libsvm text, ``n_features`` and ``zero_based``, as for ``LibsvmBlocks``;
        for tables, ``label``, ``weight``, ``header``, ``separator``, ``categorical``, ``ignore``
        and ``columns``, as for ``Table``.

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
    if memory < LEAST:
        raise ValueError(f"memory must be at least {LEAST // 10**6} MB, got {memory / 1e6:.1f} MB")
    block_bytes = max(1, block_bytes or min(memory // _BLOCK, LARGEST_BLOCK))
    text_bytes = min(memory // _TEXT, _LARGEST_TEXT)
    path = Path(source) if isinstance(source, str | Path) else None
    in_text, longest = path is None or kind_of(path) != "table", min(memory // _LINE, LONGEST_LINE)
    reader: Any
    if in_text:
        reader = LibsvmBlocks(source, text_bytes, longest_line=longest, dtype=dtype, **options)
    else:
        reader = Table(source, **options)
    batches = reader if in_text else reader.blocks(text_bytes, dtype)
    # Collected as long as every row has another.
    labels: set[Any] = set()
    n_rows = n_values = n_columns = 0

    def counted() -> Iterator[Batch]:
        nonlocal n_rows, n_values, n_columns
        for batch in batches:
            if len(labels) == n_rows:
                labels.update(batch.y.tolist())
            n_rows += len(batch.y)
            n_values += batch.n_values
            if n_rows > _MOST_LABELS:
                refuse_label_of_each_row(n_rows, len(labels))
            report("read", n_rows)
            yield batch
        refuse_label_of_each_row(n_rows, len(labels))
        n_columns = getattr(reader, "n_columns", batch.X.shape[1])

    def blocks(runs: Iterator[Batch]) -> Iterator[Batch]:
        written = 0
        for run in runs:
            rows = run.from_zero(int(not reader.zero_based), n_columns) if in_text else run
            n_blocks = min(len(rows.y), -(-rows.nbytes // block_bytes))
            for block in rows.cut(np.arange(n_blocks + 1) * len(rows.y) // n_blocks):
                yield block
                written += len(block.y)
                report("written", written)

    target = Path(target)
    # A guess from above: tables may be compressed, and of a stream nothing is known.
    n_bytes = sys.maxsize // 48 if path is None else path.stat().st_size
    expected = n_bytes * (3 if in_text else 12)
    rng = np.random.default_rng(seed) if shuffle else None
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        runs = in_runs(counted(), Path(folder), memory // _RUN, expected, rng)
        # The first run comes after the last row was read, so that all is known.
        runs = itertools.chain([next(runs)], runs)
        summary = Summary(
            n_rows, n_columns, n_values, shuffle, reader.feature_names,
            "a stream" if path is None else path.name, weight=reader.weight, **reader.origin,
        )  # fmt: skip
        with atomic_write(target) as file:
            write_blocks(file, summary, blocks(runs))
    return summary, reader.notes


def in_runs(
    batches: Iterable[Batch], folder: Path, most: int, expected: int,
    rng: np.random.Generator | None,
) -> Iterator[Batch]:  # fmt: skip
    """All rows, in random order or as they are, in runs of at most about ``most`` bytes.

    Parameters
    ----------
    batches : iterable of Batch
        Read once, before anything is returned.
    folder : path
        Folder for the buckets.
    most : int
        Bytes of rows that may be in memory at once, besides a copy of them.
    expected : int
        Estimate of the size of all rows; a wrong estimate costs time, not memory.
    rng : Generator, or None
        The source of randomness; None keeps the order.
    """
    if rng is None:
        for rows in batches:
            _append(folder / "rows", rows)
        yield from _stored(folder / "rows")
        return
    n_buckets = int(np.clip(-(-2 * expected // most), 1, _MOST_BUCKETS))
    name = f"{rng.integers(2**62):016x}"
    # The bytes and the number of rows in each bucket.
    buckets = {folder / f"{name}-{i}": [0, 0] for i in range(n_buckets)}
    for rows in batches:
        which = rng.integers(n_buckets, size=len(rows.y))
        sorted_rows = rows.take(np.argsort(which, kind="stable"))
        edges = np.append(0, np.cumsum(np.bincount(which, minlength=n_buckets)))
        for (path, size), part in zip(buckets.items(), sorted_rows.cut(edges), strict=True):
            if len(part.y):
                _append(path, part)
                size[:] = size[0] + part.nbytes, size[1] + len(part.y)
    for path, (n_bytes, n_rows) in buckets.items():
        # A single row cannot be split, however large it is.
        if n_bytes > most and n_rows > 1:
            yield from in_runs(_stored(path), folder, most, n_bytes, rng)
        elif n_rows:
            rows = joined(list(_stored(path)))
            yield rows.take(rng.permutation(n_rows))
        path.unlink(missing_ok=True)


def _append(path: Path, rows: Batch) -> None:
    """Append a batch to a file, as a stream of its own: types of indices and strings differ."""
    batch = packed(rows)
    with path.open("ab") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        stream.write_batch(batch)


def _stored(path: Path) -> Iterator[Batch]:
    """The batches of a file, in the order in which they were appended."""
    with pa.OSFile(os.fsencode(path)) as file:
        while file.tell() < file.size():
            for batch in pa.ipc.open_stream(file):
                yield unpacked(batch)
