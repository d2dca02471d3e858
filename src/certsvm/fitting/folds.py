"""Folds of the rows for cross-validation, and calls on them in other processes.

A fold has a copy of the rows that it is trained on. Solvers would skip rows of weight zero in a
view of all rows, but fits as short as these would take up to twice as long.

Processes are loky's, as in joblib: they need no guard in the user's script. They map the folds from
one file, and wait a minute for more work. They ignore Ctrl-C, which is for the process that waits
for them.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import joblib
import numpy as np
import scipy.sparse as sp
from joblib.externals.loky import get_reusable_executor, process_executor
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.held_out_error import HeldOutRows
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.objective import products_of
from certsvm.problem.rows import Rows, Vector, as_compiled_for
from certsvm.training.settings import Result
from certsvm.verification.optimum_intervals import RowSizes, row_sizes

Submit: TypeAlias = Callable[..., Future[Any]]
"""``submit(function, i, *arguments)`` calls ``function(objects[i], *arguments)``."""

_SECONDS_IDLE = 60.0


class Fold(MemorySource):
    """The rows that a fold is trained on, as a source, and those that it is not.

    Its classes are those of the training rows, as if there were no others.

    Parameters
    ----------
    whole : MemorySource
        All rows.
    train, test : array-like of int
        Which rows to train on, and which to hold out. A row may occur several times.
    weights : ndarray of shape (n_rows,), default=None
        The weights of all rows in the error; None means that all are 1.

    Attributes
    ----------
    test : ndarray of shape (n_test,)
        The rows held out.
    held_out : HeldOutRows
        What bounds on the error need of them.

    Examples
    --------
    >>> whole = MemorySource(np.eye(4), np.array(["a", "b", "b", "c"]))
    >>> fold = Fold(whole, [0, 1, 1], [2, 3])
    >>> fold.classes.tolist(), fold.n_rows, fold.held_out.truth.tolist()
    (['a', 'b'], 3, [1, -1])
    """

    def __init__(
        self, whole: MemorySource, train: ArrayLike, test: ArrayLike, weights: Vector | None = None
    ) -> None:
        rows = row_positions(train, whole.n_rows, "to train on")
        self.test = row_positions(test, whole.n_rows, "held out")
        given = whole.row_weights
        super().__init__(
            whole.rows.matrix[rows], whole.y[rows], None if given is None else given[rows],
            class_weight=whole.class_weight, intercept_scaling=whole.intercept_scaling, origin={},
        )  # fmt: skip
        # Other processes need the rows once.
        del self.X
        present = np.unique(whole.y_index[rows])
        position = np.full(whole.classes.size, -1, dtype=np.int64)
        position[present] = np.arange(present.size)
        # The optimum is zero in columns in which no training row has a value.
        trained = self.rows.matrix
        occupied = trained.getnnz(0) > 0 if sp.issparse(trained) else trained.any(axis=0)
        matrix, rho = whole.rows.matrix[self.test][:, occupied], self.intercept_scaling
        self._rows_held_out = Rows(matrix, intercept_scaling=rho)
        self._columns = np.flatnonzero(np.append(occupied, [True] * int(rho > 0.0)))
        squares, n_stored = row_sizes(matrix)
        sizes = RowSizes(squares + rho * rho, n_stored + int(rho > 0.0))
        truth = position[whole.y_index[self.test]]
        self.held_out = held_out_rows(sizes, truth, weights, self.test)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle, in another process."""
        vars(self).update({name: as_compiled_for(value) for name, value in state.items()})

    def products(self, w: Vector) -> Vector:
        """Products with the rows held out, without columns that no training row has."""
        out, every = np.empty(self.test.size), np.arange(self.test.size)
        products_of(self._rows_held_out.arrays, every, w[self._columns], out)
        return out

    def error(self, results: Sequence[Result]) -> float:
        """The share of the rows held out that the models of all classes get wrong, by weight."""
        scores = np.array([self.products(result.w) for result in results])
        return self.held_out.error(scores.argmax(0) if len(scores) > 1 else scores[0] > 0.0)


def stratified_folds(source: MemorySource, n_folds: int, seed: int) -> list[Fold]:
    """Folds of nearly the same size, each with nearly the same share of every class.

    The weights of the rows count in the error; those of classes count in training only.

    Parameters
    ----------
    source : MemorySource
        All rows.
    n_folds : int
        Their number.
    seed : int
        Of the random choice.

    Returns
    -------
    folds : list of Fold
        Every row is held out in one of them.

    Examples
    --------
    >>> source = MemorySource(np.eye(6), np.array([0, 0, 0, 1, 1, 1]))
    >>> [fold.test.size for fold in stratified_folds(source, 3, seed=0)]
    [2, 2, 2]
    """
    if source.n_rows < n_folds:
        raise ValueError(f"{n_folds} folds need at least as many rows, not {source.n_rows}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(source.n_rows)
    # Sorted by class, the rows are dealt to the folds in turn.
    order = order[np.argsort(source.y_index[order], kind="stable")]
    tests = [np.sort(order[i::n_folds]) for i in range(n_folds)]
    return [Fold(source, np.setdiff1d(order, test), test, source.row_weights) for test in tests]


def row_positions(which: ArrayLike, n_rows: int, purpose: str) -> NDArray[np.int64]:
    """Positions of rows, which splitters may give as a mask."""
    array: NDArray[Any] = np.asarray(which)
    positions = np.zeros(0, dtype=np.int64)
    with suppress(IndexError):
        positions = np.arange(n_rows)[array]
    if positions.ndim != 1 or not positions.size:
        must = f"a mask or positions, at least one and each below {n_rows}"
        raise ValueError(f"cv must give the rows {purpose} as {must}, got shape {array.shape}")
    return positions


def held_out_rows(
    sizes: RowSizes, truth: NDArray[np.int64], weights: Vector | None, test: NDArray[np.int64]
) -> HeldOutRows:
    """The rows held out, given the weights of all rows; raises if theirs are all zero."""
    held_out = np.ones(test.size) if weights is None else np.asarray(weights)[test]
    if not held_out.sum() > 0.0:
        raise ValueError("cv has a fold whose held-out rows have no weight: nothing to measure")
    return HeldOutRows(sizes.norms, sizes.counts, truth, weights=held_out)


@contextmanager
def submitter(objects: Sequence[Any], n_jobs: int) -> Iterator[Submit]:
    """A function that submits calls to ``n_jobs`` processes; one means a thread of this process.

    Calls that have not ended when the context is left are given up.

    Parameters
    ----------
    objects : sequence
        What functions are called on.
    n_jobs : int
        Number of processes.
    """
    if n_jobs == 1:
        with ThreadPoolExecutor(1) as thread:
            yield lambda function, i, *arguments: thread.submit(function, objects[i], *arguments)
        return
    calls: list[Future[Any]] = []

    def submit(function: Callable[..., Any], i: int, *arguments: Any) -> Future[Any]:
        calls.append(pool.submit(_call, path, function, i, *arguments))
        return calls[-1]

    pool = get_reusable_executor(n_jobs, timeout=_SECONDS_IDLE, initializer=_prepare)
    with TemporaryDirectory(prefix="certsvm-", ignore_cleanup_errors=True) as folder:
        path = str(Path(folder, "objects"))
        joblib.dump(list(objects), path)
        try:
            yield submit
        finally:
            if not all(call.done() for call in calls):
                pool.shutdown(wait=True, kill_workers=True)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Mapped arrays count as memory of the process, and loky would end it as if it leaked.
    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf


def _call(path: str, function: Callable[..., Any], i: int, *arguments: Any) -> Any:
    return function(_objects(path)[i], *arguments)


@lru_cache(maxsize=1)
def _objects(path: str) -> Any:
    return joblib.load(path, mmap_mode="r")
