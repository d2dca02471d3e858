"""Decimal text to the nearest double, exactly.

A number is read as ``m * 10**q`` with up to 19 digits in m. If m and 10**|q| are doubles, one
product or quotient is the nearest double (Clinger). Otherwise the product of m with the leading 64
bits of 10**q is bounded from both sides (Eisel and Lemire); for all but one number in a thousand
both bounds round to the same double. If not, or if there are more than 19 digits, the result is
NaN: the caller uses Python's ``float``.

Text is read eight bytes at a time. Functions that read ``text`` from position i stop at a byte
that is no digit, and read at most eight bytes from there: a line feed followed by seven more bytes
keeps them within the array.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros, viewer
from numba.extending import intrinsic
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel

PADDING = 8
"""Number of line feeds that must follow the text."""

_SMALLEST_POWER, _LARGEST_POWER = -342, 308
_U = np.uint64
_MOST_EXACT = _U(1 << 53)
_ZEROS = _U(0x3030303030303030)
_SEVEN_BITS = _U(0x7F7F7F7F7F7F7F7F)
_OVER_NINE = _U(0x7676767676767676)
_HIGH_BITS = _U(0x8080808080808080)


def _leading_bits(q: int) -> Any:
    """The leading 64 bits of 10**q, rounded down."""
    if q >= 0:
        return 10**q << 64 >> (10**q).bit_length()
    # 10**-q has one bit more than its logarithm's floor.
    return (1 << 63 + (10**-q).bit_length()) // 10**-q


# Kernels take global arrays as constants.
POWERS = np.array([_leading_bits(q) for q in range(_SMALLEST_POWER, _LARGEST_POWER + 1)], dtype=_U)
_TENS = np.array([float(10**q) for q in range(23)])
_WHOLE_TENS = np.array([10**q for q in range(9)], dtype=_U)


@intrinsic  # type: ignore[untyped-decorator]
def word_at(typing_context: Any, text: Any, i: Any) -> Any:
    """The eight bytes from ``text[i]``, in little-endian order (as on all hosts of Numba)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        return builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(text, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """The upper 64 of the 128 bits of a product."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        factors = [builder.zext(argument, wide) for argument in arguments]
        high = builder.lshr(builder.mul(*factors), wide(64))
        return builder.trunc(high, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@kernel
def byte_at(text: NDArray[np.uint8], i: int) -> Any:
    """``text[i]`` for i >= 0, without the test for negative positions."""
    return np.int64(text[_U(i)])


@kernel
def leading_digits(word: np.uint64) -> Any:
    """Number of digits at the start of eight bytes."""
    x = word ^ _ZEROS
    others = (((x & _SEVEN_BITS) + _OVER_NINE) | x) & _HIGH_BITS
    return np.int64(trailing_zeros(others) >> _U(3))


@kernel
def digits_value(word: np.uint64, n: int) -> np.uint64:
    """The value of the first n of eight bytes, which are digits."""
    # Shift in zeros at the front, in two steps, as a shift by 64 bits is undefined.
    half = _U(32 - 4 * n)
    x = ((word ^ _ZEROS) << half) << half
    pairs = x * _U(10) + (x >> _U(8))
    low = (pairs & _U(0x000000FF000000FF)) * _U(0x000F424000000064)
    high = ((pairs >> _U(16)) & _U(0x000000FF000000FF)) * _U(0x0000271000000001)
    return (low + high) >> _U(32)


@kernel
def more_digits(text: NDArray[np.uint8], i: int, m: np.uint64) -> tuple[np.uint64, int]:
    """Append the digits from i on to m, modulo 2**64; return m and the end of the digits."""
    n = 8
    while n == 8:
        word = word_at(text, i)
        n = leading_digits(word)
        m = m * _WHOLE_TENS[n] + digits_value(word, n)
        i += n
    return m, i


@kernel
def _nearest_double(m: np.uint64, q: int) -> Any:
    """The double nearest to m * 10**q; NaN if it is not settled.

    With m shifted up to 64 bits and the leading 64 bits of 10**q, the product lies between ``high``
    and ``high + 2`` in units of the last bit of ``high``. It is unsettled if it may lie on either
    side of the middle between two doubles.
    """
    if m <= _MOST_EXACT and -22 <= q <= 22:
        return np.float64(m) / _TENS[-q] if q < 0 else np.float64(m) * _TENS[q]
    if m == _U(0):
        return 0.0
    if q < _SMALLEST_POWER or q > _LARGEST_POWER:
        return np.nan
    shift = leading_zeros(m)
    high = _high_product(m << shift, POWERS[q - _SMALLEST_POWER])
    top = np.int64(high >> _U(63))
    # 217706 / 2**16 is log2(10), closely enough for the floor of all multiples in the table.
    exponent: Any = 1086 - np.int64(shift) + ((217706 * q) >> 16) + top
    middle = _U(1) << _U(9 + top)
    rest = high & (middle + middle - _U(1))
    if rest == middle or rest == middle - _U(1) or exponent < 1 or exponent > 2045:
        return np.nan
    bits: Any = (_U(exponent - 1) << _U(52)) + (high >> _U(10 + top)) + _U(rest > middle)
    return viewer(bits, np.float64)


@kernel
def read_number(text: NDArray[np.uint8], i: int) -> tuple[float, int]:
    """Read ``[+-] digits [. digits] [e [+-] digits]`` from i on.

    Returns the nearest double, or NaN if it is not settled, and the position behind the number; -1
    if there is none.
    """
    c = byte_at(text, i)
    negative = c == 45
    i += c == 45 or c == 43
    first = i
    m, i = more_digits(text, i, _U(0))
    digits = i - first
    q = 0
    if byte_at(text, i) == 46:
        behind_point = i + 1
        m, i = more_digits(text, behind_point, m)
        q = behind_point - i
        digits -= q
    if digits == 0:
        return 0.0, -1
    if digits > 19:
        # Zeros at the start do not count.
        j = first
        while byte_at(text, j) == 48 or byte_at(text, j) == 46:
            digits -= byte_at(text, j) == 48
            j += 1
    # Of more digits, m has overflowed.
    settled = digits <= 19
    if byte_at(text, i) | 32 == 101:
        i += 1
        sign = byte_at(text, i)
        i += sign == 45 or sign == 43
        e, behind = more_digits(text, i, _U(0))
        if behind == i:
            return 0.0, -1
        settled &= behind - i < 18
        power: Any = np.int64(e)
        q += -power if sign == 45 else power
        i = behind
    value = _nearest_double(m, q) if settled else np.nan
    return -value if negative else value, i
