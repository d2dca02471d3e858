"""Vectors packed for sending: all entries, or only the non-zero ones where that is shorter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.problem.rows import Vector


class Packed(NamedTuple):
    """A packed vector; ``indices`` is None if ``values`` are all entries."""

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
    # A value takes eight bytes, and twelve with its index.
    if 12 * used.size >= 8 * vector.size or vector.size >= 2**31:
        return Packed(vector.size, vector, None)
    return Packed(vector.size, vector[used], used.astype(np.int32))


def unpacked(message: Packed) -> Vector:
    """Unpack a vector into new memory."""
    if message.indices is None:
        return np.array(message.values)
    vector = np.zeros(message.size)
    vector[message.indices] = message.values
    return vector
