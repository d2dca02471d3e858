"""Data files as commands see them: what kind they are, in memory or as a stream.

Whatever takes long to import is imported where it is used: --help must be there at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from certsvm.cli.app import BadInput, say
from certsvm.cli.options import DataOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.fitting.sources import MemorySource
    from certsvm.problem.rows import Vector

# What interpreter, libraries and compiler take, and what training takes for a byte of a file: twice
# the rows, and numbers for them. A byte of text may be three of rows.
_WITHOUT_DATA, _PER_BYTE, _PER_BYTE_OF_TEXT = 300_000_000, 3, 7
_BLOCK_BYTES = 16_000_000


def kind_of(path: str) -> str:
    """One of "blocks", "table" and "text"; standard input ("-") is text."""
    if path == "-":
        return "text"
    from certsvm.data import kinds

    return kinds.kind_of(path)


def require_other_file(output: str, *inputs: str) -> None:
    """Raise if what is to be written is one of the files that are read."""
    for path in inputs:
        if path != "-" and os.path.exists(output) and os.path.samefile(path, output):
            raise BadInput(f"{output} is read from, and would be overwritten")


def source_of(path: str) -> Any:
    """What readers of text take: the path, or standard input."""
    return sys.stdin.buffer if path == "-" else path


class Dataset(NamedTuple):
    """All of a file, in memory.

    ``zero_based`` says whether it is text, or was made from text, that counts columns from zero;
    None if it has nothing to do with text.
    """

    X: Any
    y: NDArray[Any]
    weights: Vector | None = None
    feature_names: Sequence[str] | None = None
    zero_based: bool | None = None

    def source(self, intercept_scaling: float) -> MemorySource:
        """The data, to be trained on."""
        from certsvm.fitting.sources import MemorySource

        return MemorySource(
            self.X, self.y, self.weights, intercept_scaling=intercept_scaling,
            feature_names=self.feature_names,
        )  # fmt: skip


def load(path: str, options: DataOptions, n_jobs: int = 0) -> Dataset:
    """All of a file in memory. What is worth a note goes to standard error."""
    kind = kind_of(path)
    if kind == "text":
        from certsvm.data.libsvm import read_libsvm

        text = read_libsvm(source_of(path), n_jobs=n_jobs, **options.for_text())
        for note in text.notes:
            say(f"{_name(path)}: {note}")
        return Dataset(text.X, text.y, zero_based=text.zero_based)
    from certsvm.data.batch import joined

    rows = joined(list(blocks(path, options)))
    if kind == "blocks":
        from certsvm.data.block_file import BlockFile

        summary = BlockFile(path).summary
        return Dataset(*rows, summary.feature_names, summary.zero_based)
    from certsvm.data.tables import Table

    return Dataset(*rows, Table(path, **options.for_table()).feature_names)


def blocks(
    path: str,
    options: DataOptions,
    n_columns: int | None = None,
    features: Sequence[str] | None = None,
) -> Iterator[Any]:
    """A file in pieces (X, y, weights), in bounded memory.

    Of a table, ``features`` says which columns to take, in which order. For text, ``n_columns``
    says how wide the rows are; whether it is zero- or one-based cannot be found out before all of
    it is read, so it is what the options say, or else one-based.
    """
    from certsvm.data.batch import Batch

    kind = kind_of(path)
    if kind == "blocks":
        from certsvm.data.block_file import BlockFile

        options.for_blocks()
        for block in BlockFile(path)():
            yield Batch(*block)
    elif kind == "table":
        from certsvm.data.tables import Table

        table = Table(path, features=features, **options.for_table())
        for rows in table.blocks(_BLOCK_BYTES):
            yield Batch(table.in_type(rows.X, options.dtype), rows.y, rows.weights)
    else:
        yield from _text_blocks(path, options, n_columns)


def _text_blocks(path: str, options: DataOptions, n_columns: int | None) -> Iterator[Any]:
    import numpy as np
    import scipy.sparse as sp

    from certsvm.data.batch import Batch
    from certsvm.data.libsvm import LibsvmBlocks

    told = options.for_text()
    told["zero_based"] = bool(options.zero_based)
    for block in LibsvmBlocks(source_of(path), _BLOCK_BYTES, **told):
        indices = block.indices - int(not options.zero_based)
        width = n_columns if n_columns is not None else int(indices.max(initial=-1)) + 1
        if indices.size and int(indices.max()) >= width:
            row = int(np.searchsorted(block.indptr, np.argmax(indices >= width), side="right"))
            raise BadInput(
                f"{_name(path)}: row {block.first_row + row} has feature "
                f"{int(indices.max()) + int(not options.zero_based)}; the model has {width}. "
                "Say --zero-based or --one-based if the file is not what the model was trained on."
            )
        X = sp.csr_matrix((len(block.labels), width), dtype=block.values.dtype)
        X.data, X.indices, X.indptr = block.values, indices, block.indptr
        yield Batch(X, block.labels, None)


def too_large(path: str, memory: int, *, certain: bool) -> bool:
    """Whether training on a file in memory might take more than this.

    What is compressed, or comes through a pipe, might take anything; that counts only if the
    answer must be ``certain``.
    """
    if path == "-" or not os.path.isfile(path) or _is_compressed(path):
        return certain
    factor = _PER_BYTE if kind_of(path) == "blocks" else _PER_BYTE_OF_TEXT
    return _WITHOUT_DATA + factor * os.path.getsize(path) > memory


def _is_compressed(path: str) -> bool:
    from certsvm.data.compressed import compression_of

    with open(path, "rb") as file:
        start = file.read(8)
    return start.startswith(b"PAR1") or compression_of(start) is not None


def physical_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def all_threads() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _name(path: str) -> str:
    return "standard input" if path == "-" else str(Path(path))
