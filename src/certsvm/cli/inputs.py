"""Data files of any kind, read into memory or in batches.

Packages that are slow to import are imported where they are used: --help must start at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import say
from certsvm.cli.interrupts import StandardInput
from certsvm.cli.options import Options

if TYPE_CHECKING:
    from certsvm.files.batch import Batch
    from certsvm.files.tables import Table

_BLOCK_BYTES = 16_000_000


def kind_of(path: str) -> str:
    """One of "blocks", "table" and "text"; standard input ("-") is text."""
    if path == "-":
        return "text"
    from certsvm.files import compressed

    return compressed.kind_of(path)


def name_of(path: str) -> str:
    """The name of a file in messages."""
    return "standard input" if path == "-" else str(Path(path))


def source_of(path: str) -> Any:
    """The path, or standard input for "-"."""
    return StandardInput() if path == "-" else path


def load(path: str, options: Options, n_jobs: int = 0) -> tuple[Batch, dict[str, Any]]:
    """All of a file in memory, with its ``feature_names`` and ``origin`` for the model.

    Remarks of the reader go to standard error.
    """
    from certsvm.files.batch import Batch, joined

    kind = kind_of(path)
    if kind == "text":
        from certsvm.files.libsvm import read_libsvm

        text = read_libsvm(source_of(path), n_jobs=n_jobs, **options.for_text())
        say_notes(path, text.notes)
        return Batch(text.X, text.y), {"origin": {"zero_based": text.zero_based}}
    file: Any
    if kind == "blocks":
        from certsvm.files.block_file import BlockFile

        options.refuse_for_data()
        file = BlockFile(path)
        rows = joined(list(file()))
    else:
        from certsvm.files.tables import Table

        file = Table(path, **options.for_table())
        say_notes(path, file.notes)
        rows = joined(list(table_blocks(file, options)))
    return rows, {"feature_names": file.feature_names, "origin": file.origin}


def say_notes(path: str, notes: Sequence[str]) -> None:
    """Print remarks about a file."""
    for note in notes:
        say(f"{name_of(path)}: {note}")


def blocks(path: str, options: Options) -> Iterator[Batch]:
    """A file in batches, in bounded memory.

    Rows of text are as wide as the batch needs. Text is one-based unless the options say otherwise:
    without reading all of it, that cannot be detected.
    """
    kind = kind_of(path)
    if kind == "blocks":
        from certsvm.files.block_file import BlockFile

        options.refuse_for_data()
        yield from BlockFile(path)()
    elif kind == "table":
        from certsvm.files.tables import Table

        yield from table_blocks(Table(path, **options.for_table()), options)
    else:
        from certsvm.files.batch import Batch, csr
        from certsvm.files.libsvm import LibsvmBlocks

        base = int(not options.zero_based)
        reading = {**options.for_text(), "zero_based": base == 0}
        for X, y, _ in LibsvmBlocks(source_of(path), _BLOCK_BYTES, **reading):
            # X is as wide as its largest index, as it is in the file, requires.
            width = max(X.shape[1] - base, options.features or 0)
            yield Batch(csr(X.data, X.indices - base, X.indptr, (len(y), width)), y)


def table_blocks(table: Table, options: Options) -> Iterator[Batch]:
    """The rows of a table, in the type that the options ask for."""
    return table.blocks(_BLOCK_BYTES, options.dtype)
