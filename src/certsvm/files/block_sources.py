"""Whatever holds blocks of rows, as a function that begins a pass over them.

Training reads its data many times. Files, lists, and Arrow data in memory can be read again; a
stream that can be read once cannot, and is refused.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Any

from certsvm.files.batch import Batch, joined
from certsvm.files.memory import LARGEST_BLOCK
from certsvm.files.streams import BlockSource

if TYPE_CHECKING:
    from certsvm.files.columns import Columns

# Modules that are slow to import are imported where they are used.
_READERS = {
    "blocks": ("block_file", "BlockFile"), "embeddings": ("embeddings", "Embeddings"),
    "table": ("tables", "Table"), "text": ("libsvm", "LibsvmBlocks"),
}  # fmt: skip
_TABLES = tuple(name + end for name in (".csv", ".tsv") for end in ("", ".gz", ".bz2", ".zst"))


def kind_of(path: str | os.PathLike[str]) -> str:
    """One of "blocks", "embeddings", "table" and "text"; the name tells CSV from text.

    Pipes are text: bytes read from them to find out would be lost.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return "text"
    name = os.fspath(path).lower()
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"ARROW1"):
        return "blocks"
    if start.startswith(b"\x93NUMPY") or name.endswith(".safetensors"):
        return "embeddings"
    if start.startswith(b"PAR1"):
        from certsvm.files.embeddings import has_lists

        return "embeddings" if has_lists(path) else "table"
    return "table" if name.endswith(_TABLES) else "text"


def open_data(path: Any, **options: Any) -> Any:
    """The reader of a file: ``BlockFile``, ``Embeddings``, ``Table``, or ``LibsvmBlocks``.

    Each begins a pass when it is called, and has ``feature_names`` and ``origin`` for the model.
    ``options`` are those of the reader.
    """
    module, name = _READERS[kind_of(path) if isinstance(path, str | os.PathLike) else "text"]
    return getattr(import_module(f"certsvm.files.{module}"), name)(path, **options)


def block_source(
    data: Any, *, label: str | None = None, weight: str | None = None, categorical: bool = False
) -> BlockSource:
    """A function that begins a pass over the data.

    Parameters
    ----------
    data : callable, path, list of blocks, or Arrow data
        A function that returns blocks, or an Arrow stream; the path of a file that ``certsvm
        convert`` made, of libsvm text, CSV, Parquet or embeddings; blocks ``(X, y)`` or ``(X, y,
        weights)``; or anything with ``__arrow_c_stream__`` that can be read again, such as a frame
        of polars.
    label, weight : str, default=None
        For tables and Arrow data: the columns of labels (by default "label", or the last) and of
        weights. For embeddings, ``label`` is a file .npy of labels, or their name in the file.
    categorical : bool, default=False
        For tables and Arrow data: whether columns of strings become one-hot.

    Returns
    -------
    source : callable
        Its attributes ``feature_names`` and ``origin``, if it has them, are for the model.

    Examples
    --------
    >>> import numpy as np
    >>> source = block_source([(np.eye(2), np.array([1, -1]))])
    >>> len(list(source())), len(list(source()))
    (1, 1)
    """
    roles: dict[str, Any] = {"label": label, "weight": weight, "categorical": categorical}
    if isinstance(data, str | os.PathLike):
        roles = {name: value for name, value in roles.items() if value}
        kind = kind_of(data)
        if kind != "table":
            _refuse(
                {name: roles[name] for name in roles if (kind, name) != ("embeddings", "label")}
            )
        return open_data(data, **roles)  # type: ignore[no-any-return]
    if hasattr(data, "__arrow_c_stream__"):
        if hasattr(data, "read_next_batch") or hasattr(data, "__next__"):
            raise TypeError(
                f"a {type(data).__name__} can be read once, and training reads its data many "
                "times. Pass a function that makes one, or `reader.read_all()`."
            )
        return _Function(lambda: data, roles)
    if callable(data) and not hasattr(data, "feature_names"):
        return _Function(data, roles)
    _refuse(roles)
    if callable(data):
        return data  # type: ignore[no-any-return]
    if isinstance(data, list | tuple):
        return lambda: data
    raise TypeError(
        "the data must be a function that begins a pass and returns the blocks, a list of blocks, "
        "the path of a file, or Arrow data, not the blocks themselves one after the other: they "
        f"are read many times. Got {type(data).__name__}."
    )


def only_block(source: BlockSource) -> Batch | None:
    """The rows of a file of text or of a table, if they are a single block.

    It would be parsed anew in each pass, which takes far longer than the pass itself.
    """
    if not getattr(source, "is_parsed", False):
        return None
    with closing(iter(source())) as blocks:  # type: ignore[type-var]
        first = list(itertools.islice(blocks, 2))
    return Batch(*first[0]) if len(first) == 1 else None


def _refuse(roles: dict[str, Any]) -> None:
    for name in (name for name, value in roles.items() if value):
        raise ValueError(f"{name} is for tables and Arrow data")


class _Function:
    """A function that returns blocks, or an Arrow stream, which is cut into blocks."""

    def __init__(self, function: Callable[[], Any], roles: dict[str, Any]) -> None:
        self._function, self._roles = function, roles
        # Known after the first pass.
        self.feature_names: list[str] | None = None
        self.origin: dict[str, Any] = {}
        self._columns: Columns | None = None

    def __call__(self) -> Iterable[tuple[Any, ...]]:
        made = self._function()
        if hasattr(made, "__arrow_c_stream__"):
            return self._rows(made)
        _refuse(self._roles)
        return made  # type: ignore[no-any-return]

    def _rows(self, stream: Any) -> Iterator[Batch]:
        """The rows in blocks of the same size, however the stream is cut."""
        import pyarrow as pa

        from certsvm.files.columns import Columns, explained

        where = "the Arrow stream"
        reader = pa.RecordBatchReader.from_stream(stream)
        columns = self._columns or Columns(where, reader.schema, **self._roles)
        if columns.learnt and not columns.features.values:
            columns.learn(pa.RecordBatchReader.from_stream(self._function()))
        self._columns, self.feature_names = columns, columns.feature_names
        self.origin = columns.origin
        size = max(1, LARGEST_BLOCK // (8 * len(columns.used)))
        held: list[Batch] = []
        n_rows = count = 0
        with explained(where):
            for batch in reader:
                while len(batch):
                    part = batch.slice(0, size - count)
                    batch = batch.slice(len(part))
                    held.append(columns.rows(part, n_rows))
                    n_rows, count = n_rows + len(part), count + len(part)
                    if count == size:
                        yield joined(held)
                        held, count = [], 0
        if held:
            yield joined(held)
