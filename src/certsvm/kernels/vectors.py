"""Inner products of long vectors.

NumPy leaves them to BLAS, which shares them among threads from about ten thousand entries on. Its
threads are shared by the whole process: products in several threads of Python wait for each other,
and on a busy machine for much longer than they take.
"""

from certsvm.kernels.jit import reordering_kernel
from certsvm.kernels.rows import Vector


@reordering_kernel
def inner(u: Vector, v: Vector) -> float:
    """The inner product of two vectors, in the caller's thread."""
    total = 0.0
    for i in range(u.size):
        total += u[i] * v[i]
    return total
