"""Labelled rows on a cluster: from data of any kind to checked blocks on the workers.

Arrays, data frames, lists of delayed blocks and folders of block files all become one task for each
block, which runs on a worker, checks the block and keeps it there. The client sees summaries only.
A block that is lost with its worker is computed again by its task, and must then have the same
digest as before: a certificate is about one set of rows.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from dask.sizeof import sizeof
from distributed import Future
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from certsvm.dask.cluster import Cluster, ClusterProblem, recheck
from certsvm.dask.cocoa import ClusterAuto, Cocoa
from certsvm.files.streams import DataChangedError, block_digest, checked_block
from certsvm.fitting.sources import ClassWeight, Source, classes_of
from certsvm.matrices import checked_matrix, exact_labels
from certsvm.problem.base import HINGE_OBJECTIVE, BaseProblem, ClassSurvey, Objective
from certsvm.problem.rows import Part, Rows, Vector
from certsvm.solvers import SmoothedNewton, Solver
from certsvm.training.settings import Result

SOLVERS: dict[str, Solver] = {
    "cocoa": Cocoa(), "smoothed-newton": SmoothedNewton(), "newton": SmoothedNewton()
}  # fmt: skip
"""By name; "newton" means smoothed Newton, which keeps nothing per row."""

# Up to so many columns, auto considers Newton, whose steps gather a matrix each.
_FEW_COLUMNS = 500
# Limits for training at the same time: classes, and bytes of all their matrices.
_MOST_CLASSES, _MOST_BYTES = 16, 2.0**27


class ClusterSource(Source):
    """Rows on a cluster, in blocks as they come.

    Parameters
    ----------
    cluster : Cluster
        The cluster that holds the rows, or loads them.
    X, y, sample_weight
        Dask collections, lists of blocks, or the path of a folder of files.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows.
    intercept_scaling : float, default=0.0
        Height of the constant column behind the intercept; 0 means no intercept.
    recheck : bool, default=True
        Whether to compute each certificate again from scratch when training has ended.
    """

    problem_type = ClusterProblem

    def __init__(
        self, cluster: Cluster, X: Any, y: Any = None, sample_weight: Any = None, *,
        class_weight: ClassWeight = None, intercept_scaling: float = 0.0, recheck: bool = True,
    ) -> None:  # fmt: skip
        self.cluster, self._recheck = cluster, recheck
        self.intercept_scaling = intercept_scaling
        if isinstance(X, str | Path):
            if y is not None or sample_weight is not None:
                raise ValueError(
                    "the files of a folder hold their labels and weights: pass y=None and "
                    "sample_weight=None"
                )
            blocks, self.feature_names, self.origin = blocks_of_folder(Path(X))
        else:
            blocks = cut_together(X, y, sample_weight)
        self._load(blocks)
        first = self.summaries[0]
        # The number of rows before each block, and in all.
        self.firsts = np.cumsum([0, *(summary.n_rows for summary in self.summaries)])
        self.n_rows = int(self.firsts[-1])
        self.n_columns = first.n_columns
        self.feature_names = self.feature_names or first.names
        surveys: dict[Any, ClassSurvey] = defaultdict(ClassSurvey)
        for summary in self.summaries:
            for label, survey in summary.classes.items():
                surveys[label] += survey
        classes = _classes(set(surveys))
        self.surveys = [surveys[label] for label in classes.tolist()]
        totals = np.array([survey.weight_sum for survey in self.surveys])
        super().__init__(classes, totals, class_weight)

    def _load(self, blocks: Sequence[Any]) -> None:
        """Let the workers check the blocks, and keep those that are not empty."""
        task = self.cluster.task
        loading = [task("load", load, b, self.intercept_scaling, i) for i, b in enumerate(blocks)]
        summing = [task("summary", operator.attrgetter("summary"), block) for block in loading]
        futures = self.cluster.begin([*loading, *summing])
        summaries = self.cluster.gathered(futures[len(blocks) :]) if futures else []
        kept = [i for i, summary in enumerate(summaries) if summary.n_rows]
        if not kept:
            raise ValueError("there are no rows in the data")
        columns = [summaries[i].names or summaries[i].n_columns for i in kept]
        for i, here in zip(kept, columns, strict=True):
            if here != columns[0]:
                raise ValueError(
                    f"the blocks have different columns: {columns[0]} in block {kept[0] + 1}, "
                    f"{here} in block {i + 1}"
                )
        self.blocks, self.summaries = [futures[i] for i in kept], [summaries[i] for i in kept]
        self.groups = self.cluster.groups(self.blocks)

    def solver(self, solver: str | Solver, objective: Objective = HINGE_OBJECTIVE) -> Solver:
        """The solver for a name; "auto" chooses by the number of columns and the intercept."""
        if solver == "auto":
            if objective.frees(self.intercept_scaling):
                return SOLVERS["newton"]
            return ClusterAuto() if self.dimension <= _FEW_COLUMNS else Cocoa()
        chosen = solver if isinstance(solver, Solver) else SOLVERS.get(solver)
        if not isinstance(chosen, Cocoa | SmoothedNewton | ClusterAuto):
            names = ", ".join(map(repr, ("auto", *SOLVERS)))
            raise ValueError(f"solver {solver!r} does not run on a cluster: use one of {names}")
        return chosen

    def at_once(self, solver: Solver, n_jobs: int) -> int:
        """Several: while one waits for the end of its round, others go on."""
        most = min(len(self.positive), _MOST_CLASSES)
        if isinstance(solver, Cocoa):
            # Each gathers rows on a worker of its own.
            return min(most, len({group.worker for group in self.groups}))
        return min(most, max(1, int(_MOST_BYTES / (8 * self.dimension**2))))

    def parts(self, class_weights: dict[Any, float]) -> list[Future]:
        """The blocks as parts of a problem, given signed weights of classes: see ``part``."""
        about = zip(self.blocks, self.summaries, self.firsts[:-1].tolist(), strict=True)
        return self.cluster.begin([
            self.cluster.task("part", LoadedBlock.part, block, summary.digest, class_weights, first)
            for block, summary, first in about
        ])  # fmt: skip

    def problem(self, i: int, objective: Objective) -> ClusterProblem:
        """The i-th problem."""
        return ClusterProblem(self, i, objective)

    def finish(self, i: int, problem: BaseProblem, result: Result) -> Result:
        """Check the certificate again, and release what the workers keep."""
        assert isinstance(problem, ClusterProblem)
        if self._recheck:
            result = recheck(problem, result)
        return replace(result, response=None)


def _classes(labels: set[Any]) -> NDArray[Any]:
    # Some types have an order among each other, but an array cannot hold both.
    mixed = len({isinstance(label, str) for label in labels}) > 1
    classes = np.array([] if mixed else sorted(labels))
    if set(classes.tolist()) != labels:
        raise ValueError(
            "labels have different types in different blocks, such as text and numbers, or floats "
            "and large integers: convert them to one type"
        )
    check_classification_targets(classes)
    return classes


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

    def part(self, digest: bytes, class_weights: dict[Any, float], first: int) -> Part:
        """The block as a part of one class's problem.

        Parameters
        ----------
        digest : bytes
            The block's digest when it was first loaded.
        class_weights : dict
            The weight of each label's rows, negative on the negative side.
        first : int
            The number of rows in the blocks before it.

        Returns
        -------
        part : Part
            With the signed weight of each row.
        """
        if self.summary.digest != digest:
            raise DataChangedError(
                "a block of the data that was computed again, after its worker was lost, has "
                "changed: its task does not give the same rows each time. Nothing is certified."
            )
        signed = np.array([class_weights[label] for label in self.labels.tolist()])[self.codes]
        return Part(self.rows, signed if self.weights is None else signed * self.weights, first)


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


@sizeof.register(LoadedBlock)
def _size_of_block(block: LoadedBlock) -> int:
    """The size in bytes, for Dask's supervision of memory."""
    return int(block.codes.nbytes + block.rows.nbytes)


def cut_together(X: Any, y: Any, sample_weight: Any = None) -> list[Any]:
    """Blocks ``(X, y, weights)`` of the same rows, perhaps delayed.

    Labels and weights may be the names of columns if X is a data frame.

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
        given = {name: _blocks(value, name) for name, value in given.items()}
    counts = {name: v.npartitions if frames else len(v) for name, v in given.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"X, y and weights must be cut alike, and their numbers of blocks are {counts}. Take "
            "all from the same data frame, rechunk one of them, or pass lists of blocks."
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


def _blocks(collection: Any, name: str) -> list[Any]:
    """The blocks of a collection, delayed or not."""
    if isinstance(collection, list | tuple):
        return list(collection)
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"{name} must be a Dask array or data frame, or a list of (delayed) blocks, got "
            f"{type(collection).__name__}: da.from_array(..., chunks=X.chunks[0]) makes one. For "
            "data in memory use certsvm.LinearSVC."
        )
    if hasattr(collection, "rechunk") and collection.ndim == 2:
        # Rows are whole in a block. This moves none of them.
        collection = collection.rechunk({1: -1})
    blocks = collection.to_delayed()
    return list(getattr(blocks, "flat", blocks))


def blocks_of_folder(folder: Path) -> tuple[list[Any], list[str] | None, dict[str, Any]]:
    """Delayed blocks of the files of a folder, which every worker can read, or of one file.

    Returned with the names of their columns and their origin.
    """
    from certsvm.files import BlockFile

    files = [folder] if folder.is_file() else sorted(folder.glob("[!.]*.arrow"))
    opened = [BlockFile(path) for path in files]
    if not opened:
        raise ValueError(f"{folder}: no block files (*.arrow) there; certsvm convert makes them")
    first, n_columns = opened[0], max(file.summary.n_columns for file in opened)
    names, origin = first.feature_names, first.origin
    for file in opened:
        # The origin says, among others, whether the indices of text count from zero or from one.
        if (file.feature_names, file.origin) != (names, origin):
            raise ValueError(
                f"{file.path} has other columns than {first.path}: {file.feature_names} "
                f"({file.origin}), not {names} ({origin})"
            )
    read = delayed(_read, pure=False)
    places = [(str(f.path.absolute()), i) for f in opened for i in range(f.n_blocks)]
    blocks = [read(*place, n_columns) for place in places]
    return blocks, None if names is None else list(names), origin


def _read(path: str, position: int, n_columns: int) -> tuple[Any, Any, Any]:
    """The block at a position of a file, with as many columns as the widest file has."""
    from certsvm.files import BlockFile

    X, y, weights = BlockFile(path).block(position)
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
