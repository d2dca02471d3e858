"""Sums over rows: losses, linear combinations of rows, squared norms, and Gram matrices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel, reordering_kernel
from certsvm.kernels.losses import Loss, dual_penalty, loss_value, steepness
from certsvm.kernels.rows import CsrRows, RowArrays, Vector, add, dot


@kernel
def margins(
    rows: RowArrays, signed_weights: Vector, w: Vector, first: int, last: int, out: Vector
) -> None:
    """w.y_k for the rows from first to last; 1, which is no loss, for rows of weight zero."""
    for k in range(first, last):
        # Selected, not branched to: labels in random order would be predicted wrongly.
        product = dot(rows, k, w)
        signed = product if signed_weights[k] > 0.0 else -product
        out[k] = 1.0 if signed_weights[k] == 0.0 else signed


@kernel
def loss_sums(
    loss: Loss, products: Vector, weights: Vector, chunk_starts: NDArray[np.int64], first: int,
    last: int, margin_slack: float, sizes: Vector, sums: Vector, masses: Vector,
) -> None:  # fmt: skip
    """Weighted loss of each chunk of rows, into ``sums[first:last]``, from the rows' margins.

    Chunk c holds the rows from ``chunk_starts[c]`` to ``chunk_starts[c + 1]``. The chunks do
    not depend on the number of threads, so neither does their sum.

    ``masses`` gets the sum of ``sizes[k]`` times the steepness of the loss over the rows that may
    have a loss: those whose product with w is below ``1 + margin_slack``, where the slack bounds
    the rounding error of a product.
    """
    for c in range(first, last):
        total, mass = 0.0, 0.0
        for k in range(chunk_starts[c], chunk_starts[c + 1]):
            # Written so that a NaN product counts as a loss.
            if weights[k] > 0.0 and not products[k] >= 1.0 + margin_slack:
                mass += sizes[k] * steepness(loss, products[k] - margin_slack)
                total += weights[k] * loss_value(loss, products[k])
        sums[c] = total
        masses[c] = mass


@kernel
def dual_penalties(loss: Loss, alpha: Vector, weights: Vector, C: float, out: Vector) -> None:
    """Write the ``dual_penalty`` of each row."""
    for k in range(alpha.size):
        out[k] = dual_penalty(loss, alpha[k], C, weights[k])


@kernel
def weighted_sum(
    rows: RowArrays, signed_weights: Vector, alpha: Vector, first: int, last: int, chunk: int,
    partial: Vector, out: Vector,
) -> None:  # fmt: skip
    """Add alpha_k y_k, for k from first to last, to ``out``; only the sign of the weights counts.

    Each chunk of rows is summed into ``partial`` first: an entry then goes through one addition for
    each row of a chunk and one for each chunk, instead of one for each row.
    """
    for start in range(first, last, chunk):
        partial[:] = 0.0
        for k in range(start, min(start + chunk, last)):
            if alpha[k] != 0.0:
                add(rows, k, alpha[k] if signed_weights[k] > 0.0 else -alpha[k], partial)
        for j in range(out.size):
            out[j] += partial[j]


@kernel
def products_of(rows: RowArrays, which: NDArray[np.int64], v: Vector, out: Vector) -> None:
    """Write v.x_k for the rows k in ``which``."""
    for i in range(which.size):
        out[i] = dot(rows, which[i], v)


@kernel
def combination_of(rows: RowArrays, which: NDArray[np.int64], steps: Vector, out: Vector) -> None:
    """Add steps_i x_k to ``out``, for the rows k in ``which``."""
    for i in range(which.size):
        add(rows, which[i], steps[i], out)


@reordering_kernel
def squared_norms(
    values: NDArray[np.floating[Any]], starts: NDArray[np.int64], intercept: float, out: Vector
) -> None:
    """Squared norms of augmented rows, not finite if a value is not.

    Row k holds ``values[starts[k]:starts[k + 1]]`` and the intercept's entry.
    """
    for k in range(out.size):
        row, total = values[starts[k] : starts[k + 1]], 0.0
        for j in range(row.size):
            total += np.float64(row[j]) * np.float64(row[j])
        out[k] = total + intercept * intercept


@kernel
def sparse_gram(
    rows: CsrRows, which: NDArray[np.int64], weights: Vector, first: int, last: int,
    G: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add the lower triangle for the rows ``which[first:last]`` to ``G``, row by row."""
    for i in range(first, last):
        k, weight = which[i], weights[i]
        # Unsigned positions need no test for negative ones.
        begin, end = np.uint64(rows.indptr[k]), np.uint64(rows.indptr[k + 1])
        for j in range(begin, end):
            row_of_G = G[rows.indices[j]]
            value = weight * rows.values[j]
            for other in range(begin, j + np.uint64(1)):
                row_of_G[rows.indices[other]] += value * rows.values[other]
        if rows.intercept_scaling != 0.0:
            add(rows, k, weight * rows.intercept_scaling, G[G.shape[0] - 1])


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
