"""From data of any kind to checked blocks on the workers.

Arrays, data frames, lists of delayed blocks and folders of block files all become one task for each
block, which runs on a worker, checks the block and keeps it there. The client sees summaries only.
A block that is lost with its worker is computed again by its task, and must then have the same
digest as before: a certificate is about one set of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from dask.sizeof import sizeof
from numpy.typing import NDArray

from certsvm.files.streams import DataChangedError, block_digest, checked_block
from certsvm.fitting.sources import classes_of
from certsvm.matrices import checked_matrix, exact_labels
from certsvm.problem.base import ClassSurvey
from certsvm.problem.rows import Part, Rows, Vector


@dataclass(frozen=True)
class BlockSummary:
    """What the client knows about a block; its classes are those that occur."""

    n_rows: int
    n_columns: int
    n_stored: int
    R: float
    digest: bytes
    names: tuple[str, ...] | None
    classes: dict[Any, ClassSurvey]


@dataclass(frozen=True)
class LoadedBlock:
    """Checked rows on a worker; row k has the label ``labels[codes[k]]``."""

    summary: BlockSummary
    rows: Rows
    labels: NDArray[Any]
    codes: NDArray[np.intp]
    weights: Vector | None


def load(block: tuple[Any, Any, Any], intercept_scaling: float, number: int) -> LoadedBlock:
    """Check rows, labels and weights, on a worker; ``number`` is for error messages."""
    X, y, weights = block
    try:
        names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
        weights = None if weights is None else _flat(np.asarray(weights))
        X, y, weights = checked_block((as_rows(X), _flat(exact_labels(y)), weights))
        rows = Rows(X, intercept_scaling=intercept_scaling)
    except (TypeError, ValueError) as error:
        raise ValueError(f"block {number + 1} of the data: {error}") from None
    labels, codes = classes_of(y)
    surveys = {label: ClassSurvey() for label in labels.tolist()}
    for i, survey in enumerate(surveys.values()):
        members = codes == i
        survey.add(int(members.sum()), None if weights is None else weights[members])
    norms = rows.squared_norms if weights is None else rows.squared_norms[weights > 0]
    R, digest = math.sqrt(float(norms.max(initial=0.0))), block_digest(X, y, weights)
    summary = BlockSummary(rows.n_rows, rows.n_columns, rows.n_stored, R, digest, names, surveys)
    return LoadedBlock(summary, rows, labels, codes, weights)


def part_of(block: LoadedBlock, digest: bytes, class_weights: dict[Any, float], first: int) -> Part:
    """A block as a part of one class's problem.

    Parameters
    ----------
    block : LoadedBlock
        The block, perhaps computed again.
    digest : bytes
        Its digest when it was first loaded.
    class_weights : dict
        The weight of each label's rows, negative on the negative side.
    first : int
        The number of rows in the blocks before it.

    Returns
    -------
    part : Part
        With the signed weight of each row.
    """
    if block.summary.digest != digest:
        raise DataChangedError(
            "a block of the data that was computed again, after its worker was lost, has changed: "
            "its task does not give the same rows each time. Nothing is certified."
        )
    signed = np.array([class_weights[label] for label in block.labels.tolist()])[block.codes]
    return Part(block.rows, signed if block.weights is None else signed * block.weights, first)


@sizeof.register(LoadedBlock)
def _size_of_block(block: LoadedBlock) -> int:
    """The size in bytes, for Dask's supervision of memory."""
    return int(block.codes.nbytes + block.rows.nbytes)


def cut_together(X: Any, y: Any, sample_weight: Any = None) -> list[Any]:
    """Blocks ``(X, y, weights)`` of the same rows, perhaps delayed.

    Labels and weights may be the names of columns if X is a data frame, and vectors in memory if it
    is an array.

    Raises
    ------
    ValueError, TypeError
        If X, y and the weights cannot be cut alike, or are of unsupported kinds.
    """
    if y is None:
        raise ValueError("y is missing")
    columns = [name for name in (y, sample_weight) if isinstance(name, str)]
    if columns:
        missing = [name for name in columns if name not in getattr(X, "columns", ())]
        if missing:
            raise ValueError(f"X has no column {missing[0]!r}")
        y, sample_weight = (X[v] if isinstance(v, str) else v for v in (y, sample_weight))
        X = X.drop(columns=columns)
    given = {"X": X, "y": y, "sample_weight": sample_weight}
    given = {name: value for name, value in given.items() if value is not None}
    frames = all(hasattr(value, "to_dask_array") for value in given.values())
    if not frames:
        given = {name: _blocks(_aligned(value, X, name), name) for name, value in given.items()}
    counts = {name: v.npartitions if frames else len(v) for name, v in given.items()}
    for name, count in counts.items():
        if count != counts["X"]:
            raise ValueError(
                f"X has {counts['X']} blocks of rows, {name} has {count}: they must be cut alike. "
                "Take both from the same data frame, rechunk one of them, or pass lists of blocks."
            )
    if not frames:
        return [_triple(*block) for block in zip(*given.values(), strict=True)]
    # Apart from each other, files of few columns would be read several at a time.
    frame = X.map_partitions(
        _triple, y, sample_weight, meta=X._meta, enforce_metadata=False, align_dataframes=False
    )
    frame = frame.simplify() if hasattr(frame, "simplify") else frame
    return list(frame.to_delayed(optimize_graph=False))


def _triple(X: Any, y: Any, weights: Any = None) -> tuple[Any, Any, Any]:
    return X, y, weights


def _aligned(vector: Any, X: Any, name: str) -> Any:
    """Cut a vector like X, if that is an array whose chunks are known."""
    lazy = hasattr(vector, "rechunk")
    if name == "X" or not hasattr(X, "rechunk") or isinstance(vector, list | tuple):
        return vector
    vector = vector if lazy else da.asarray(np.asarray(vector))
    if math.isnan(vector.shape[0]) or math.isnan(X.shape[0]):
        return vector
    if vector.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, {name} has {vector.shape[0]} entries")
    return vector.rechunk({0: X.chunks[0]})


def _blocks(collection: Any, name: str) -> list[Any]:
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


def blocks_of_folder(folder: Path) -> tuple[list[Any], list[str] | None, dict[str, Any]]:
    """Delayed blocks of the files of a folder, which every worker can read, or of one file.

    Returned with the names of their columns and their origin.
    """
    from certsvm.files import BlockFile

    files = [folder] if folder.is_file() else sorted(folder.glob("*.arrow"))
    opened = [BlockFile(path) for path in files if not path.name.startswith(".")]
    if not opened:
        raise ValueError(f"{folder}: no block files (*.arrow) there; certsvm convert makes them")
    n_columns = max(file.summary.n_columns for file in opened)
    names, origin = opened[0].feature_names, opened[0].origin
    for file in opened[1:]:
        # The origin says, among others, whether the indices of text count from zero or from one.
        if (file.feature_names, file.origin) != (names, origin):
            raise ValueError(
                f"{file.path} has other columns than {opened[0].path}: {file.feature_names} "
                f"({file.origin}), not {names} ({origin})"
            )
    read = delayed(_read, pure=False)
    blocks = [
        read(str(file.path.absolute()), i, n_columns)
        for file in opened
        for i in range(file.n_blocks)
    ]
    return blocks, None if names is None else list(names), origin


def _read(path: str, position: int, n_columns: int) -> tuple[Any, Any, Any]:
    """The block at a position of a file, with as many columns as the widest file has."""
    from certsvm.files import BlockFile

    X, y, weights = BlockFile(path).block(position)
    if X.shape[1] > n_columns:
        raise ValueError(f"{path} has {X.shape[1]} columns, and had {n_columns} before")
    if X.shape[1] < n_columns:
        X = sp.csr_matrix(X)
        X.resize((X.shape[0], n_columns))
    return X, y, weights


def as_rows(X: Any) -> Any:
    """Rows as a CSR matrix or an array of numbers."""
    if hasattr(X, "to_scipy_sparse"):
        X = X.to_scipy_sparse()
    return checked_matrix(X.to_numpy() if hasattr(X, "to_numpy") else X)


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    """A vector, which may be the only column of a matrix."""
    return array.ravel() if array.ndim == 2 and array.shape[1] == 1 else array
