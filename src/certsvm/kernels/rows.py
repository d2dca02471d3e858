"""Rows of the data, and the operations on a row: inner product and addition.

A kernel takes rows as one argument and calls ``dot`` and ``add`` on them. Compilation chooses the
sparse or the dense form. Called from Python, the functions run as written here, so every kernel's
``py_func`` is a plain-Python reference.

Every row stands for the augmented pattern ``[x_k, rho]``: with rho != 0, vectors have one entry
more than the data has columns, the last.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel, row_operation

Vector: TypeAlias = NDArray[np.float64]


class CsrRows(NamedTuple):
    """Sparse rows: row k holds ``values[indptr[k]:indptr[k+1]]`` at columns ``indices[...]``.

    The indices are unsigned views of validated ones, which spares the compiled loop the test for
    negative (wrap-around) positions.
    """

    values: NDArray[np.floating[Any]]
    indices: NDArray[np.unsignedinteger[Any]]
    indptr: NDArray[np.int64]
    intercept_scaling: float


class DenseRows(NamedTuple):
    """Dense rows, C-ordered."""

    values: NDArray[np.floating[Any]]
    intercept_scaling: float


RowArrays: TypeAlias = CsrRows | DenseRows


def dot(rows: RowArrays, k: int, v: NDArray[Any]) -> float:
    """Inner product of the augmented row ``k`` with ``v``, accumulated in float64."""
    if isinstance(rows, CsrRows):
        part = slice(rows.indptr[k], rows.indptr[k + 1])
        total = float(rows.values[part].astype(np.float64) @ v[rows.indices[part]])
    else:
        total = float(rows.values[k].astype(np.float64) @ v[: rows.values.shape[1]])
    return total + (rows.intercept_scaling * float(v[-1]) if rows.intercept_scaling != 0.0 else 0.0)


def add(rows: RowArrays, k: int, step: float, v: NDArray[Any]) -> None:
    """Add ``step`` times the augmented row ``k`` to ``v``."""
    if isinstance(rows, CsrRows):
        part = slice(rows.indptr[k], rows.indptr[k + 1])
        v[rows.indices[part]] += step * rows.values[part].astype(np.float64)
    else:
        v[: rows.values.shape[1]] += step * rows.values[k].astype(np.float64)
    if rows.intercept_scaling != 0.0:
        v[-1] += step * rows.intercept_scaling


def add_scaled(rows: RowArrays, k: int, step: float, scale: NDArray[Any], v: NDArray[Any]) -> None:
    """Add ``step * scale[j] * x_kj`` to ``v[j]``, for all entries j of the augmented row ``k``."""
    x = np.zeros(v.size)
    add(rows, k, step, x)
    v += scale * x


@row_operation(dot)
def _dot_csr(rows: Any, k: Any, v: Any) -> Any:
    if rows.instance_class is not CsrRows:
        return None

    def implementation(rows: CsrRows, k: int, v: NDArray[Any]) -> float:
        # Positions are unsigned for the same reason as indices. Four sums run in parallel.
        j, end = np.uint64(rows.indptr[k]), np.uint64(rows.indptr[k + 1])
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        while j + np.uint64(3) < end:
            a += rows.values[j] * v[rows.indices[j]]
            b += rows.values[j + np.uint64(1)] * v[rows.indices[j + np.uint64(1)]]
            c += rows.values[j + np.uint64(2)] * v[rows.indices[j + np.uint64(2)]]
            d += rows.values[j + np.uint64(3)] * v[rows.indices[j + np.uint64(3)]]
            j += np.uint64(4)
        while j < end:
            a += rows.values[j] * v[rows.indices[j]]
            j += np.uint64(1)
        total = (a + b) + (c + d)
        if rows.intercept_scaling != 0.0:
            total += rows.intercept_scaling * v[v.size - 1]
        return total

    return implementation


@row_operation(dot, reorder=True)
def _dot_dense(rows: Any, k: Any, v: Any) -> Any:
    if rows.instance_class is not DenseRows:
        return None

    def implementation(rows: DenseRows, k: int, v: NDArray[Any]) -> float:
        total = 0.0
        for j in range(rows.values.shape[1]):
            total += rows.values[k, j] * v[j]
        if rows.intercept_scaling != 0.0:
            total += rows.intercept_scaling * v[v.size - 1]
        return total

    return implementation


@row_operation(add)
def _add(rows: Any, k: Any, step: Any, v: Any) -> Any:
    def sparse(rows: CsrRows, k: int, step: float, v: NDArray[Any]) -> None:
        j, end = np.uint64(rows.indptr[k]), np.uint64(rows.indptr[k + 1])
        while j < end:
            v[rows.indices[j]] += step * rows.values[j]
            j += np.uint64(1)
        if rows.intercept_scaling != 0.0:
            v[v.size - 1] += step * rows.intercept_scaling

    def dense(rows: DenseRows, k: int, step: float, v: NDArray[Any]) -> None:
        for j in range(rows.values.shape[1]):
            v[j] += step * rows.values[k, j]
        if rows.intercept_scaling != 0.0:
            v[v.size - 1] += step * rows.intercept_scaling

    return sparse if rows.instance_class is CsrRows else dense


@row_operation(add_scaled)
def _add_scaled(rows: Any, k: Any, step: Any, scale: Any, v: Any) -> Any:
    def sparse(rows: CsrRows, k: int, step: float, scale: NDArray[Any], v: NDArray[Any]) -> None:
        for j in range(rows.indptr[k], rows.indptr[k + 1]):
            column = rows.indices[j]
            v[column] += step * scale[column] * rows.values[j]
        if rows.intercept_scaling != 0.0:
            v[v.size - 1] += step * scale[v.size - 1] * rows.intercept_scaling

    def dense(rows: DenseRows, k: int, step: float, scale: NDArray[Any], v: NDArray[Any]) -> None:
        for j in range(rows.values.shape[1]):
            v[j] += step * scale[j] * rows.values[k, j]
        if rows.intercept_scaling != 0.0:
            v[v.size - 1] += step * scale[v.size - 1] * rows.intercept_scaling

    return sparse if rows.instance_class is CsrRows else dense


@kernel
def copy_rows(
    rows: CsrRows,
    which: NDArray[np.int64],
    indptr: NDArray[np.int64],
    values: NDArray[np.floating[Any]],
    indices: NDArray[np.unsignedinteger[Any]],
) -> None:
    """Copy the rows ``which`` into ``values`` and ``indices``, at the positions in ``indptr``."""
    for i in range(which.size):
        source = rows.indptr[which[i]]
        for j in range(indptr[i + 1] - indptr[i]):
            values[indptr[i] + j] = rows.values[source + j]
            indices[indptr[i] + j] = rows.indices[source + j]
