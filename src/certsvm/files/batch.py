"""Rows with labels and weights, as readers pass them on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.problem.rows import Vector


class Batch(NamedTuple):
    """Rows (a CSR matrix or an array), their labels, and their weights if they have any."""

    X: Any
    y: NDArray[Any]
    weights: Vector | None = None

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)

    @property
    def nbytes(self) -> int:
        """Approximate size in memory."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        return int(size + 16 * len(self.y))

    def from_zero(self, base: int, n_columns: int) -> Batch:
        """Sparse rows whose columns count from ``base``, with so many that count from zero."""
        X, dtype = self.X, np.int32 if n_columns < 2**31 else np.int64
        indices = (X.indices - base).astype(dtype, copy=False)
        return self._replace(X=csr(X.data, indices, X.indptr, (len(self.y), n_columns)))

    def take(self, rows: slice | NDArray[np.int64]) -> Batch:
        """The rows of a slice, or copies of those at given positions."""
        weights = None if self.weights is None else self.weights[rows]
        return Batch(self.X[rows], self.y[rows], weights)

    def cut(self, edges: NDArray[np.int64]) -> Iterator[Batch]:
        """The rows from each edge to the next."""
        for first, last in itertools.pairwise(edges):
            yield self.take(slice(first, last))


def csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """A CSR matrix on these arrays, which are neither checked nor copied."""
    X = sp.csr_matrix(shape, dtype=data.dtype)
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def joined(batches: list[Batch]) -> Batch:
    """All rows in one batch; sparse rows become as wide as the widest."""
    if len(batches) == 1:
        return batches[0]
    y = np.concatenate([batch.y for batch in batches])
    weights = [batch.weights for batch in batches if batch.weights is not None]
    if sp.issparse(batches[0].X):
        width = max(batch.X.shape[1] for batch in batches)
        parts = [csr(X.data, X.indices, X.indptr, (X.shape[0], width)) for X, _, _ in batches]
        X = sp.vstack(parts, format="csr")
    else:
        X = np.concatenate([batch.X for batch in batches])
    return Batch(X, y, np.concatenate(weights) if weights else None)
