"""From data of any kind to checked blocks on the workers.

Arrays, data frames, lists of delayed blocks and folders of block files all become one task for each
block, which runs on a worker, checks the block and keeps it there. The client sees summaries only.
A block that is lost with its worker is computed again by its task, and must then have the same
digest as before: a certificate is about one set of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from dask.sizeof import sizeof
from numpy.typing import NDArray

from certsvm.files.streams import DataChangedError, block_digest, checked_block
from certsvm.matrices import checked_csr, exact_labels, refuse_masked
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows, Vector, as_compiled_for
from certsvm.problem.sizes import ClassSurvey

# Up to this many labels are found without sorting.
_FEW_LABELS = 8


@dataclass(frozen=True)
class LoadedBlock:
    """Checked rows on a worker; row k has the label ``labels[codes[k]]``."""

    rows: Rows | None
    labels: NDArray[Any]
    codes: NDArray[np.int64]
    weights: Vector | None
    digest: bytes
    names: tuple[str, ...] | None = None


@dataclass
class BlockSummary:
    """What the client knows about a block."""

    n_rows: int
    n_columns: int
    n_stored: int
    R: float
    digest: bytes
    names: tuple[str, ...] | None = None
    classes: dict[Any, ClassSurvey] = field(default_factory=dict)


def load(X: Any, y: Any, weights: Any, intercept_scaling: float, number: int) -> LoadedBlock:
    """Check a block, on a worker; ``number`` is for error messages."""
    try:
        names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
        weights = None if weights is None else _as_vector(weights)
        exact_labels(y)
        X, y, weights = checked_block((_as_rows(X), _as_vector(y), weights))
        if X.shape[0] == 0:
            # Its columns do not matter: an empty partition may have none.
            return LoadedBlock(None, y, np.empty(0, dtype=np.int64), weights, b"")
        rows = Rows(X, intercept_scaling=intercept_scaling)
        return LoadedBlock(rows, *distinct(y), weights, block_digest(X, y, weights), names)
    except (TypeError, ValueError) as error:
        raise ValueError(f"block {number + 1} of the data: {error}") from None


def load_from_file(
    path: str, position: int, intercept_scaling: float, number: int, n_columns: int
) -> LoadedBlock:
    """Load the block at a position of a file that every worker can read."""
    from certsvm.files import BlockFile

    X, y, weights = BlockFile(path).block(position)
    return load(_widened(X, n_columns), y, weights, intercept_scaling, number)


def _widened(X: Any, n_columns: int) -> Any:
    """The same rows with as many columns as the widest file."""
    if X.shape[1] == n_columns:
        return X
    if X.shape[1] > n_columns:
        raise ValueError(f"a file has {X.shape[1]} columns, and had {n_columns} before")
    X = sp.csr_matrix(X)
    X.resize((X.shape[0], n_columns))
    return X


def summarise(block: LoadedBlock) -> BlockSummary:
    """Summarise a block for the client, on the worker."""
    if block.rows is None:
        return BlockSummary(0, 0, 0, 0.0, block.digest)
    rows, weights = block.rows, block.weights
    norms = rows.squared_norms if weights is None else rows.squared_norms[weights > 0]
    summary = BlockSummary(
        rows.n_rows,
        rows.n_columns,
        rows.n_stored,
        math.sqrt(float(norms.max(initial=0.0))),
        block.digest,
        block.names,
    )
    for i, label in enumerate(block.labels.tolist()):
        members = block.codes == i
        survey = summary.classes.setdefault(label, ClassSurvey())
        survey.add(int(members.sum()), None if weights is None else weights[members])
    return summary


def distinct(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels in ascending order, and the position of each row's label among them.

    The result of ``numpy.unique`` with ``return_inverse``, without sorting if labels are few.

    Examples
    --------
    >>> labels, codes = distinct(np.array([3.0, -1.0, 3.0]))
    >>> labels.tolist(), codes.tolist()
    ([-1.0, 3.0], [1, 0, 1])
    """
    if y.dtype.kind in "biuf":
        seen, codes = [y[0]], np.zeros(y.size, dtype=np.int64)
        rest = y != y[0]
        while rest.any() and len(seen) < _FEW_LABELS:
            label = y[rest.argmax()]
            members = y == label
            codes[members] = len(seen)
            seen.append(label)
            rest &= ~members
        if not rest.any():
            labels, order = np.unique(seen, return_inverse=True)
            return labels, order[codes]
    labels, codes = np.unique(y, return_inverse=True)
    return labels, codes.astype(np.int64, copy=False)


def signed_weights_of(
    block: LoadedBlock, digest: bytes, classes: NDArray[Any], class_weights: Vector
) -> Vector:
    """label_k * s_k of a block's rows, given the signed weight of each class."""
    _require_unchanged(block, digest)
    # NumPy compares labels of different types in a third, which may have neither.
    labels = block.labels.astype(classes.dtype)
    where = np.searchsorted(classes, labels)
    if not (where < classes.size).all() or not (classes[where] == labels).all():
        raise ValueError("a block of the data has labels that the others cannot be compared with")
    signed: Vector = class_weights[where][block.codes]
    return signed if block.weights is None else signed * block.weights


def part_of(block: LoadedBlock, signed_weights: Vector, digest: bytes, first: int) -> Part:
    """A block as a part of one class's problem; ``first`` counts the rows before it."""
    _require_unchanged(block, digest)
    assert block.rows is not None
    return Part(block.rows, as_compiled_for(signed_weights), first)


def _require_unchanged(block: LoadedBlock, digest: bytes) -> None:
    if block.digest != digest or block.rows is None:
        raise DataChangedError(
            "a block of the data that was computed again, after its worker was lost, has changed: "
            "its task does not give the same rows each time. Nothing is certified."
        )


@sizeof.register(LoadedBlock)
def _size_of_block(block: LoadedBlock) -> int:
    """The size in bytes, for Dask's supervision of memory."""
    return int(block.codes.nbytes) + (0 if block.rows is None else block.rows.nbytes)


@dataclass(frozen=True)
class Loading:
    """Tasks that load the blocks, and what is known about the columns."""

    tasks: list[Delayed]
    feature_names: list[str] | None = None
    origin: dict[str, Any] = field(default_factory=dict)


def loading(X: Any, y: Any, sample_weight: Any, intercept_scaling: float) -> Loading:
    """Make the tasks that load X, y and the weights.

    Raises
    ------
    ValueError, TypeError
        If they are not cut into the same number of blocks, or are of unsupported kinds.
    """
    if isinstance(X, str | Path):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "the files of a folder hold their labels and weights: pass y=None and "
                "sample_weight=None"
            )
        return _from_folder(Path(X), intercept_scaling)
    if y is None:
        raise ValueError("y is missing")
    rows = _delayed_blocks(X, "X")
    labels = _delayed_blocks(_aligned(y, X, "y"), "y")
    weights: Sequence[Any] = [None] * len(rows)
    if sample_weight is not None:
        weights = _delayed_blocks(_aligned(sample_weight, X, "sample_weight"), "sample_weight")
    for name, blocks in (("y", labels), ("sample_weight", weights)):
        if len(blocks) != len(rows):
            raise ValueError(
                f"X has {len(rows)} blocks of rows, {name} has {len(blocks)}: they must be cut "
                "alike. Rechunk one of them, or pass lists of blocks."
            )
    if not rows:
        raise ValueError("there are no blocks in the data")
    make = delayed(load, pure=False)
    triples = enumerate(zip(rows, labels, weights, strict=True))
    return Loading([make(*triple, intercept_scaling, i) for i, triple in triples])


def _from_folder(folder: Path, intercept_scaling: float) -> Loading:
    from certsvm.files import BlockFile

    if folder.is_file():
        files = [folder]
    else:
        files = sorted(path for path in folder.glob("*.arrow") if not path.name.startswith("."))
    if not files:
        raise ValueError(f"{folder}: no block files (*.arrow) there; certsvm convert makes them")
    opened = [BlockFile(path) for path in files]
    n_columns = max(file.summary.n_columns for file in opened)
    names, origin = opened[0].feature_names, opened[0].origin
    for file in opened[1:]:
        if file.feature_names != names or file.origin.get("one_hot") != origin.get("one_hot"):
            raise ValueError(
                f"{file.path} has other columns than {opened[0].path}: "
                f"{file.feature_names}, not {names}"
            )
        if file.origin != origin:
            raise ValueError(
                f"{file.path} and {opened[0].path} were made from text whose indices count from "
                "zero in one and from one in the other"
            )
    make = delayed(load_from_file, pure=False)
    places = [(file.path, i) for file in opened for i in range(file.n_blocks)]
    tasks = [
        make(str(path.absolute()), position, intercept_scaling, number, n_columns)
        for number, (path, position) in enumerate(places)
    ]
    return Loading(tasks, None if names is None else list(names), origin)


def _delayed_blocks(collection: Any, name: str) -> list[Any]:
    """The blocks of a collection, delayed or not."""
    if isinstance(collection, list | tuple):
        return list(collection)
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"{name} must be a Dask array or data frame, or a list of (delayed) blocks, got "
            f"{type(collection).__name__}. For data in memory use certsvm.LinearSVC."
        )
    blocks = collection.to_delayed()
    if getattr(blocks, "ndim", 1) == 2:
        if blocks.shape[1] != 1:
            raise ValueError(
                f"{name} is cut into blocks of columns as well: rows must be whole. Use "
                "rechunk({1: -1}), which does not move rows."
            )
        blocks = blocks[:, 0]
    return list(blocks)


def _aligned(vector: Any, X: Any, name: str) -> Any:
    """Cut a vector in memory like an array whose chunks are known."""
    if hasattr(vector, "to_delayed") or isinstance(vector, list | tuple):
        return vector
    chunks = getattr(X, "chunks", None)
    values = np.asarray(vector)
    if chunks is None or values.ndim != 1 or any(math.isnan(size) for size in chunks[0]):
        raise TypeError(f"{name} must come in blocks, like X, got {type(vector).__name__}")
    if values.size != sum(chunks[0]):
        raise ValueError(f"X has {sum(chunks[0])} rows, {name} has {values.size} entries")
    return np.split(values, np.cumsum(chunks[0])[:-1])


def _as_rows(X: Any) -> Any:
    """Rows as a SciPy matrix or an array of float32 or float64."""
    if hasattr(X, "to_scipy_sparse"):
        X = X.to_scipy_sparse()
    elif hasattr(X, "tocsr") and not sp.issparse(X):
        X = X.tocsr()
    if sp.issparse(X):
        return checked_csr(X)
    refuse_masked(X=X)
    values = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if len(values) == 0 or {kind.kind for kind in getattr(X, "dtypes", ())} <= set("fiub"):
        # An empty frame, or columns of numbers without a common type.
        values = values.astype(np.float64) if values.dtype.kind == "O" else values
    if values.dtype.kind not in "fiub":
        raise ValueError(f"values of type {values.dtype} are not numbers")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    return values


def _as_vector(values: Any) -> NDArray[Any]:
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    return array.ravel() if array.ndim == 2 and array.shape[1] == 1 else array
