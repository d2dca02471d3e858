"""The scales of columns."""

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import CsrRows, Vector


@kernel
def largest_of_columns(rows: CsrRows, out: Vector) -> None:
    """The largest absolute value in each column, where it exceeds ``out``, into ``out``."""
    for j in range(rows.indptr[0], rows.indptr[rows.indptr.size - 1]):
        column = rows.indices[j]
        out[column] = max(out[column], abs(rows.values[j]))
