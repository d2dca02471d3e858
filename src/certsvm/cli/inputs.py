"""Data files of any kind, read into memory or in batches.

Packages that are slow to import are imported where they are used: --help must start at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import say
from certsvm.cli.compilation import watch_compilation
from certsvm.cli.options import Options

if TYPE_CHECKING:
    from certsvm.files.batch import Batch

_BLOCK_BYTES = 16_000_000


def kind_of(path: str) -> str:
    """One of "blocks", "table", "text" and "embeddings"; standard input ("-") is text."""
    if path == "-":
        return "text"
    from certsvm.files import compressed, embeddings

    return "embeddings" if embeddings.is_embeddings(path) else compressed.kind_of(path)


def name_of(path: str) -> str:
    """The name of a file in messages."""
    return "standard input" if path == "-" else str(Path(path))


def source_of(path: str) -> Any:
    """The path, or standard input for "-"."""
    return sys.stdin.buffer if path == "-" else path


def say_notes(path: str, notes: Sequence[str]) -> None:
    """Print remarks about a file."""
    for note in notes:
        say(f"{name_of(path)}: {note}")


def opened(path: str, options: Options, **more: Any) -> Any:
    """The reader of a file: ``BlockFile``, ``Embeddings``, ``Table``, or ``LibsvmBlocks``."""
    kind = kind_of(path)
    reading = options.reading(kind) | more
    if kind == "blocks":
        from certsvm.files.block_file import BlockFile

        return BlockFile(path)
    if kind == "embeddings":
        from certsvm.files.embeddings import Embeddings

        return Embeddings(path, **reading)
    if kind == "table":
        from certsvm.files.tables import Table

        return Table(path, **reading)
    from certsvm.files.libsvm import LibsvmBlocks

    watch_compilation(quiet=options.silent)
    return LibsvmBlocks(source_of(path), _BLOCK_BYTES, dtype=options.dtype, **reading)


def batches_of(file: Any, options: Options) -> Iterable[Batch]:
    """The rows of a file that was opened, in bounded memory. Indices of text are as in the file."""
    if hasattr(file, "blocks"):
        batches: Iterable[Batch] = file.blocks(_BLOCK_BYTES, options.dtype)
        return batches
    return file() if callable(file) else file  # type: ignore[no-any-return]


def load(path: str, options: Options, **more: Any) -> tuple[Batch, dict[str, Any]]:
    """All of a file in memory, with its ``feature_names`` and ``origin`` for the model.

    Remarks of the reader, to which ``more`` goes, are printed on standard error.
    """
    from certsvm.files.batch import Batch, joined

    watch_compilation(quiet=options.silent)
    if kind_of(path) == "text":
        from certsvm.files.libsvm import read_libsvm

        how = options.reading("text") | {"dtype": options.dtype, "n_jobs": options.n_jobs or 0}
        text = read_libsvm(source_of(path), **how)
        say_notes(path, text.notes)
        return Batch(text.X, text.y), {"origin": {"zero_based": text.zero_based}}
    file = opened(path, options, **more)
    if kind_of(path) == "embeddings":
        # A device takes them as they are.
        return file.read(None if options.device else options.dtype), {}
    say_notes(path, getattr(file, "notes", ()))
    rows = joined(list(batches_of(file, options)))
    if unseen := getattr(file, "unseen", None):
        say_notes(path, [f"{unseen.total()} values were not seen before; they count as none"])
    return rows, {"feature_names": file.feature_names, "origin": file.origin}
