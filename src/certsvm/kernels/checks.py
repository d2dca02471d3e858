"""Is this CSR matrix safe to read?  Asked once, before any other kernel touches it."""

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel

SOUND = 0
INDPTR_DESCENDS = 1
COLUMN_OUT_OF_RANGE = 2
DUPLICATE_COLUMN = 3


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
def inspect_indices(
    indptr: NDArray[np.int64],
    indices: NDArray[np.signedinteger],
    columns: int,
    last_row_with: NDArray[np.int64],
) -> tuple[int, int, int]:
    """First defect as ``(code, row, position)``.

    Every index is compared with the number of columns. Ascending rows cannot repeat a
    column; for the others ``last_row_with[j]``, the last row in which column j was seen
    (initially -1), finds repeats. It may be empty, and then the first row that does not
    ascend is reported as ``DUPLICATE_COLUMN``: the caller learns that it is needed.
    """
    for k in range(indptr.size - 1):
        previous = np.int64(-1)
        ascending = True
        for j in range(indptr[k], indptr[k + 1]):
            column = np.int64(indices[j])
            if column < 0 or column >= columns:
                return COLUMN_OUT_OF_RANGE, k, j
            if column <= previous:
                ascending = False
            previous = column
        if not ascending:
            if last_row_with.size == 0:
                return DUPLICATE_COLUMN, k, indptr[k]
            for j in range(indptr[k], indptr[k + 1]):
                column = np.int64(indices[j])
                if last_row_with[column] == k:
                    return DUPLICATE_COLUMN, k, j
                last_row_with[column] = k
    return SOUND, -1, -1


@kernel
def survey_indices(
    indptr: NDArray[np.int64], indices: NDArray[np.unsignedinteger]
) -> tuple[np.uint64, bool]:
    """The largest index of all, and whether those of each row ascend.

    ``indices`` are those from ``indptr[0]`` to ``indptr[-1]``. The loops over all of them have no
    branch, which makes them several times faster than those of ``inspect_indices``: if all is
    well, and it mostly is, they are all that need be run.
    """
    largest = np.uint64(0)
    descents = 0
    for j in range(indices.size):
        largest = max(largest, np.uint64(indices[j]))
    for j in range(1, indices.size):
        descents += indices[j] <= indices[j - 1]
    # From the end of a row to the beginning of the next, indices may well descend.
    for k in range(1, indptr.size - 1):
        j = indptr[k] - indptr[0]
        if 0 < j < indptr[k + 1] - indptr[0]:
            descents -= indices[j] <= indices[j - 1]
    return largest, descents == 0
