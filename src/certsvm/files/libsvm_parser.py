"""From text to arrays, and errors with their place in the text.

The kernel settles nearly everything. The numbers that it leaves are settled here, and what it finds
wrong is put into words.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.files.batch import label_number
from certsvm.kernels.decimal import PADDING
from certsvm.kernels.libsvm import LARGEST_INDEX, POSITION_BITS, Room, Rules, parse_lines

_LONGEST_SHOWN = 40
_TOKEN = re.compile(rb"[^ \t\n#]*")


class LibsvmError(ValueError):
    """A text that is not in the format, and where.

    Attributes
    ----------
    file : str
        Name of the file.
    line, column : int or None
        Both count from 1; columns are bytes. None if the error concerns the whole file.
    text : str
        The offending text, shortened if it is long.
    """

    def __init__(
        self, what: str, file: str, line: int | None = None, column: int | None = None,
        text: str = "",
    ) -> None:  # fmt: skip
        where = file if line is None else f"{file}, line {line}, column {column}"
        super().__init__(f"{where}: {what}")
        self.what, self.file, self.line, self.column, self.text = what, file, line, column, text

    def __reduce__(self) -> tuple[Any, ...]:
        return LibsvmError, (self.what, self.file, self.line, self.column, self.text)


class Piece(NamedTuple):
    """Parsed rows: their values and indices, the number of values of each, and the labels."""

    values: NDArray[Any]
    indices: NDArray[Any]
    counts: NDArray[np.int64]
    labels: NDArray[np.float64]
    n_bytes: int
    lines: int
    queries: int
    """Number of lines with a qid."""


@dataclass
class Parser:
    """How to parse one file; checked before anything is read."""

    file: str
    n_features: int | None
    zero_based: bool | None
    dtype: np.dtype[Any]

    def parse(self, text: bytearray | ValueError) -> Piece:
        """The rows of whole lines, with padding behind them; of an error, the error is raised.

        Lines of errors count from the beginning of the text.
        """
        if isinstance(text, ValueError):
            raise text
        end = len(text) - PADDING
        # A pair takes four bytes or more with the blank before it, a line two.
        n_values, n_rows = end // 4 + 1, end // 2 + 1
        room = Room(
            np.empty(n_values), np.empty(n_values, np.int64), np.empty(n_rows, np.int64),
            np.empty(n_rows),
        )  # fmt: skip
        report = parse_lines(np.frombuffer(text, dtype=np.uint8), end, self._rules(), room)
        values, labels = room.values[: report.values], room.labels[: report.rows]
        unsettled: list[Any] = []
        for array in (values, labels):
            slots = np.flatnonzero(np.isnan(array))
            positions = (array.view(np.int64)[slots] & POSITION_BITS).tolist()
            unsettled += zip(positions, [array] * slots.size, slots, strict=True)
        for position, array, k in sorted(unsettled, key=lambda place: place[0]):
            try:
                array[k] = self._settled(_token_at(text, position), is_label=array is labels)
            except ValueError as error:
                raise self._error(text, position, str(error)) from None
        if report.wrong >= 0:
            raise self._error(text, report.wrong)
        indices = room.indices[: report.values]
        narrow = indices.max(initial=0) <= np.iinfo(np.int32).max
        return Piece(
            values.astype(self.dtype), indices.astype(np.int32 if narrow else np.int64),
            room.counts[: report.rows].copy(), labels.copy(), end, report.lines, report.queries,
        )  # fmt: skip

    def _rules(self) -> Rules:
        n = self.n_features
        # Whether the index n is out of range may be known only at the end of the file.
        high = LARGEST_INDEX if n is None else n - (self.zero_based is True)
        return Rules(int(self.zero_based is False), high, self.dtype == np.float32)

    def _settled(self, number: bytes, *, is_label: bool) -> float:
        """A double that NumPy rounds to the float of its type that is nearest to the number."""
        text, dtype = number.decode(), np.dtype(np.float64) if is_label else self.dtype
        double = label_number(text) if is_label else float(text)
        if dtype == np.float32 and 0.0 < abs(double) < math.inf:
            # Rounded to odd, no double but a middle itself lies halfway between two float32.
            exact, is_odd = Decimal(text), np.float64(double).view(np.int64) & 1
            if exact != double and not is_odd:
                double = math.nextafter(double, math.inf if exact > double else -math.inf)
        with np.errstate(over="ignore", under="ignore"):
            if np.isinf(dtype.type(double)):
                what = "label" if is_label else "value"
                raise ValueError(f'the {what} "{_printable(number)}" is too large for {dtype.name}')
        return double

    def _error(self, text: bytearray, position: int, what: str = "") -> LibsvmError:
        """The error at a position, which the kernel found if nothing else says what is wrong."""
        line_start = text.rfind(b"\n", 0, position) + 1
        token, before = _token_at(text, position), bytes(text[line_start:position])
        line, what = text.count(b"\n", 0, position) + 1, what or self._problem(token, before)
        return LibsvmError(what, self.file, line, len(before) + 1, _printable(token))

    def _problem(self, token: bytes, before: bytes) -> str:
        quoted = f'"{_printable(token)}"'
        if b"\0" in token:
            return f"found a NUL byte in {quoted}; is this a text file? UTF-16 has to be converted"
        if b"\r" in token:
            return f"found a carriage return that does not end a line in {quoted}"
        if not before.strip():
            return f"expected a decimal number as label, found {quoted}"
        if before.endswith(b":"):
            return f"expected a number after the colon, found {quoted}"
        item = re.match(rb"0*(\d*):", token) if token[:1].isdigit() else None
        if item is None:
            return f"expected index:value, found {quoted}"
        index = _printable(item[1] or b"0")
        if len(item[1]) > 19 or int(index) > LARGEST_INDEX:
            return f"the index {index} is beyond the largest allowed, 2**63 - 2"
        low, high, _ = self._rules()
        if low <= int(index) <= high:
            previous = int(before.split()[-1].partition(b":")[0])
            return f"indices must ascend within a line, but {index} follows {previous}"
        limit = "" if self.n_features is None else f"n_features={self.n_features}, "
        start = "zero" if self.zero_based else "one"
        return f"index {index} is out of range: {limit}counted from {start}"


def _token_at(text: bytearray, position: int) -> bytes:
    """The bytes from ``position`` to the next blank, comment or line end."""
    match = _TOKEN.match(text, position)
    assert match is not None
    # A carriage return belongs to the line end only together with the line feed.
    ends_line = match.end() < len(text) - PADDING and text[match.end()] == ord("\n")
    return match[0].removesuffix(b"\r") if ends_line else match[0]


def _printable(text: bytes) -> str:
    """Text for a message: printable, and not too long."""
    return repr(text[:_LONGEST_SHOWN])[2:-1] + "..." * (len(text) > _LONGEST_SHOWN)
