"""Rows with labels and weights, as readers hand them on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.problem.rows import Vector


class Batch(NamedTuple):
    """Some rows with labels and weights."""

    X: Any
    y: NDArray[Any]
    weights: Vector | None

    @property
    def nbytes(self) -> int:
        """Size in memory, roughly."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        return int(size + 16 * len(self.y))

    def take(self, which: NDArray[np.int64]) -> Batch:
        """Some of them, copied."""
        weights = None if self.weights is None else self.weights[which]
        return Batch(self.X[which], self.y[which], weights)

    def cut(self, at: NDArray[np.int64]) -> Iterator[Batch]:
        """Pieces from each position to the next."""
        for first, last in itertools.pairwise(at):
            part = slice(first, last)
            weights = None if self.weights is None else self.weights[part]
            yield Batch(self.X[part], self.y[part], weights)


def joined(pieces: list[Batch]) -> Batch:
    """All pieces as one; sparse ones as wide as the widest."""
    if len(pieces) == 1:
        return pieces[0]
    y = np.concatenate([piece.y for piece in pieces])
    some = [piece.weights for piece in pieces if piece.weights is not None]
    weights = np.concatenate(some) if some else None
    if not sp.issparse(pieces[0].X):
        return Batch(np.concatenate([piece.X for piece in pieces]), y, weights)
    width = max(piece.X.shape[1] for piece in pieces)
    parts = [
        sp.csr_matrix((p.X.data, p.X.indices, p.X.indptr), shape=(p.X.shape[0], width))
        for p in pieces
    ]
    return Batch(sp.vstack(parts, format="csr"), y, weights)
