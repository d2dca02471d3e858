"""In which order to visit rows.

A random order is what converges best, and what memory likes least: for data beyond the caches,
rows in the order of memory are read several times faster. So rows that lie together are visited
together, in blocks of some tens whose order is random: still a permutation of the rows. Where
neighbours are alike (data sorted by class, say) blocks converge badly; a sample tells,
and then the order is random throughout. No copy of the data is made in any case.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.problem.part import Part
from certsvm.storage.fields import flag
from certsvm.storage.state import State, Stateful

_BLOCK = 32
# Up to this size, in bytes, any order is as fast, and the most random one converges best.
_SMALL = 8_000_000
# Up to this size a prefetch is as good as the right order: the data is in some cache.
_CACHE = 32_000_000
# Neighbours count as alike when their mean cosine exceeds that of random pairs by this.
_ALIKE, _PAIRS = 0.25, 256


class Order(Stateful):
    """Permutations of rows, random in a way that suits the data.

    Parameters
    ----------
    part : Part
        Whose rows are visited.
    rng : Generator
        The source of randomness.
    shuffled : bool, default=None
        Whether neighbouring rows are as unlike as any two, so that they may be visited
        together. None looks at a sample.

    Attributes
    ----------
    in_order : bool
        Whether rows need not be waited for: they come as they lie, or are in a cache.
    """

    STATE = State(shuffled=flag())

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
        """Whether rows need not be waited for: they come as they lie, or are in a cache."""
        return self._shuffled or self._size <= _CACHE

    def permuted(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """A permutation of ``rows``, which ascend."""
        return in_blocks(rows, _BLOCK if self._shuffled else 1, self._rng)


def in_blocks(rows: NDArray[np.int64], block: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rows in blocks of neighbours, the blocks in random order, what is left over last.

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
    """Whether y_k.y_(k+1) / (|y_k| |y_(k+1)|) is, on average, much larger than for random pairs."""
    active = part.active
    if active.size < 4:
        return False
    first = active[rng.integers(active.size - 1, size=_PAIRS)]
    second = active[np.searchsorted(active, first) + 1]
    some, others = active[rng.integers(active.size, size=(2, _PAIRS))]
    scratch = np.zeros(part.rows.dimension)
    arguments = part.rows.arrays, part.signed_weights, part.rows.norms
    near = sum_of_cosines(*arguments, first, second, scratch)
    far = sum_of_cosines(*arguments, some, others, scratch)
    return near - far > _ALIKE * _PAIRS


@kernel
def sum_of_cosines(
    rows: RowArrays,
    signed_weights: Vector,
    norms: Vector,
    some: NDArray[np.int64],
    others: NDArray[np.int64],
    scratch: Vector,
) -> float:
    """Over the pairs of rows, labels reflected into them; ``scratch`` is zero before and after."""
    total = 0.0
    for i in range(some.size):
        k, other = some[i], others[i]
        size = norms[k] * norms[other]
        if size > 0.0:
            add(rows, k, 1.0, scratch)
            sign = 1.0 if signed_weights[k] * signed_weights[other] > 0.0 else -1.0
            total += sign * dot(rows, other, scratch) / size
            add(rows, k, -1.0, scratch)
    return total
