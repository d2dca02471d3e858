"""From text to arrays, in threads, and errors with their place in the text.

Text is cut at line ends into pieces, whose line feeds and colons, counted beforehand, bound the
numbers of rows and values: each thread parses into its part of the arrays. The kernel settles
nearly everything. The numbers it defers and the errors it reports are dealt with here.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.files.batch import WOULD_BE_MERGED, csr, label_number
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import PADDING, decimal_tables, narrows_twice
from certsvm.kernels.libsvm import LARGEST_INDEX, IndexRules, Report
from certsvm.resources import Team, available_processors

_PIECE_BYTES = 1 << 19
LONGEST_LINE = 1 << 28
"""The most bytes of a line: enough for ten million values. A compressed file of some kilobytes may
hold a line without an end."""

_LONGEST_SHOWN = 40
_TOKEN = re.compile(rb"[^ \t\n#]*")

Read = Callable[[int, int], NDArray[np.uint8]]
"""Returns a range of the text, followed by ``PADDING`` bytes."""


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


def changed(file: str) -> LibsvmError:
    """The error for a file that was written to while it was read."""
    return LibsvmError("the file was changed while it was read; read it again", file)


def long_line(file: str, line: int, limit: int) -> LibsvmError:
    """The error for a line of more than ``limit`` bytes."""
    what = f"this line is longer than {limit / 1e6:.1f} MB, the most that is read here"
    return LibsvmError(f"{what}: give more memory, unless the file is damaged", file, line, 1)


@dataclass
class ParseOptions:
    """How to read one file; checked before anything is read."""

    file: str
    n_features: int | None
    zero_based: bool | None
    dtype: Any
    n_jobs: int
    block_bytes: int

    def __post_init__(self) -> None:
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype!r}")
        for name, least in (("n_features", 0), ("n_jobs", 0), ("block_bytes", 1)):
            value = getattr(self, name)
            if value is not None and not least <= value <= LARGEST_INDEX:
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
        self.dtype = np.dtype(self.dtype)
        self.n_jobs = self.n_jobs or available_processors()

    def rules(self, base: int) -> IndexRules:
        """Which indices are allowed, as far as is known before the file is read."""
        n = self.n_features
        # Whether the index n is out of range may be known only at the end of the file.
        high = LARGEST_INDEX if n is None else int(n) - bool(self.zero_based)
        return IndexRules(base, low=int(self.zero_based is False), high=high)


class Arrays(NamedTuple):
    """Values, indices and row ends as in a CSR matrix, and the labels."""

    values: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    labels: NDArray[np.float64]

    def matrix(self, n_columns: int) -> Any:
        """The rows as a CSR matrix; its indices have 32 bits if that is enough."""
        narrow = max(self.values.size, n_columns) <= np.iinfo(np.int32).max
        dtype = np.int32 if narrow else np.int64
        indices, indptr = (a.astype(dtype, copy=False) for a in (self.indices, self.indptr))
        X = csr(self.values, indices, indptr, (self.labels.size, n_columns))
        # The parser has checked it; SciPy would check again.
        X.has_sorted_indices = X.has_canonical_format = True
        return X


class _WideIndexError(Exception):
    """An index does not fit 32 bits."""


@dataclass
class Parser:
    """Parses one text, as a whole or in parts, and counts what it has seen.

    Attributes
    ----------
    options : ParseOptions
        How to read it.
    base : int
        Subtracted from all indices.
    team : Team
        The threads.
    lines : int
        Number of line feeds so far.
    reports : list of Report
        What the kernel says of each piece.
    """

    options: ParseOptions
    base: int
    team: Team
    lines: int = 0
    reports: list[Report] = field(default_factory=list)

    def parse(self, read: Read, first: int, end: int) -> Arrays:
        """The rows of the next part of the file, from ``first`` to ``end``: whole lines.

        Line ends are looked for in each step of the text; a piece reaches from the first of a step
        to the first of the next that has one.
        """

        def survey(begin: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
            text = read(begin, min(begin + _PIECE_BYTES, end))[:-PADDING]
            line_end = int(kernels.first_line_end(text))
            head, tail = text[: line_end or None], text[line_end or text.size :]
            return line_end, kernels.survey(head), kernels.survey(tail)

        begins = range(first, end, _PIECE_BYTES)
        cuts, lines, colons, endless = [first], [0], [0], 0
        for begin, (line_end, head, tail) in zip(
            begins, self.team.map(survey, begins), strict=True
        ):
            endless = 0 if line_end else endless + _PIECE_BYTES
            if endless > LONGEST_LINE:
                raise long_line(self.options.file, self.lines + sum(lines) + 1, LONGEST_LINE)
            lines[-1] += head[0]
            colons[-1] += head[1]
            if line_end and begin + line_end < end:
                cuts.append(begin + line_end)
                lines.append(tail[0])
                colons.append(tail[1])
        # The last line may end without a line feed.
        return self._parse(read, [*cuts, end], [*lines[:-1], lines[-1] + 1], colons)

    def _parse(self, read: Read, cuts: list[int], lines: list[int], colons: list[int]) -> Arrays:
        """Parse the text between the cuts, of at most so many lines and colons."""
        rows, values = (list(itertools.accumulate(n, initial=0)) for n in (lines, colons))
        pieces = list(itertools.pairwise(zip(cuts, rows, values, strict=True)))
        for index_dtype in (np.int32, np.int64):
            arrays = Arrays(
                np.empty(values[-1], self.options.dtype), np.empty(values[-1], index_dtype),
                np.zeros(rows[-1] + 1, np.int64), np.empty(rows[-1]),
            )  # fmt: skip
            try:
                reports = self.team.map(partial(self._parse_piece, read, arrays), pieces)
                break
            except _WideIndexError:
                continue
        self.reports += reports
        self.lines += rows[-1] - 1
        return _without_gaps(arrays, rows, values, reports)

    def _parse_piece(
        self, read: Read, arrays: Arrays, piece: tuple[tuple[int, int, int], tuple[int, int, int]]
    ) -> Report:
        """Parse from one position, row and value to another."""
        (begin, row, value), (behind, row_end, value_end) = piece
        text, end, dtype = read(begin, behind), behind - begin, self.options.dtype
        values, indices = arrays.values[value:value_end], arrays.indices[value:value_end]
        labels, row_ends = arrays.labels[row:row_end], arrays.indptr[row + 1 : row_end + 1]
        rules, numbers = self.options.rules(self.base), np.empty(len(Report._fields), np.int64)
        # There is room for all numbers; the system provides the pages of those that are written.
        deferred = np.empty((values.size + labels.size, 2), dtype=np.int64)
        results = kernels.Room(values, indices, labels, row_ends, deferred, numbers)
        kernels.parse_lines(text, end, rules, decimal_tables(), value, results)
        report = Report(*numbers.tolist())
        error = partial(self._error, text, end, self.lines + row)
        for slot, position in deferred[: report.deferred].tolist():
            number = token_at(text, position, end)
            if slot < 0:
                try:
                    labels[-1 - slot] = settled = label_number(number.decode())
                except ValueError:
                    raise error(kernels.INEXACT_LABEL, position) from None
            else:
                values[slot] = settled = nearest(number, dtype)
            if math.isinf(settled):
                too_large = kernels.LABEL_TOO_LARGE if slot < 0 else kernels.VALUE_TOO_LARGE
                raise error(too_large, position)
        if report.code == kernels.WIDE_INDEX:
            raise _WideIndexError
        if report.code in (kernels.NO_ROOM, kernels.BAD_BUFFER):
            raise changed(self.options.file)
        if report.code != kernels.PARSED:
            raise error(report.code, report.position)
        return report

    def _error(
        self, text: NDArray[np.uint8], end: int, lines: int, code: int, position: int
    ) -> LibsvmError:
        """The error that a kernel reported as ``code``, in a text that ``lines`` come before."""
        before = bytes(text[:position])
        line, line_start = lines + 1 + before.count(b"\n"), before.rfind(b"\n") + 1
        # The first 200 bytes of a long token are enough for the message.
        longest = 1 if code == kernels.BAD_COMMENT else 200
        token = token_at(text, position, min(end, position + longest))
        what = _problem(code, token, before[line_start:], self.options)
        return LibsvmError(
            what, self.options.file, line, position - line_start + 1, _printable(token)
        )

    def finish(self) -> tuple[bool, int, list[str]]:
        """Whether the text was zero-based, its number of columns, and remarks for the user.

        Raises if it has no rows, or an index that is out of range.
        """
        if not any(report.rows for report in self.reports):
            raise LibsvmError("there are no rows in this file", self.options.file)
        zero_based, n_columns, notes = self.options.zero_based, self.options.n_features, []
        largest = max(report.largest for report in self.reports)
        if zero_based is None:
            zero_based = min(report.smallest for report in self.reports) == 0
            if zero_based:
                notes.append("indices count from zero")
                if largest == n_columns:
                    what = f"index {largest} is out of range: n_features={n_columns}, counted from"
                    raise LibsvmError(f"{what} zero", self.options.file)
        if queries := sum(report.queries for report in self.reports):
            notes.append(f"qid ignored on {queries} line{'s' * (queries > 1)}")
        if n_columns is None:
            n_columns = max(largest + zero_based, 0)
        return bool(zero_based), int(n_columns), notes


def _without_gaps(
    arrays: Arrays, rows: list[int], values: list[int], reports: list[Report]
) -> Arrays:
    """Move the parts together, which begin at these rows and values."""
    row = value = 0
    ends = arrays.indptr[1:]
    for old_row, old_value, report in zip(rows, values, reports, strict=False):
        if (row, value) != (old_row, old_value):
            for array in (arrays.labels, ends):
                array[row : row + report.rows] = array[old_row : old_row + report.rows]
            for array in (arrays.values, arrays.indices):
                array[value : value + report.values] = array[old_value : old_value + report.values]
            ends[row : row + report.rows] -= old_value - value
        row += report.rows
        value += report.values
    return Arrays(
        arrays.values[:value], arrays.indices[:value], arrays.indptr[: row + 1],
        arrays.labels[:row],
    )  # fmt: skip


def nearest(number: bytes, dtype: np.dtype[Any]) -> float:
    """The float of this type nearest to a decimal number."""
    double = float(number)
    if dtype == np.float64:
        return double
    if narrows_twice(double):
        # The digits that were lost in rounding to a double decide.
        exact = Decimal(number.decode())
        if exact != double:
            double = math.nextafter(double, math.inf if exact > double else -math.inf)
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(double))


def token_at(text: NDArray[np.uint8], position: int, end: int) -> bytes:
    """The bytes from ``position`` to the next blank, comment or line end."""
    match = _TOKEN.match(text.data, position, end)
    assert match is not None
    token, behind = match[0], match.end()
    # A carriage return belongs to the line end only together with the line feed.
    ends_line = behind < end and text[behind] == ord("\n")
    return token[:-1] if ends_line and token.endswith(b"\r") else token


def _problem(code: int, token: bytes, before: bytes, options: ParseOptions) -> str:
    quoted = f'"{_printable(token)}"'
    if b"\0" in token:
        return f"found a NUL byte in {quoted}; is this a text file? UTF-16 has to be converted"
    if b"\r" in token:
        return f"found a carriage return that does not end a line in {quoted}"
    index = _index_of(token)
    if code == kernels.NOT_ASCENDING:
        previous = _index_of(before.split()[-1])
        return f"indices must ascend within a line, but {index} follows {previous}"
    if code == kernels.BAD_INDEX:
        if len(index) > 19 or int(index) > LARGEST_INDEX:
            return f"the index {index} is beyond the largest allowed, 2**63 - 2"
        limit = "" if options.n_features is None else f"n_features={options.n_features}, "
        start = "zero" if options.zero_based else "one"
        return f"index {index} is out of range: {limit}counted from {start}"
    return {
        kernels.BAD_LABEL: f"expected a decimal number as label, found {quoted}",
        kernels.BAD_ITEM: f"expected index:value, found {quoted}",
        kernels.LABEL_TOO_LARGE: f"the label {quoted} is too large for float64",
        kernels.INEXACT_LABEL: f"the label {quoted} {WOULD_BE_MERGED}",
        kernels.VALUE_TOO_LARGE: f"the value {quoted} is too large for {options.dtype.name}",
        kernels.BAD_VALUE: f"expected a number after the colon, found {quoted}",
    }[code]


def _index_of(item: bytes) -> str:
    """The index of ``index:value``, without leading zeros."""
    return _printable(item.partition(b":")[0].lstrip(b"0") or b"0")


def _printable(text: bytes) -> str:
    """Text for a message: printable, and not too long."""
    return repr(text[:_LONGEST_SHOWN])[2:-1] + "..." * (len(text) > _LONGEST_SHOWN)
