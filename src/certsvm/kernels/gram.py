"""Gram matrices: sum_k weights_k y_k y_k' of selected rows, and the products of rows with rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import CsrRows, RowArrays, Vector, add


@kernel
def sparse_gram(
    rows: CsrRows, which: NDArray[np.int64], weights: Vector, first: int, last: int,
    G: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add the lower triangle for the rows ``which[first:last]`` to ``G``, row by row."""
    bias_row = G[G.shape[0] - 1]
    for i in range(first, last):
        k = which[i]
        weight = weights[i]
        # Unsigned positions need no test for negative ones.
        begin, end = np.uint64(rows.indptr[k]), np.uint64(rows.indptr[k + 1])
        j = begin
        while j < end:
            row_of_G = G[rows.indices[j]]
            value = weight * rows.values[j]
            other = begin
            while other <= j:
                row_of_G[rows.indices[other]] += value * rows.values[other]
                other += np.uint64(1)
            j += np.uint64(1)
        if rows.intercept_scaling != 0.0:
            add(rows, k, weight * rows.intercept_scaling, bias_row)


@kernel
def scaled_rows(
    rows: RowArrays, which: NDArray[np.int64], scales: Vector, out: NDArray[np.float64]
) -> None:
    """The augmented rows ``which``, times ``scales``, as a dense matrix."""
    for i in range(which.size):
        out[i] = 0.0
        add(rows, which[i], scales[i], out[i])


@kernel
def sparse_row_products(
    rows: CsrRows, column_starts: NDArray[np.int64], column_rows: NDArray[Any],
    column_values: NDArray[np.floating[Any]], first: int, last: int, K: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add the lower triangle of x_i.x_k, for the rows i from first to last, to ``K``.

    The columns are those of the same matrix, each with its rows in ascending order.
    """
    for i in range(first, last):
        products = K[i]
        for j in range(rows.indptr[i], rows.indptr[i + 1]):
            value = np.float64(rows.values[j])
            column = rows.indices[j]
            for q in range(column_starts[column], column_starts[column + 1]):
                k = column_rows[q]
                if k > i:
                    break
                products[k] += value * column_values[q]


@kernel
def scaled_submatrix(
    K: NDArray[np.float64], which: NDArray[np.int64], scales: Vector, offset: float, ridge: float,
    first: int, last: int, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """The lower triangle of ridge I + (scales_i (K_ij - offset) scales_j) over ``which``.

    ``which`` ascends.

    Writes the rows from first to last of ``out``.
    """
    for i in range(first, last):
        row = K[which[i]]
        for j in range(i + 1):
            out[i, j] = scales[i] * scales[j] * (row[which[j]] - offset)
        out[i, i] += ridge
