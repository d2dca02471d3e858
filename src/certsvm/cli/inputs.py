"""Data files of any kind, read into memory or in batches.

Packages that are slow to import are imported where they are used: --help must start at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from certsvm.cli.app import say
from certsvm.cli.options import DataOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.files.batch import Batch
    from certsvm.files.tables import Table
    from certsvm.fitting.sources import MemorySource
    from certsvm.problem.rows import Vector

# Memory of interpreter, libraries and compiler; and of training per byte of a file: the rows twice,
# and arrays for them. A byte of text may become three bytes of rows.
_WITHOUT_DATA, _PER_BYTE, _PER_BYTE_OF_TEXT = 300_000_000, 3, 7
_BLOCK_BYTES = 16_000_000


def kind_of(path: str) -> str:
    """One of "blocks", "table" and "text"; standard input ("-") is text."""
    if path == "-":
        return "text"
    from certsvm.files import compressed

    return compressed.kind_of(path)


def source_of(path: str) -> Any:
    """The path, or standard input for "-"."""
    return sys.stdin.buffer if path == "-" else path


class Dataset(NamedTuple):
    """The content of a file, in memory; ``origin`` is what a model has to know of the file."""

    X: Any
    y: NDArray[Any]
    weights: Vector | None = None
    feature_names: Sequence[str] | None = None
    origin: Mapping[str, Any] = MappingProxyType({})

    def source(self, intercept_scaling: float) -> MemorySource:
        """The source to train on."""
        from certsvm.fitting.sources import MemorySource

        return MemorySource(
            self.X, self.y, self.weights, intercept_scaling=intercept_scaling,
            feature_names=self.feature_names, origin=self.origin,
        )  # fmt: skip


def load(path: str, options: DataOptions, n_jobs: int = 0) -> Dataset:
    """All of a file in memory; remarks of the reader go to standard error."""
    kind = kind_of(path)
    if kind == "text":
        from certsvm.files.libsvm import read_libsvm

        text = read_libsvm(source_of(path), n_jobs=n_jobs, **options.for_text())
        _say_notes(path, text.notes)
        return Dataset(text.X, text.y, origin={"zero_based": text.zero_based})
    from certsvm.files.batch import joined

    if kind == "blocks":
        from certsvm.files.block_file import BlockFile

        options.for_blocks()
        file = BlockFile(path)
        return Dataset(*joined(list(file())), file.feature_names, file.origin)
    from certsvm.files.tables import Table

    table = Table(path, **options.for_table())
    _say_notes(path, table.notes)
    rows = joined(list(table_blocks(table, options)))
    return Dataset(*rows, table.feature_names, table.origin)


def _say_notes(path: str, notes: Sequence[str]) -> None:
    for note in notes:
        say(f"{name_of(path)}: {note}")


def blocks(path: str, options: DataOptions) -> Iterator[Batch]:
    """A file in batches, in bounded memory.

    Rows of text are as wide as the batch needs. Text is one-based unless the options say otherwise:
    without reading all of it, that cannot be detected.
    """
    kind = kind_of(path)
    if kind == "blocks":
        from certsvm.files.block_file import BlockFile

        options.for_blocks()
        yield from BlockFile(path)()
    elif kind == "table":
        from certsvm.files.tables import Table

        yield from table_blocks(Table(path, **options.for_table()), options)
    else:
        yield from _text_blocks(path, options)


def table_blocks(table: Table, options: DataOptions) -> Iterator[Batch]:
    """The rows of a table, in the type that the options ask for."""
    return table.blocks(_BLOCK_BYTES, options.dtype)


def _text_blocks(path: str, options: DataOptions) -> Iterator[Batch]:
    from certsvm.files.batch import Batch, csr
    from certsvm.files.libsvm import LibsvmBlocks

    base = int(not options.zero_based)
    reading = {**options.for_text(), "zero_based": base == 0}
    for X, y, _ in LibsvmBlocks(source_of(path), _BLOCK_BYTES, **reading):
        # X is as wide as its largest index, as it is in the file, requires.
        width = max(X.shape[1] - base, options.features or 0)
        yield Batch(csr(X.data, X.indices - base, X.indptr, (len(y), width)), y)


def too_large(path: str, memory: int, *, certain: bool) -> bool:
    """Whether training on a file in memory might need more than ``memory`` bytes.

    The size of compressed files and pipes is unknown: they count as too large if the answer must be
    ``certain``.
    """
    if path == "-" or not os.path.isfile(path) or _is_compressed(path):
        return certain
    factor = _PER_BYTE if kind_of(path) == "blocks" else _PER_BYTE_OF_TEXT
    return _WITHOUT_DATA + factor * os.path.getsize(path) > memory


def _is_compressed(path: str) -> bool:
    from certsvm.files.compressed import compression_of

    with open(path, "rb") as file:
        start = file.read(8)
    return start.startswith(b"PAR1") or compression_of(start) is not None


def name_of(path: str) -> str:
    """The name of a file in messages."""
    return "standard input" if path == "-" else str(Path(path))
