"""Embeddings in files: dense rows of numbers in .npy, .safetensors or Parquet, with labels.

Arrays and tensors are mapped into memory, and Parquet is read a batch at a time. Nothing in a file
is executed: arrays of Python's objects are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from certsvm.files.batch import Batch, joined
from certsvm.files.memory import LARGEST_BLOCK
from certsvm.matrices import listed

_NPY, _PARQUET, _SAFETENSORS = b"\x93NUMPY", b"PAR1", ".safetensors"
_LABELS = ("label", "labels", "y")


def has_lists(path: str | os.PathLike[str]) -> bool:
    """Whether a Parquet file has a column of lists; the reader of tables explains errors."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return bool(_lists(pa.parquet.read_schema(path)))
    except (OSError, pa.ArrowException):
        return False


class Embeddings:
    """Rows and labels in a file.

    Parameters
    ----------
    path : path
        The file.
    label : str, default=None
        Where the labels are: a file .npy, or a tensor or column of the file; by default that which
        is called "label", "labels" or "y".
    embeddings : str, default=None
        The tensor or column of the rows, if there are several matrices or columns of lists.
    labelled : bool, default=True
        Whether labels are needed.

    Attributes
    ----------
    n_rows : int
        How many there are.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", np.eye(3, dtype=np.float16))
    >>> np.save(folder / "y.npy", np.array(["cat", "dog", "cat"]))
    >>> file = Embeddings(folder / "X.npy", label=str(folder / "y.npy"))
    >>> [(batch.X.dtype.name, batch.X.shape, batch.y.tolist()) for batch in file.blocks()]
    [('float32', (3, 3), ['cat', 'dog', 'cat'])]
    """

    feature_names = None
    origin: ClassVar[dict[str, Any]] = {}

    def __init__(
        self, path: str | os.PathLike[str], *, label: str | None = None,
        embeddings: str | None = None, labelled: bool = True,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        # The rows, mapped; or the columns of rows and labels in Parquet.
        self._X: Any = None
        self._columns: list[str] = []
        self._y: NDArray[Any] | None = None
        apart = label if label is not None and label.endswith(".npy") else None
        within = None if apart else label
        with self.path.open("rb") as file:
            start = file.read(len(_NPY))
        if start == _NPY:
            if embeddings is not None or within is not None:
                raise ValueError(f"{path} is one array, without names; labels are in a file .npy")
            self._X = _array(self.path)
        elif start.startswith(_PARQUET):
            self._open_parquet(within, embeddings)
        else:
            self._open_safetensors(within, embeddings)
        if self._X is not None:
            _check_rows(self.path, self._X)
            self.n_rows, self._row_bytes = self._X.shape[0], 8 * self._X.shape[1]
        if apart is not None:
            # In place of those in the file.
            self._y, self._columns = _array(apart), self._columns[:1]
        if self._y is not None:
            self._y = _checked_labels(apart or str(path), self._y, self.n_rows)
        elif labelled and len(self._columns) < 2:
            raise ValueError(f"{path} has no labels: say where they are (--labels FILE or NAME)")

    def _open_safetensors(self, label: str | None, embeddings: str | None) -> None:
        # PyTorch maps tensors, and NumPy does not know bfloat16.
        framework = "pt" if find_spec("torch") else "np"
        try:
            with safe_open(self.path, framework=framework) as file:
                names = list(file.keys())
                matrices = [k for k in names if len(file.get_slice(k).get_shape()) == 2]
                chosen = self._chosen(names, matrices, label, embeddings)
                X, *y = (file.get_tensor(name) for name in chosen)
        except (SafetensorError, TypeError) as error:
            raise ValueError(f"{self.path} cannot be read as safetensors: {error}") from None
        self._X = X if str(X.dtype) == "torch.bfloat16" else np.asarray(X)
        self._y = np.asarray(y[0]) if y else None

    def _open_parquet(self, label: str | None, embeddings: str | None) -> None:
        from pyarrow.parquet import ParquetFile

        from certsvm.files.columns import explained

        with explained(str(self.path)), ParquetFile(self.path) as file:
            schema, self.n_rows = file.schema_arrow, file.metadata.num_rows
        self._columns = self._chosen(schema.names, _lists(schema), label, embeddings)
        if not self.n_rows:
            raise ValueError(f"{self.path} has no rows")
        kind = schema.field(self._columns[0]).type
        self._row_bytes = 8 * max(1, getattr(kind, "list_size", 1024))

    def _chosen(
        self, names: Sequence[str], matrices: Sequence[str], label: str | None,
        embeddings: str | None,
    ) -> list[str]:  # fmt: skip
        """The names of the rows, and of the labels if there are any."""
        label = label or next((name for name in _LABELS if name in names), None)
        chosen = matrices[0] if embeddings is None and len(matrices) == 1 else embeddings
        if chosen not in matrices or chosen is None:
            there = listed(matrices) or "none"
            raise ValueError(f"{self.path}: name the rows (--embeddings NAME); there are {there}")
        if label not in (None, *names):
            raise ValueError(f"{self.path} has no labels {label!r}; there are {listed(names)}")
        return [chosen] if label is None else [chosen, label]

    def blocks(self, block_bytes: int = LARGEST_BLOCK, dtype: Any = np.float64) -> Iterator[Batch]:
        """All rows, in blocks of about this size as float64; labels that are missing are "".

        Values are in single precision if that holds them, or if ``dtype`` says so; None leaves them
        as they are stored.
        """
        size, first = max(1, block_bytes // self._row_bytes), 0
        mapped = ((self._X[i : i + size], None) for i in range(0, self.n_rows, size))
        for X, y in self._parquet(size) if self._columns else mapped:
            labels = y if self._y is None else self._y[first : first + len(X)]
            yield Batch(_converted(X, dtype), np.full(len(X), "") if labels is None else labels)
            first += len(X)

    __call__ = blocks

    def _parquet(self, size: int) -> Iterator[tuple[Any, Any]]:
        import pyarrow.compute as pc
        from pyarrow.parquet import ParquetFile

        from certsvm.files.columns import explained

        with explained(str(self.path)), ParquetFile(self.path) as file:
            for batch in file.iter_batches(size, columns=self._columns):
                column, *labels = (batch.column(name) for name in self._columns)
                values, ends = column.flatten(), pc.min_max(pc.list_value_length(column))
                if column.null_count or values.null_count or ends["min"] != ends["max"]:
                    raise ValueError("embeddings are missing, or of different lengths")
                X = values.to_numpy(zero_copy_only=False).reshape(len(column), -1)
                _check_rows(self.path, X)
                y = [np.array(values.to_pylist()) for values in labels]
                yield X, _checked_labels(str(self.path), y[0], len(X)) if y else None

    def read(self, dtype: Any) -> Batch:
        """All rows; those of arrays and tensors stay where they are if they are of that type."""
        size = LARGEST_BLOCK if self._columns else self.n_rows * self._row_bytes
        return joined(list(self.blocks(size, dtype)))


def _array(path: str | os.PathLike[str]) -> Any:
    """An array in a file, mapped into memory; it can be written to, without changing the file."""
    try:
        with np.errstate(over="ignore"):
            return np.load(path, mmap_mode="c", allow_pickle=False)
    except Exception as error:
        # A header is parsed as Python's literals, which may be wrong in many ways.
        raise ValueError(f"{path} cannot be read as an array of numbers: {error}") from None


def _check_rows(path: Path, X: Any) -> None:
    if isinstance(X, np.ndarray) and not (X.dtype.kind in "biuf" and X.dtype.itemsize <= 8):
        raise ValueError(f"{path} holds {X.dtype}, not real numbers of up to 64 bits")
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{path} has shape {tuple(X.shape)}: a row for each embedding is needed")


def _checked_labels(path: str, y: NDArray[Any], n_rows: int) -> NDArray[Any]:
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape != (n_rows,) or y.dtype.kind not in "biufU":
        raise ValueError(
            f"{path}: {n_rows} rows need as many labels, integers, booleans or strings, not an "
            f"array of shape {y.shape} and type {y.dtype}"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{path} has labels that are missing or not finite")
    return np.array(y, dtype=y.dtype.newbyteorder("="))


def _converted(X: Any, dtype: Any) -> Any:
    if not isinstance(X, np.ndarray):
        return X if dtype is None else X.float().numpy()
    stored = X.dtype.newbyteorder("=")
    single = dtype is not None and np.dtype(dtype) == np.float32
    wanted = np.dtype(np.float32) if single else np.result_type(stored, np.float32)
    return np.ascontiguousarray(X, dtype=stored if dtype is None else wanted)


def _lists(schema: Any) -> list[str]:
    """The columns of lists."""
    kinds = ("list<", "large_list<", "fixed_size_list<")
    return [field.name for field in schema if str(field.type).startswith(kinds)]
