"""From pieces of text to arrays.

The kernel settles nearly everything; what it defers, and its complaints, are dealt with here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.data.libsvm.arrays import Arrays, sums
from certsvm.data.libsvm.diagnosis import Complaint, token_at
from certsvm.data.libsvm.errors import LibsvmError, changed
from certsvm.data.libsvm.nearest import nearest
from certsvm.data.libsvm.pieces import Piece
from certsvm.data.libsvm.settings import Settings
from certsvm.data.libsvm.totals import Totals
from certsvm.data.libsvm.workers import Workers
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import decimal_tables
from certsvm.kernels.libsvm import Report

_LEAST_DEFERRED = 256


class _WideIndexError(Exception):
    """An index does not fit 32 bits."""


class Parser:
    """Parses pieces of one file, in threads."""

    def __init__(self, settings: Settings, base: int, workers: Workers) -> None:
        self._settings = settings
        self._rules = settings.rules(base)
        self._workers = workers
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
            arrays = Arrays.empty(rows[-1], values[-1], self._settings.dtype, index_dtype)

            def parse_piece(
                piece: Piece, first: tuple[int, int], lines: int, arrays: Arrays = arrays
            ) -> tuple[Report, LibsvmError | None]:
                return self._parse_piece(piece, first, lines, arrays)

            try:
                results = self._workers.map(parse_piece, pieces, firsts, lines[:-1])
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
        wrong = Complaint(text, end, lines, self._settings, self._rules)
        for slot, position in deferred.tolist():
            number = token_at(text, position, end)
            if slot < 0:
                labels[-1 - slot] = settled = float(number)
                code = kernels.LABEL_TOO_LARGE
            else:
                values[slot] = settled = nearest(number, self._settings.dtype)
                code = kernels.VALUE_TOO_LARGE
            if np.isinf(settled):
                raise wrong.error(code, position)
        if report.code == kernels.WIDE_INDEX:
            raise _WideIndexError
        if report.code in (kernels.NO_ROOM, kernels.BAD_BUFFER):
            raise changed(self._settings.file)
        if report.code != kernels.PARSED:
            raise wrong.error(report.code, report.position)
        suspect = wrong.error(kernels.BAD_INDEX, report.notable) if report.notable >= 0 else None
        return report, suspect

    def _run_kernel(
        self, text: NDArray[np.uint8], end: int, values: NDArray[Any], indices: NDArray[Any],
        labels: NDArray[np.float64], row_ends: NDArray[np.int64], first_value: int,
    ) -> tuple[Report, NDArray[np.int64]]:  # fmt: skip
        room = _LEAST_DEFERRED
        while True:
            deferred = np.empty((room, 2), dtype=np.int64)
            numbers = np.empty(len(Report._fields), dtype=np.int64)
            kernels.parse_lines(
                text, end, self._rules, decimal_tables(), values, indices, labels, row_ends,
                first_value, deferred, numbers,
            )  # fmt: skip
            report = Report(*numbers.tolist())
            if report.deferred <= room:
                return report, deferred[: report.deferred]
            room = report.deferred
