"""Data on a cluster: from collections to checked blocks on the workers.

Whatever comes in (arrays, data frames, lists of delayed blocks, a folder of block files) becomes
one task for each block, which runs on a worker, checks the block and keeps it there. The client
sees summaries only. A block that is lost with its worker is made anew by its task, and must then
have the digest it had before: a certificate is about one set of rows.
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

from certsvm.data.streams import DataChangedError, block_digest, checked_block
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows, Vector, as_compiled_for
from certsvm.problem.sizes import ClassSurvey

# Up to so many labels are found without sorting.
_FEW_LABELS = 8


@dataclass(frozen=True)
class Block:
    """Rows on a worker, checked; row k has the label ``labels[codes[k]]``."""

    rows: Rows | None
    labels: NDArray[Any]
    codes: NDArray[np.int64]
    weights: Vector | None
    digest: bytes
    names: tuple[str, ...] | None = None


@dataclass
class BlockSummary:
    """What the client knows of a block."""

    n_rows: int
    n_columns: int
    n_stored: int
    R: float
    digest: bytes
    names: tuple[str, ...] | None = None
    classes: dict[Any, ClassSurvey] = field(default_factory=dict)


def load(X: Any, y: Any, weights: Any, intercept_scaling: float, which: int) -> Block:
    """Check a block, on a worker. ``which`` is its number, for errors."""
    try:
        names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
        X, y, weights = checked_block((_plain(X), _plain_labels(y), _plain_vector(weights)))
        if X.shape[0] == 0:
            # Its columns are of no consequence: an empty partition may not know its own.
            return Block(None, y, np.empty(0, dtype=np.int64), weights, b"")
        digest = block_digest(X, y, weights)
        return Block(
            Rows(X, intercept_scaling=intercept_scaling), *distinct(y), weights, digest, names
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"block {which + 1} of the data: {error}") from None


def load_from_file(
    path: str, number: int, intercept_scaling: float, which: int, n_columns: int
) -> Block:
    """A block of a file, which every worker must see."""
    from certsvm.data import BlockFile

    X, y, weights = BlockFile(path).block(number)
    return load(_wide(X, n_columns), y, weights, intercept_scaling, which)


def _wide(X: Any, n_columns: int) -> Any:
    """The same rows with as many columns as the widest file has."""
    if X.shape[1] == n_columns:
        return X
    if X.shape[1] > n_columns:
        raise ValueError(f"a file has {X.shape[1]} columns, and had {n_columns} before")
    X = sp.csr_matrix(X)
    X.resize((X.shape[0], n_columns))
    return X


def summarise(block: Block) -> BlockSummary:
    """What the client needs to know, computed on the worker."""
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
        mine = block.codes == i
        survey = summary.classes.setdefault(label, ClassSurvey())
        survey.add(int(mine.sum()), None if weights is None else weights[mine])
    return summary


def distinct(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels in ascending order, and which of them each row has.

    As ``numpy.unique`` has it, but without sorting where there are few.

    Examples
    --------
    >>> labels, codes = distinct(np.array([3.0, -1.0, 3.0]))
    >>> labels.tolist(), codes.tolist()
    ([-1.0, 3.0], [1, 0, 1])
    """
    if y.dtype.kind in "biuf":
        found, codes = [y[0]], np.zeros(y.size, dtype=np.int64)
        left = y != y[0]
        while left.any() and len(found) < _FEW_LABELS:
            mine = y == y[left.argmax()]
            codes[mine] = len(found)
            found.append(y[left.argmax()])
            left &= ~mine
        if not left.any():
            labels, order = np.unique(found, return_inverse=True)
            return labels, order[codes]
    labels, codes = np.unique(y, return_inverse=True)
    return labels, codes.astype(np.int64, copy=False)


def signed_weights_of(
    block: Block, digest: bytes, classes: NDArray[Any], class_weights: Vector
) -> Vector:
    """A block's labels and weights as one class's problem sees them.

    ``class_weights`` has the sign and the weight of each class.
    """
    _require_unchanged(block, digest)
    where = np.searchsorted(classes, block.labels)
    if not (where < classes.size).all() or not (classes[where] == block.labels).all():
        raise ValueError("a block of the data has labels that the others cannot be compared with")
    signed: Vector = class_weights[where][block.codes]
    return signed if block.weights is None else signed * block.weights


def part_of(block: Block, signed_weights: Vector, digest: bytes, first: int) -> Part:
    """The rows of a block with what one class's problem says of them."""
    _require_unchanged(block, digest)
    assert block.rows is not None
    return Part(block.rows, as_compiled_for(signed_weights), first)


def _require_unchanged(block: Block, digest: bytes) -> None:
    if block.digest != digest or block.rows is None:
        raise DataChangedError(
            "a block of the data that was made anew, after its worker was lost, is not what it was "
            "before: its task does not give the same rows each time. Nothing is certified."
        )


@sizeof.register(Block)
def _size_of_block(block: Block) -> int:
    """For Dask, which watches its workers' memory."""
    return int(block.codes.nbytes) + (0 if block.rows is None else block.rows.nbytes)


@dataclass(frozen=True)
class Loading:
    """Tasks that load the blocks, one for each, and what is known of their columns."""

    tasks: list[Delayed]
    feature_names: list[str] | None = None
    zero_based: bool | None = None


def loading(X: Any, y: Any, sample_weight: Any, intercept_scaling: float) -> Loading:
    """Tasks for whatever data there is.

    Raises
    ------
    ValueError, TypeError
        If X, y and the weights are not cut into the same number of blocks, or are of kinds that
        do not go together.
    """
    if isinstance(X, str | Path):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "the files of a folder have their labels and weights: pass y=None and "
                "sample_weight=None"
            )
        return _from_folder(Path(X), intercept_scaling)
    rows = _delayed_blocks(X, "X")
    names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
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
    together = enumerate(zip(rows, labels, weights, strict=True))
    return Loading([make(*block, intercept_scaling, i) for i, block in together], names)


def _from_folder(folder: Path, intercept_scaling: float) -> Loading:
    from certsvm.data import BlockFile

    if folder.is_file():
        files = [folder]
    else:
        files = sorted(path for path in folder.glob("*.arrow") if not path.name.startswith("."))
    if not files:
        raise ValueError(f"{folder}: no block files (*.arrow) there; certsvm convert makes them")
    opened = [BlockFile(path) for path in files]
    n_columns = max(file.summary.n_columns for file in opened)
    names, zero_based = opened[0].summary.feature_names, opened[0].summary.zero_based
    for file in opened:
        if file.summary.feature_names != names:
            raise ValueError(
                f"{file.path} has other columns than {opened[0].path}: "
                f"{file.summary.feature_names}, not {names}"
            )
        if file.summary.zero_based != zero_based:
            raise ValueError(
                f"{file.path} and {opened[0].path} were made from text whose indices count from "
                "zero in one and from one in the other"
            )
    make = delayed(load_from_file, pure=False)
    places = [(file.path, i) for file in opened for i in range(file.n_blocks)]
    tasks = [
        make(str(path.absolute()), number, intercept_scaling, which, n_columns)
        for which, (path, number) in enumerate(places)
    ]
    return Loading(tasks, None if names is None else list(names), zero_based)


def _delayed_blocks(collection: Any, name: str) -> list[Any]:
    """Delayed objects, or blocks as they are."""
    if hasattr(collection, "to_delayed"):
        delayed = collection.to_delayed()
        if isinstance(delayed, np.ndarray):
            if delayed.ndim == 2:
                if delayed.shape[1] != 1:
                    raise ValueError(
                        f"{name} is cut into blocks of columns as well: rows must be whole. Use "
                        "rechunk({1: -1}), which does not move rows."
                    )
                delayed = delayed[:, 0]
            return list(delayed)
        return list(delayed)
    if isinstance(collection, list | tuple):
        return list(collection)
    raise TypeError(
        f"{name} must be a Dask array or data frame, or a list of (delayed) blocks, got "
        f"{type(collection).__name__}. For data in memory use certsvm.LinearSVC."
    )


def _aligned(vector: Any, X: Any, name: str) -> Any:
    """Cut a vector in memory like an array whose chunks are known."""
    if hasattr(vector, "to_delayed") or isinstance(vector, list | tuple) or vector is None:
        if vector is None:
            raise ValueError(f"{name} is missing")
        return vector
    chunks = getattr(X, "chunks", None)
    values = np.asarray(vector)
    if chunks is None or values.ndim != 1 or any(math.isnan(size) for size in chunks[0]):
        raise TypeError(f"{name} must come in blocks, like X, got {type(vector).__name__}")
    if values.size != sum(chunks[0]):
        raise ValueError(f"X has {sum(chunks[0])} rows, {name} has {values.size} entries")
    edges = np.cumsum(chunks[0])[:-1]
    return list(np.split(values, edges))


def _plain(X: Any) -> Any:
    """Rows as a SciPy matrix or an array; data frames come as such."""
    if sp.issparse(X):
        return X
    if hasattr(X, "to_scipy_sparse"):
        return X.to_scipy_sparse()
    if hasattr(X, "tocsr"):
        return sp.csr_matrix(X.tocsr())
    values = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if len(values) == 0 or {kind.kind for kind in getattr(X, "dtypes", ())} <= set("fiub"):
        # Nothing at all, or numbers of several types, which have no type in common.
        values = values.astype(np.float64) if values.dtype.kind == "O" else values
    if values.dtype.kind not in "fiub":
        raise ValueError(f"values of type {values.dtype} are not numbers")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    return values


def _plain_labels(y: Any) -> NDArray[Any]:
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values


def _plain_vector(weights: Any) -> Any:
    return None if weights is None else _plain_labels(weights)
