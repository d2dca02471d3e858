"""A parser of lines ``label [qid:n] index:value ... [# comment]``.

Text is parsed by whole lines, with line feeds behind the last. No loop over bytes passes a line
feed: so no loop needs to test for the end of the text, and none reads beyond it.

A number that takes more than double precision is left to Python: it is stored as a NaN that holds
its position in the text. No number of a text is NaN.
"""

from typing import NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import viewer
from numpy.typing import NDArray

from certsvm.kernels import decimal
from certsvm.kernels.decimal import byte_at
from certsvm.kernels.jit import kernel

LARGEST_INDEX = 2**63 - 2
POSITION_BITS = 2**51 - 1
"""The bits of a NaN that hold a position."""

_NAN_BITS = np.uint64(0x7FF8000000000000)
_TAB, _LF, _CR, _SPACE, _HASH, _COLON = 9, 10, 13, 32, 35, 58
_QID = (113, 105, 100, _COLON)
# Up to 15 digits, different numbers are different doubles, unless they are as small as this.
_SURE_DIGITS, _SMALL = 15, 1e-290


class Rules(NamedTuple):
    """Which numbers are valid."""

    low: int
    """The smallest index."""
    high: int
    """The largest index."""
    narrow: bool
    """Whether values are to be rounded to float32."""


class Room(NamedTuple):
    """Where ``parse_lines`` puts its results."""

    values: NDArray[np.float64]
    indices: NDArray[np.int64]
    counts: NDArray[np.int64]
    """The number of values of each row."""
    labels: NDArray[np.float64]


class Report(NamedTuple):
    """The result of ``parse_lines``."""

    wrong: int
    """Position of what is not in the format; -1 if everything is."""
    rows: int
    values: int
    lines: int
    """Number of line ends up to there."""
    queries: int
    """Number of lines with a qid."""


@kernel
def _ends_line(text: NDArray[np.uint8], i: int, end: int) -> bool:
    """Whether a line feed is at i, or a carriage return with one."""
    c = byte_at(text, i)
    return c == _LF or (c == _CR and i + 1 < end and byte_at(text, i + 1) == _LF)


@kernel
def _ends_token(text: NDArray[np.uint8], i: int, end: int) -> bool:
    c = byte_at(text, i)
    return c in (_SPACE, _TAB, _HASH) or _ends_line(text, i, end)


@kernel
def _behind_blanks(text: NDArray[np.uint8], i: int) -> int:
    while byte_at(text, i) == _SPACE or byte_at(text, i) == _TAB:
        i += 1
    return i


@kernel
def _behind_query(text: NDArray[np.uint8], i: int, end: int) -> int:
    """Position behind ``qid:n`` at i; i itself if there is none."""
    for j in range(4):
        if byte_at(text, i + j) != _QID[j]:
            return i
    j = i + 4
    while 48 <= byte_at(text, j) <= 57:
        j += 1
    return j if j > i + 4 and _ends_token(text, j, end) else i


@kernel
def _read_index(text: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The index whose digits begin at i, or -1 if it is too large; and the end of the digits."""
    while byte_at(text, i) == 48:
        i += 1
    index, behind = decimal.more_digits(text, i, np.uint64(0))
    if behind - i > 19 or index > np.uint64(LARGEST_INDEX):
        return -1, behind
    return int(np.int64(index)), behind


@kernel
def _read_value(text: NDArray[np.uint8], i: int, end: int, narrow: bool) -> tuple[float, int]:
    """The number at i, a NaN with its position if Python is needed; and its end.

    The end is -1 if there is no number.
    """
    value, behind = decimal.read_number(text, i)
    if behind < 0 or not _ends_token(text, behind, end):
        return 0.0, -1
    # Whether it lies halfway between two float32, or perhaps beyond them, is for Python.
    halfway = (viewer(value, np.uint64) & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
    awkward = halfway or not 2.0**-126 <= abs(value) < 2.0**127
    if np.isnan(value) or (narrow and awkward and value != 0.0):
        value = viewer(_NAN_BITS | np.uint64(i), np.float64)
    return value, behind


@kernel
def _parse_items(
    text: NDArray[np.uint8], i: int, end: int, k: int, rules: Rules, room: Room
) -> tuple[bool, int, int]:
    """Store the pairs from i on in slots from k on.

    Returns whether they are in the format, the position behind them or of what is not, and the next
    slot.
    """
    previous = -1
    while True:
        i = _behind_blanks(text, i)
        if not 48 <= byte_at(text, i) <= 57:
            return True, i, k
        index, colon = _read_index(text, i)
        if (
            byte_at(text, colon) != _COLON
            or index < rules.low
            or index > rules.high
            or index <= previous
            or k >= room.values.size
        ):
            return False, i, k
        value, i = _read_value(text, colon + 1, end, rules.narrow)
        if i < 0:
            return False, colon + 1, k
        room.values[k] = value
        room.indices[k] = previous = index
        k += 1


@kernel
def parse_lines(text: NDArray[np.uint8], end: int, rules: Rules, room: Room) -> Report:
    """Parse ``text[:end]``, which ``PADDING`` line feeds follow."""
    i, k, row, lines, queries = 0, 0, 0, 0, 0
    while i < end:
        i = _behind_blanks(text, i)
        if byte_at(text, i) != _HASH and not _ends_line(text, i, end):
            if row >= room.labels.size:
                return Report(i, row, k, lines, queries)
            label, behind = _read_value(text, i, end, False)
            if behind < 0:
                return Report(i, row, k, lines, queries)
            # Labels that rounding may have merged are looked at again; zero itself is short.
            if behind - i > (5 if abs(label) < _SMALL else _SURE_DIGITS):
                label = viewer(_NAN_BITS | np.uint64(i), np.float64)
            first, start = k, _behind_blanks(text, behind)
            behind = _behind_query(text, start, end)
            queries += behind > start
            room.labels[row] = label
            row += 1
            sound, i, k = _parse_items(text, behind, end, k, rules, room)
            if not sound:
                return Report(i, row, k, lines, queries)
            room.counts[row - 1] = k - first
        if byte_at(text, i) == _HASH:
            # No comment has a NUL or a lone carriage return.
            while not (_ends_line(text, i, end) or byte_at(text, i) in (0, _CR)):
                i += 1
        if not _ends_line(text, i, end):
            return Report(i, row, k, lines, queries)
        i += 1 + (byte_at(text, i) == _CR)
        lines += 1
    return Report(-1, row, k, lines, queries)
