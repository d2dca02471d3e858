"""From pieces of text to arrays.

The kernel settles nearly everything. The numbers it defers and the errors it reports are dealt with
here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.data.labels import label_number
from certsvm.data.libsvm.arrays import Arrays, sums
from certsvm.data.libsvm.errors import Diagnosis, LibsvmError, changed, token_at
from certsvm.data.libsvm.nearest import nearest
from certsvm.data.libsvm.options import ParseOptions
from certsvm.data.libsvm.pieces import Piece
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import decimal_tables
from certsvm.kernels.libsvm import LARGEST_INDEX, Report
from certsvm.parallel import Team

_LEAST_DEFERRED = 256


@dataclass
class Totals:
    """Counts and extremes of the text parsed so far.

    Attributes
    ----------
    rows, values, lines, queries : int
        Counts; queries are lines with a qid.
    smallest, largest : int
        Index, as in the file; ``LARGEST_INDEX`` and -1 before there is one.
    suspect : LibsvmError or None
        The first index that is out of range if the file is zero-based.
    notes : list of str
        Remarks for the user, known at the end.
    """

    rows: int = 0
    values: int = 0
    lines: int = 0
    queries: int = 0
    smallest: int = LARGEST_INDEX
    largest: int = -1
    suspect: LibsvmError | None = None
    notes: list[str] = field(default_factory=list)

    def add(self, report: Report, suspect: LibsvmError | None) -> None:
        """Add the report of a piece."""
        self.rows += report.rows
        self.values += report.values
        self.queries += report.queries
        self.smallest = min(self.smallest, report.smallest)
        self.largest = max(self.largest, report.largest)
        self.suspect = self.suspect or suspect

    def finish(self, options: ParseOptions) -> bool:
        """Whether the file is zero-based; raises if it is empty or an index is out of range."""
        if self.rows == 0:
            raise LibsvmError("there are no rows in this file", options.file)
        zero_based = options.zero_based
        if zero_based is None:
            zero_based = self.smallest == 0
            if zero_based:
                self.notes.append("indices count from zero")
                if self.suspect is not None:
                    raise self.suspect
        if self.queries:
            lines = "1 line" if self.queries == 1 else f"{self.queries} lines"
            self.notes.append(f"qid ignored on {lines}")
        return zero_based


class _WideIndexError(Exception):
    """An index does not fit 32 bits."""


class Parser:
    """Parses the pieces of one file, in threads."""

    def __init__(self, options: ParseOptions, base: int, team: Team) -> None:
        self._options = options
        self._rules = options.rules(base)
        self._team = team
        self.totals = Totals()

    def parse(self, pieces: list[Piece]) -> Arrays:
        """The rows of the next pieces of the file."""
        if pieces:
            # The last line may end without a line feed.
            pieces[-1].unterminated = True
        rows = sums(piece.most_rows for piece in pieces)
        values = sums(piece.colons for piece in pieces)
        lines = sums((piece.lines for piece in pieces), self.totals.lines)
        firsts = list(zip(rows[:-1], values[:-1], strict=True))
        for index_dtype in (np.int32, np.int64):
            arrays = Arrays.empty(rows[-1], values[-1], self._options.dtype, index_dtype)
            try:
                results = self._team.map(
                    self._parse_piece, pieces, firsts, lines[:-1], [arrays] * len(pieces)
                )
                break
            except _WideIndexError:
                continue
        for report, suspect in results:
            self.totals.add(report, suspect)
        self.totals.lines = lines[-1]
        arrays.close_gaps(firsts, [report for report, _ in results])
        return arrays

    def _parse_piece(
        self, piece: Piece, first: tuple[int, int], lines: int, arrays: Arrays
    ) -> tuple[Report, LibsvmError | None]:
        text, end = piece.fetch()
        row, value = first
        values = arrays.values[value : value + piece.colons]
        indices = arrays.indices[value : value + piece.colons]
        labels = arrays.labels[row : row + piece.most_rows]
        row_ends = arrays.indptr[row + 1 : row + piece.most_rows + 1]
        report, deferred = self._run_kernel(text, end, values, indices, labels, row_ends, value)
        diagnosis = Diagnosis(text, end, lines, self._options, self._rules)
        for slot, position in deferred.tolist():
            number = token_at(text, position, end)
            if slot < 0:
                try:
                    labels[-1 - slot] = settled = label_number(number.decode())
                except ValueError:
                    raise diagnosis.error(kernels.INEXACT_LABEL, position) from None
                code = kernels.LABEL_TOO_LARGE
            else:
                values[slot] = settled = nearest(number, self._options.dtype)
                code = kernels.VALUE_TOO_LARGE
            if np.isinf(settled):
                raise diagnosis.error(code, position)
        if report.code == kernels.WIDE_INDEX:
            raise _WideIndexError
        if report.code in (kernels.NO_ROOM, kernels.BAD_BUFFER):
            raise changed(self._options.file)
        if report.code != kernels.PARSED:
            raise diagnosis.error(report.code, report.position)
        if report.notable < 0:
            return report, None
        return report, diagnosis.error(kernels.BAD_INDEX, report.notable)

    def _run_kernel(
        self, text: NDArray[np.uint8], end: int, values: NDArray[Any], indices: NDArray[Any],
        labels: NDArray[np.float64], row_ends: NDArray[np.int64], first_value: int,
    ) -> tuple[Report, NDArray[np.int64]]:  # fmt: skip
        room = _LEAST_DEFERRED
        while True:
            deferred = np.empty((room, 2), dtype=np.int64)
            numbers = np.empty(len(Report._fields), dtype=np.int64)
            results = kernels.Room(values, indices, labels, row_ends, deferred, numbers)
            kernels.parse_lines(text, end, self._rules, decimal_tables(), first_value, results)
            report = Report(*numbers.tolist())
            if report.deferred <= room:
                return report, deferred[: report.deferred]
            room = report.deferred
