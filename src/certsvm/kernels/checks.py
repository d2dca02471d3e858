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
