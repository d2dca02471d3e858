"""Rows of the data, and the operations on a row: inner product, addition and prefetching.

A kernel takes rows as one argument and calls ``dot`` and ``add`` on them. Compilation chooses the
sparse or the dense form.

A row that is not visited in the order of memory is a cache miss, of about a hundred nanoseconds.
Prefetching it a few visits ahead hides the delay.

Every row stands for the augmented pattern ``[x_k, rho]``: with rho != 0, vectors have one entry
more than the data has columns, the last.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel, operation, row_operation

Vector: TypeAlias = NDArray[np.float64]

# How many visits ahead a row is prefetched.
_AHEAD = 4

# The processor prefetches the rest of a longer row by itself.
_MOST_VALUES = 256
_VALUES_PER_LINE = 8


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


# In what follows, positions are unsigned for the same reason as indices. Without an intercept, a
# vector may have no entry at all.


def _sparse_dot(rows: Any, k: int, v: NDArray[Any]) -> float:
    j, end = np.uint64(rows.indptr[k]), np.uint64(rows.indptr[k + 1])
    # Four sums run in parallel.
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    while j + np.uint64(3) < end:
        a += rows.values[j] * v[rows.indices[j]]
        b += rows.values[j + np.uint64(1)] * v[rows.indices[j + np.uint64(1)]]
        c += rows.values[j + np.uint64(2)] * v[rows.indices[j + np.uint64(2)]]
        d += rows.values[j + np.uint64(3)] * v[rows.indices[j + np.uint64(3)]]
        j += np.uint64(4)
    for i in range(j, end):
        a += rows.values[i] * v[rows.indices[i]]
    last = rows.intercept_scaling * v[v.size - 1] if rows.intercept_scaling != 0.0 else 0.0
    return float((a + b) + (c + d) + last)


def _dense_dot(rows: Any, k: int, v: NDArray[Any]) -> float:
    total = rows.intercept_scaling * v[v.size - 1] if rows.intercept_scaling != 0.0 else 0.0
    for j in range(rows.values.shape[1]):
        total += rows.values[k, j] * v[j]
    return total


dot = row_operation(_sparse_dot, _dense_dot)
"""``dot(rows, k, v)``: inner product of the augmented row k with v, accumulated in float64."""


def _sparse_add(rows: Any, k: int, step: float, v: NDArray[Any]) -> None:
    for j in range(np.uint64(rows.indptr[k]), np.uint64(rows.indptr[k + 1])):
        v[rows.indices[j]] += step * rows.values[j]
    if rows.intercept_scaling != 0.0:
        v[v.size - 1] += step * rows.intercept_scaling


def _dense_add(rows: Any, k: int, step: float, v: NDArray[Any]) -> None:
    for j in range(rows.values.shape[1]):
        v[j] += step * rows.values[k, j]
    if rows.intercept_scaling != 0.0:
        v[v.size - 1] += step * rows.intercept_scaling


add = row_operation(_sparse_add, _dense_add)
"""``add(rows, k, step, v)``: add ``step`` times the augmented row k to v."""


def _sparse_add_scaled(
    rows: Any, k: int, step: float, scale: NDArray[Any], v: NDArray[Any]
) -> None:
    for j in range(np.uint64(rows.indptr[k]), np.uint64(rows.indptr[k + 1])):
        v[rows.indices[j]] += step * scale[rows.indices[j]] * rows.values[j]
    if rows.intercept_scaling != 0.0:
        v[v.size - 1] += step * scale[v.size - 1] * rows.intercept_scaling


def _dense_add_scaled(rows: Any, k: int, step: float, scale: NDArray[Any], v: NDArray[Any]) -> None:
    for j in range(rows.values.shape[1]):
        v[j] += step * scale[j] * rows.values[k, j]
    if rows.intercept_scaling != 0.0:
        v[v.size - 1] += step * scale[v.size - 1] * rows.intercept_scaling


add_scaled = row_operation(_sparse_add_scaled, _dense_add_scaled)
"""``add_scaled(rows, k, step, scale, v)``: add step * scale[j] * x_kj to v[j], for all entries j of
the augmented row k."""


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, array: Any, i: Any) -> Any:
    """Prefetch the cache line of ``array[i]`` for reading."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        int8_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), int8_pointer)
        kind = ir.FunctionType(ir.VoidType(), [int8_pointer, int32, int32, int32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_reading, keep_near, data_cache = int32(0), int32(3), int32(1)
        builder.call(function, [address, for_reading, keep_near, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _prefetch_sparse(rows: Any, k: int) -> None:
    first = rows.indptr[k]
    for j in range(first, min(rows.indptr[k + 1], first + _MOST_VALUES), _VALUES_PER_LINE):
        _prefetch(rows.values, j)
        _prefetch(rows.indices, j)


def _prefetch_dense(rows: Any, k: int) -> None:
    columns = rows.values.shape[1]
    for j in range(0, min(columns, _MOST_VALUES), _VALUES_PER_LINE):
        _prefetch(rows.values, k * columns + j)


prefetch_row = row_operation(_prefetch_sparse, _prefetch_dense)
"""``prefetch_row(rows, k)``: prefetch row k in a kernel; this affects nothing but speed."""


@operation
def visit_row(
    rows: RowArrays, signed_weights: Vector, order: NDArray[np.int64], i: int, v: NDArray[Any]
) -> tuple[int, float, float, float]:
    """The i-th row k of ``order``, its weight, its label, and its product y_k.v."""
    if i + _AHEAD < order.size:
        prefetch_row(rows, order[i + _AHEAD])
    k = order[i]
    label = 1.0 if signed_weights[k] > 0.0 else -1.0
    return k, abs(signed_weights[k]), label, label * dot(rows, k, v)


@kernel
def columns_ascend(rows: CsrRows) -> bool:
    """Whether the columns of every row ascend."""
    for k in range(rows.indptr.size - 1):
        columns, descents = rows.indices[rows.indptr[k] : rows.indptr[k + 1]], 0
        # Without a branch, the loop is faster.
        for j in range(1, columns.size):
            descents += columns[j] <= columns[j - 1]
        if descents > 0:
            return False
    return True
