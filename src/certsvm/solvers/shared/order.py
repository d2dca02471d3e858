"""The order in which rows are visited.

A random order converges best. But if the data exceed the caches, rows in memory order are read
several times faster. So neighbouring rows are visited together, in blocks whose order is random:
still a permutation of the rows. If neighbours are alike, as in data sorted by class, blocks
converge badly; a sample shows this, and then the order is random throughout. The data are never
copied.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.problem.part import Part

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
        """A random permutation of ``rows``, which are in ascending order."""
        return in_blocks(rows, _BLOCK if self._shuffled else 1, self._rng)


def in_blocks(rows: NDArray[np.int64], block: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rows in blocks of neighbours, in random order, with an incomplete block at the end.

    Examples
    --------
    >>> sorted(in_blocks(np.arange(5), 2, np.random.default_rng(0)).tolist())
    [0, 1, 2, 3, 4]
    """
    blocks = rows.size // block
    if block == 1 or blocks < 8:
        return rng.permutation(rows)
    whole = rows[: blocks * block].reshape(blocks, block)
    return np.concatenate([whole[rng.permutation(blocks)].ravel(), rows[blocks * block :]])


def neighbours_are_alike(part: Part, rng: np.random.Generator) -> bool:
    """Whether the mean cosine of y_k and y_(k+1) is much larger than that of random pairs."""
    active = part.active
    if active.size < 4:
        return False
    first = active[rng.integers(active.size - 1, size=_PAIRS)]
    second = active[np.searchsorted(active, first) + 1]
    left, right = active[rng.integers(active.size, size=(2, _PAIRS))]
    scratch = np.zeros(part.rows.dimension)
    arguments = part.rows.arrays, part.signed_weights, part.rows.norms
    near = sum_of_cosines(*arguments, first, second, scratch)
    far = sum_of_cosines(*arguments, left, right, scratch)
    return near - far > _ALIKE * _PAIRS


@kernel
def sum_of_cosines(
    rows: RowArrays,
    signed_weights: Vector,
    norms: Vector,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    scratch: Vector,
) -> float:
    """The sum over pairs of the cosines of y_k; ``scratch`` is zero before and after."""
    total = 0.0
    for i in range(left.size):
        k, other = left[i], right[i]
        size = norms[k] * norms[other]
        if size > 0.0:
            add(rows, k, 1.0, scratch)
            sign = 1.0 if signed_weights[k] * signed_weights[other] > 0.0 else -1.0
            total += sign * dot(rows, other, scratch) / size
            add(rows, k, -1.0, scratch)
    return total
