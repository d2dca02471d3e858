"""A parser of lines ``label [qid:n] index:value ... [# comment]``.

Text is parsed by whole lines. The last line ends with a line feed within the text or right behind
it, and no loop over bytes passes a line feed: so no loop needs to test for the end of the text, and
none reads beyond it. ``parse_lines`` checks this at the start, and the room for its results as it
proceeds.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels import decimal
from certsvm.kernels.decimal import DecimalTables, byte_at
from certsvm.kernels.jit import kernel

PARSED, BAD_LABEL, LABEL_TOO_LARGE, BAD_ITEM, BAD_INDEX, NOT_ASCENDING, BAD_VALUE = range(7)
VALUE_TOO_LARGE, BAD_COMMENT, WIDE_INDEX, NO_ROOM, BAD_BUFFER, INEXACT_LABEL = range(7, 13)

LARGEST_INDEX = 2**63 - 2
_TAB, _LF, _CR, _SPACE, _HASH, _COLON = 9, 10, 13, 32, 35, 58
_QID = (113, 105, 100, _COLON)
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
# Up to 15 digits, different numbers are different doubles, unless they are as small as this.
_SURE_DIGITS, _SMALL = 15, 1e-290


class IndexRules(NamedTuple):
    """Which indices are valid, and how they are stored."""

    base: int
    """Subtracted from every index."""
    low: int
    """The smallest valid index."""
    high: int
    """The largest valid index."""


class Report(NamedTuple):
    """The result of ``parse_lines``, in the order of the array that it fills."""

    code: int
    """``PARSED``, or the kind of error."""
    position: int
    """Position of the error."""
    rows: int
    values: int
    smallest: int
    """The smallest index; ``LARGEST_INDEX`` if there is none."""
    largest: int
    """The largest index; -1 if there is none."""
    queries: int
    """Number of lines with a qid."""
    deferred: int
    """Number of unsettled numbers, which are listed as far as there is room."""


class Room(NamedTuple):
    """Where ``parse_lines`` puts its results."""

    values: NDArray[np.floating[Any]]
    indices: NDArray[np.signedinteger[Any]]
    labels: NDArray[np.float64]
    row_ends: NDArray[np.int64]
    """The number of values up to the end of each row, plus the first of them."""
    deferred: NDArray[np.int64]
    """Slots and positions of unsettled numbers, of shape (n, 2); slot -1 - k is the label of row
    k."""
    report: NDArray[np.int64]
    """The numbers of a ``Report``."""


@kernel
def survey(text: NDArray[np.uint8]) -> tuple[int, int]:
    """Numbers of line feeds and of colons."""
    lines, colons = 0, 0
    for j in range(text.size):
        lines += text[j] == _LF
        colons += text[j] == _COLON
    return lines, colons


@kernel
def first_line_end(text: NDArray[np.uint8]) -> int:
    """Position behind the first line feed; 0 if there is none."""
    for j in range(text.size):
        if text[j] == _LF:
            return j + 1
    return 0


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
def _behind_comment(text: NDArray[np.uint8], i: int, end: int) -> tuple[int, bool]:
    """End of the comment, and whether it has no NUL and no lone carriage return."""
    while not _ends_line(text, i, end):
        c = byte_at(text, i)
        if c == 0 or c == _CR:
            return i, False
        i += 1
    return i, True


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
    word = decimal.word_at(text, i)
    n = decimal.leading_digits(word)
    index: Any = np.int64(decimal.digits_value(word, n))
    i += n
    if n == 8:
        while 48 <= byte_at(text, i) <= 57:
            digit = byte_at(text, i) - 48
            if index > (LARGEST_INDEX - digit) // 10:
                index = -1
            if index >= 0:
                index = index * 10 + digit
            i += 1
    return index, i


@kernel
def _read_value(
    text: NDArray[np.uint8], i: int, end: int, narrow: bool, tables: DecimalTables
) -> tuple[float, int, int]:
    """Read a number that is a whole token, as ``read_number`` does."""
    value, i, status = decimal.read_number(text, i, tables)
    if status == decimal.MALFORMED or not _ends_token(text, i, end):
        return value, i, decimal.MALFORMED
    if narrow and status == decimal.SETTLED:
        if decimal.narrows_twice(value):
            status = decimal.UNSETTLED
        elif abs(np.float32(value)) > _LARGEST_FLOAT32:
            status = decimal.TOO_LARGE
    return value, i, status


@kernel
def _defer(room: Room, slot: int, position: int) -> None:
    """Count an unsettled number, and list it if there is room."""
    count = room.report[7]
    if count < room.deferred.shape[0]:
        room.deferred[count, 0] = slot
        room.deferred[count, 1] = position
    room.report[7] += 1


@kernel
def _parse_items(
    text: NDArray[np.uint8], i: int, end: int, k: int, rules: IndexRules, tables: DecimalTables,
    room: Room,
) -> tuple[int, int, int]:  # fmt: skip
    """Store the pairs from i on in slots from k on; return a code, a position and the next slot.

    After ``PARSED`` the position is that of the first byte that cannot begin a pair, and the report
    has the range of the indices.
    """
    values, indices, report = room.values, room.indices, room.report
    narrow = values.itemsize == 4
    previous, token, first_k = -1, i, k
    while True:
        i = _behind_blanks(text, i)
        if not 48 <= byte_at(text, i) <= 57:
            break
        token = i
        index, i = _read_index(text, i)
        if byte_at(text, i) != _COLON:
            return BAD_ITEM, token, k
        if index < rules.low or index > rules.high:
            return BAD_INDEX, token, k
        if index <= previous:
            return NOT_ASCENDING, token, k
        if indices.itemsize == 4 and index > 2147483647:
            return WIDE_INDEX, token, k
        if k >= values.size:
            return NO_ROOM, token, k
        previous = index
        begin = i + 1
        value, i = decimal.read_short_number(text, begin, tables)
        # So few digits are never so close to the middle between two float32 that the double lies on
        # the other side of it: no test of ``narrows_twice`` is needed.
        if i < 0 or (byte_at(text, i) != _SPACE and byte_at(text, i) != _LF):
            value, i, status = _read_value(text, begin, end, narrow, tables)
            if status == decimal.MALFORMED:
                return BAD_VALUE, begin, k
            if status == decimal.TOO_LARGE:
                return VALUE_TOO_LARGE, begin, k
            if status == decimal.UNSETTLED:
                _defer(room, k, begin)
        values[k] = value
        indices[k] = index - rules.base
        k += 1
    if k > first_k:
        report[4] = min(report[4], np.int64(indices[first_k]) + rules.base)
        report[5] = max(report[5], previous)
    return PARSED, i, k


@kernel
def _parse_label(
    text: NDArray[np.uint8], i: int, end: int, row: int, tables: DecimalTables, room: Room
) -> tuple[int, int]:
    """Store the label at i and skip a qid; return a code and the position behind them."""
    if row >= room.labels.size:
        return NO_ROOM, i
    value, behind = decimal.read_short_number(text, i, tables)
    if behind < 0 or byte_at(text, behind) != _SPACE:
        value, behind, status = _read_value(text, i, end, False, tables)
        if status == decimal.MALFORMED:
            return BAD_LABEL, i
        if status == decimal.TOO_LARGE:
            return LABEL_TOO_LARGE, i
        # Labels that rounding may have merged are looked at again; zero itself is short.
        if status == decimal.UNSETTLED or behind - i > (5 if abs(value) < _SMALL else _SURE_DIGITS):
            _defer(room, -1 - row, i)
    room.labels[row] = value
    i = _behind_blanks(text, behind)
    behind = _behind_query(text, i, end)
    room.report[6] += behind > i
    return PARSED, behind


@kernel
def parse_lines(
    text: NDArray[np.uint8], end: int, rules: IndexRules, tables: DecimalTables, first_value: int,
    room: Room,
) -> None:  # fmt: skip
    """Parse ``text[:end]``, whose values are numbered from ``first_value`` on.

    ``PADDING`` bytes follow the end. Either the last byte before it or the first of these is a line
    feed.
    """
    report = room.report
    report[:] = 0
    report[4], report[5] = LARGEST_INDEX, -1
    i, k, row, code = 0, 0, 0, BAD_BUFFER
    if (
        end > 0
        and end + decimal.PADDING <= text.size
        and (text[end - 1] == _LF or text[end] == _LF)
    ):
        code = PARSED
    while code == PARSED and i < end:
        i = _behind_blanks(text, i)
        wrong = BAD_LABEL
        if not (byte_at(text, i) == _HASH or _ends_line(text, i, end)):
            wrong = BAD_ITEM
            code, i = _parse_label(text, i, end, row, tables, room)
            if code == PARSED:
                code, i, k = _parse_items(text, i, end, k, rules, tables, room)
            if code != PARSED:
                break
            room.row_ends[row] = first_value + k
            row += 1
        if byte_at(text, i) == _HASH:
            i, sound = _behind_comment(text, i, end)
            wrong = PARSED if sound else BAD_COMMENT
        if not _ends_line(text, i, end):
            code = wrong
            break
        i += 1 + (byte_at(text, i) == _CR)
    report[0], report[1], report[2], report[3] = code, i, row, k
