"""Decimal text to the nearest double, exactly.

A number is read as ``m * 10**q`` with up to 19 digits in m. If m and 10**|q| are doubles, one
product or quotient is the nearest double (Clinger). Otherwise the product of m with the leading 128
bits of 10**q is bounded from both sides (Eisel and Lemire); nearly always both bounds round to the
same double. If not, or if there are more than 19 digits, the number is reported as unsettled, and
the caller uses Python's ``float``.

Text is read eight bytes at a time. Functions that read ``text`` from position i stop at a byte
that is no digit, and read at most eight bytes from there: a line feed followed by seven more bytes
keeps them within the array.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros, viewer
from numba.extending import intrinsic
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel

SETTLED, UNSETTLED, MALFORMED, TOO_LARGE = range(4)

PADDING = 8
"""Number of bytes that must follow the text; the last line feed may be the first of them."""

_SMALLEST_POWER, _LARGEST_POWER = -342, 308
_U = np.uint64
_INFINITY_BITS = _U(0x7FF0000000000000)
_MOST_EXACT = _U(1 << 53)
_ALL_ONES = _U(2**64 - 1)
_ZEROS = _U(0x3030303030303030)
_SEVEN_BITS = _U(0x7F7F7F7F7F7F7F7F)
_OVER_NINE = _U(0x7676767676767676)
_HIGH_BITS = _U(0x8080808080808080)


class DecimalTables(NamedTuple):
    """Powers of ten for kernels."""

    powers: NDArray[np.uint64]
    """The leading 128 bits of 10**q, rounded down, for q from -342 to 308; high half first."""
    tens: NDArray[np.float64]
    """The 23 powers of ten that are doubles."""
    whole_tens: NDArray[np.uint64]
    """10**0 to 10**8, as integers."""


@cache
def decimal_tables() -> DecimalTables:
    """The tables, computed once."""
    powers = np.empty((_LARGEST_POWER - _SMALLEST_POWER + 1, 2), dtype=np.uint64)
    for q in range(_SMALLEST_POWER, _LARGEST_POWER + 1):
        if q >= 0:
            bits = 10**q << 128 >> ((10**q).bit_length())
        else:
            # Between 2**127 and 2**128, as 10**-q has one bit more than its logarithm's floor.
            bits = (1 << 127 + (10**-q).bit_length()) // 10**-q
        powers[q - _SMALLEST_POWER] = bits >> 64, bits & (2**64 - 1)
    tens = np.array([float(10**q) for q in range(23)])
    whole_tens = np.array([10**q for q in range(9)], dtype=np.uint64)
    for table in (powers, tens, whole_tens):
        table.flags.writeable = False
    return DecimalTables(powers, tens, whole_tens)


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
def _more_digits(
    text: NDArray[np.uint8], i: int, m: np.uint64, tables: DecimalTables
) -> tuple[np.uint64, int]:
    """Append the digits from i on to m, modulo 2**64; return m and the end of the digits."""
    n = 8
    while n == 8:
        word = word_at(text, i)
        n = leading_digits(word)
        m = m * tables.whole_tens[n] + digits_value(word, n)
        i += n
    return m, i


@kernel
def _exponent(text: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The exponent after the e at i, and its end; -1 if it has no digits.

    It stops growing when it outweighs any possible number of digits.
    """
    i += 1
    sign = byte_at(text, i)
    if sign == 43 or sign == 45:
        i += 1
    first = i
    e = 0
    while 48 <= byte_at(text, i) <= 57:
        if e < 100_000_000_000_000_000:
            e = e * 10 + byte_at(text, i) - 48
        i += 1
    return -e if sign == 45 else e, i if i > first else -1


@kernel
def _round_product(m: np.uint64, q: int, powers: NDArray[np.uint64]) -> tuple[np.uint64, int]:
    """The bits of the double nearest to m * 10**q, for m > 0 and q within the table.

    With m shifted up to 64 bits and 10**q to 128, the leading bits of their product f are known. In
    units of the last bit of ``high``, f lies between ``high`` and ``high + 2`` at first; with the
    table's other half, within 2**-63 above (high, low). The result is unsettled if f may lie on
    either side of the middle between two doubles.
    """
    shift = leading_zeros(m)
    m <<= shift
    k = q - _SMALLEST_POWER
    high, low = _high_product(m, powers[k, 0]), m * powers[k, 0]
    top = np.int64(high >> _U(63))
    # 217706 / 2**16 is log2(10), closely enough for the floor of all multiples in the table.
    exponent: Any = 1086 - np.int64(shift) + ((217706 * q) >> 16) + top
    drop = 10 + top
    if exponent < 1:
        drop += 1 - exponent
        exponent = 1
        if drop > 63:
            return _U(0), UNSETTLED
    middle = _U(1) << _U(drop - 1)
    rest = high & ((middle << _U(1)) - _U(1))
    exact = 0 <= q <= 27
    if not exact and (rest == middle or rest == middle - _U(1)):
        more = _high_product(m, powers[k, 1])
        low += more
        rest += _U(low < more)
        if (rest == middle - _U(1) and low >= _ALL_ONES - _U(1)) or (
            rest == middle and low == _U(0)
        ):
            return _U(0), UNSETTLED
    kept = high >> _U(drop)
    odd = (kept & _U(1)) == _U(1)
    up = rest > middle or (rest == middle and (low > _U(0) or odd))
    bits = (_U(exponent - 1) << _U(52)) + kept + _U(up)
    return bits, TOO_LARGE if bits >= _INFINITY_BITS else SETTLED


@kernel
def nearest_double(m: np.uint64, q: int, tables: DecimalTables) -> tuple[float, int]:
    """The double nearest to m * 10**q, and its status."""
    if m <= _MOST_EXACT and -22 <= q <= 22:
        if q < 0:
            return np.float64(m) / tables.tens[-q], SETTLED
        return np.float64(m) * tables.tens[q], SETTLED
    if m == _U(0) or q < _SMALLEST_POWER:
        # Not even 2**64 times 10**-343 is half the smallest double.
        return 0.0, SETTLED
    if q > _LARGEST_POWER:
        return 0.0, TOO_LARGE
    bits, status = _round_product(m, q, tables.powers)
    return viewer(bits, np.float64), status


@kernel
def read_number(text: NDArray[np.uint8], i: int, tables: DecimalTables) -> tuple[float, int, int]:
    """Read ``[+-] digits [. digits] [e [+-] digits]`` from i on.

    Returns the nearest double, the position behind the number, and the status.
    """
    c = byte_at(text, i)
    negative = c == 45
    i += c == 45 or c == 43
    first = i
    m, i = _more_digits(text, i, _U(0), tables)
    digits = i - first
    q = 0
    if byte_at(text, i) == 46:
        behind_point = i + 1
        m, i = _more_digits(text, behind_point, m, tables)
        q = behind_point - i
        digits -= q
    if digits == 0:
        return 0.0, i, MALFORMED
    if digits > 19:
        # Zeros at the start do not count.
        j = first
        while byte_at(text, j) == 48 or byte_at(text, j) == 46:
            digits -= byte_at(text, j) == 48
            j += 1
    if byte_at(text, i) | 32 == 101:
        e, i = _exponent(text, i)
        if i < 0:
            return 0.0, i, MALFORMED
        q += e
    if digits > 19:
        # m has overflowed. Such numbers are rare.
        return 0.0, i, UNSETTLED
    value, status = nearest_double(m, q, tables)
    return -value if negative else value, i, status


@kernel
def read_short_number(text: NDArray[np.uint8], i: int, tables: DecimalTables) -> tuple[float, int]:
    """Read a number of at most seven digits before and after its point, without an exponent.

    Returns the nearest double, and the position behind the digits; -1 if it is no such number. The
    function is small enough to be inlined, unlike ``read_number``.
    """
    c = byte_at(text, i)
    negative = c == 45
    i += negative or c == 43
    word = word_at(text, i)
    whole = leading_digits(word)
    m = digits_value(word, whole)
    i += whole
    parts = 0
    if byte_at(text, i) == 46:
        word = word_at(text, i + 1)
        parts = leading_digits(word)
        m = m * tables.whole_tens[parts] + digits_value(word, parts)
        i += 1 + parts
    if whole == 0 or whole == 8 or parts == 8:
        i = -1
    # At most 14 digits and 10**7: both are doubles.
    value = np.float64(np.int64(m)) / tables.tens[parts]
    return -value if negative else value, i


@kernel
def narrows_twice(value: float) -> Any:
    """Whether a double lies halfway between two float32.

    Only then may the float32 nearest to it differ from the float32 nearest to the decimal number
    from which the double was rounded.
    """
    if abs(value) >= 2.0**-126:
        return (viewer(value, np.uint64) & _U(0x1FFFFFFF)) == _U(0x10000000)
    # Below, float32 are the multiples of 2**-149.
    multiple = abs(value) * 2.0**149
    return multiple - np.floor(multiple) == 0.5
