"""Solution of small systems; larger ones are left to LAPACK."""

import math

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import reordering_kernel
from certsvm.kernels.rows import Vector


@reordering_kernel
def solve_small_system(A: NDArray[np.float64], b: Vector) -> bool:
    """Replace b by A^-1 b, given the lower triangle of A; False if A is not positive definite.

    Cholesky's factor replaces the lower triangle of A.
    """
    n = b.size
    for i in range(n):
        for j in range(i):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / A[j, j]
        total = A[i, i]
        for k in range(i):
            total -= A[i, k] * A[i, k]
        if not total > 0.0:
            return False
        A[i, i] = math.sqrt(total)
    for i in range(n):
        total = b[i]
        for k in range(i):
            total -= A[i, k] * b[k]
        b[i] = total / A[i, i]
    for i in range(n - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, n):
            total -= A[k, i] * b[k]
        b[i] = total / A[i, i]
    return True
