"""Vectors on their way: as they are, or as their entries that are not zero if that is less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.problem.rows import Vector


class Packed(NamedTuple):
    """A vector; without ``indices``, all of its entries."""

    size: int
    values: Vector
    indices: NDArray[np.int32] | None


def packed(vector: Vector) -> Packed:
    """Pack a vector.

    Examples
    --------
    >>> import numpy as np
    >>> packed(np.array([0.0, 0.0, 0.0, 7.0])).values
    array([7.])
    """
    used = np.flatnonzero(vector)
    # An entry takes eight bytes, an entry with its index twelve.
    if 12 * used.size >= 8 * vector.size or vector.size >= 2**31:
        return Packed(vector.size, vector, None)
    return Packed(vector.size, vector[used], used.astype(np.int32))


def unpacked(message: Packed) -> Vector:
    """Unpack it, into memory of its own."""
    if message.indices is None:
        return np.array(message.values)
    vector = np.zeros(message.size)
    vector[message.indices] = message.values
    return vector
