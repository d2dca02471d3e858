"""The order in which rows are visited.

A random order converges best. But if the data exceed the caches, rows in memory order are read
several times faster. So neighbouring rows are visited together, in blocks whose order is random:
still a permutation of the rows. If neighbours are alike, as in data sorted by class, blocks
converge badly; a sample shows this, and then the order is random throughout. The data are never
copied.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.problem.rows import Part

_BLOCK = 32
# Up to this size of the data, in bytes, all orders are equally fast, so a random one is best.
_SMALL = 8_000_000
# Up to this size the data are in a cache, and prefetching makes up for a random order.
_CACHE = 32_000_000
# Neighbours are alike if their mean cosine exceeds that of random pairs by this; number of pairs.
_ALIKE, _PAIRS = 0.25, 256


class Order:
    """Random permutations of the rows of ``part``.

    ``shuffled`` says that neighbouring rows are no more alike than random pairs, so that they may
    be visited together; None decides from a sample.
    """

    def __init__(
        self, part: Part, rng: np.random.Generator, *, shuffled: bool | None = None
    ) -> None:
        self._rng = rng
        self._size = part.rows.nbytes
        if shuffled is None:
            shuffled = self._size > _SMALL and not neighbours_are_alike(part, rng)
        self._shuffled = shuffled

    @property
    def in_order(self) -> bool:
        """Whether rows are read in memory order, or from a cache."""
        return self._shuffled or self._size <= _CACHE

    def permuted(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """A random permutation of ``rows``, which are in ascending order.

        If it is one of blocks, an incomplete block is at the end.
        """
        blocks = rows.size // _BLOCK
        if blocks < 8 or not self._shuffled:
            return self._rng.permutation(rows)
        whole, rest = rows[: blocks * _BLOCK].reshape(blocks, _BLOCK), rows[blocks * _BLOCK :]
        return np.concatenate([whole[self._rng.permutation(blocks)].ravel(), rest])


def neighbours_are_alike(part: Part, rng: np.random.Generator) -> bool:
    """Whether the mean cosine of y_k and y_(k+1) is much larger than that of random pairs."""
    active = part.active
    if active.size < 4:
        return False
    first = active[rng.integers(active.size - 1, size=_PAIRS)]
    second = active[np.searchsorted(active, first) + 1]
    left, right = active[rng.integers(active.size, size=(2, _PAIRS))]
    return mean_cosine(part, first, second) - mean_cosine(part, left, right) > _ALIKE


def mean_cosine(part: Part, left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """The mean cosine of y_k over pairs of rows; zero for those of no length."""
    rows, labels = part.rows, part.labels
    one, other = (sp.csr_matrix(rows.matrix[which], dtype=np.float64) for which in (left, right))
    products = np.asarray(one.multiply(other).sum(axis=1)).ravel() + rows.intercept_scaling**2
    sizes = rows.norms[left] * rows.norms[right]
    sizes[sizes == 0.0] = np.inf
    return float((labels[left] * labels[right] * products / sizes).mean())
