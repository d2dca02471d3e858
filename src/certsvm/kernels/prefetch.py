"""Prefetching of rows.

A row that is not visited in the order of memory is a cache miss, of about a hundred nanoseconds.
Prefetching it a few visits ahead hides the delay.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from certsvm.kernels.jit import row_operation
from certsvm.kernels.rows import CsrRows, DenseRows

AHEAD = 4
"""How many visits ahead a row is prefetched."""

# The processor prefetches the rest of a longer row by itself.
_MOST_VALUES = 256
_VALUES_PER_LINE = 8


@intrinsic  # type: ignore[untyped-decorator]
def _line_of(typing_context: Any, array: Any, i: Any) -> Any:
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


def _prefetch(array: Any, i: int) -> None:
    """``_line_of``; nothing in Python."""


@overload(_prefetch, strict=False)  # type: ignore[untyped-decorator]
def _compiled_prefetch(array: Any, i: Any) -> Any:
    return lambda array, i: _line_of(array, i)


def _prefetch_sparse(rows: CsrRows, k: int) -> None:
    first = rows.indptr[k]
    last = min(rows.indptr[k + 1], first + _MOST_VALUES)
    for j in range(first, last, _VALUES_PER_LINE):
        _prefetch(rows.values, j)
        _prefetch(rows.indices, j)


def _prefetch_dense(rows: DenseRows, k: int) -> None:
    columns = rows.values.shape[1]
    for j in range(0, min(columns, _MOST_VALUES), _VALUES_PER_LINE):
        _prefetch(rows.values, k * columns + j)


prefetch_row = row_operation(_prefetch_sparse, _prefetch_dense)
"""``prefetch_row(rows, k)``: prefetch row k; this affects nothing but speed."""
