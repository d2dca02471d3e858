"""Checks that a CSR matrix is safe to read, made before any other kernel reads it."""

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel


@kernel
def inspect_indptr(indptr: NDArray[np.int64], stored: int) -> int:
    """First row whose extent leaves ``[0, stored]`` or runs backwards; -1 if there is none."""
    if indptr[0] < 0:
        return 0
    for k in range(indptr.size - 1):
        if indptr[k + 1] < indptr[k] or indptr[k + 1] > stored:
            return k
    return -1


@kernel
def repeats_column(
    indptr: NDArray[np.int64],
    indices: NDArray[np.unsignedinteger],
    last_row_with: NDArray[np.int64],
) -> bool:
    """Whether a row has a column twice; ``last_row_with`` has -1 for each column."""
    for k in range(indptr.size - 1):
        for j in range(indptr[k], indptr[k + 1]):
            if last_row_with[indices[j]] == k:
                return True
            last_row_with[indices[j]] = k
    return False


@kernel
def survey_indices(
    indptr: NDArray[np.int64], indices: NDArray[np.unsignedinteger]
) -> tuple[np.uint64, bool]:
    """The largest index, and whether the indices of every row ascend.

    ``indices`` begin at ``indptr[0]``. The loops over them have no branches, so they are fast.
    """
    largest = np.uint64(0)
    descents = 0
    for j in range(indices.size):
        largest = max(largest, np.uint64(indices[j]))
    for j in range(1, indices.size):
        descents += indices[j] <= indices[j - 1]
    # Indices may descend from one row to the next.
    for k in range(1, indptr.size - 1):
        j = indptr[k] - indptr[0]
        if 0 < j < indptr[k + 1] - indptr[0]:
            descents -= indices[j] <= indices[j - 1]
    return largest, descents == 0
