"""Arrays of a CSR matrix and its labels, which several threads fill."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.files.batch import csr
from certsvm.kernels.libsvm import Report


@dataclass
class Arrays:
    """Labels and rows as in a CSR matrix; there may be gaps between the parts of the pieces."""

    values: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    labels: NDArray[np.float64]

    @classmethod
    def empty(cls, rows: int, values: int, dtype: Any, index_dtype: Any) -> Arrays:
        """Uninitialised arrays of these sizes."""
        indptr = np.empty(rows + 1, dtype=np.int64)
        indptr[0] = 0
        return cls(np.empty(values, dtype), np.empty(values, index_dtype), indptr, np.empty(rows))

    def close_gaps(self, firsts: list[tuple[int, int]], reports: list[Report]) -> None:
        """Move the parts together; ``firsts`` holds the first row and value of each."""
        row, value = 0, 0
        for (old_row, old_value), report in zip(firsts, reports, strict=True):
            if (row, value) != (old_row, old_value):
                ends = self.indptr[1:]
                _move(self.labels, old_row, row, report.rows)
                _move(ends, old_row, row, report.rows)
                ends[row : row + report.rows] -= old_value - value
                _move(self.values, old_value, value, report.values)
                _move(self.indices, old_value, value, report.values)
            row += report.rows
            value += report.values
        self.values, self.indices = _shorten(self.values, value), _shorten(self.indices, value)
        self.labels, self.indptr = _shorten(self.labels, row), _shorten(self.indptr, row + 1)

    def matrix(self, n_columns: int) -> Any:
        """The rows as a CSR matrix; its indices have 32 bits if that is enough."""
        narrow = max(self.values.size, n_columns) <= np.iinfo(np.int32).max
        dtype = np.int32 if narrow else np.int64
        indices, indptr = (a.astype(dtype, copy=False) for a in (self.indices, self.indptr))
        X = csr(self.values, indices, indptr, (self.labels.size, n_columns))
        # The parser has checked it; SciPy would check again.
        X.has_sorted_indices = X.has_canonical_format = True
        return X


def sums(counts: Iterable[int], first: int = 0) -> list[int]:
    """``first`` plus the sum of the first 0, 1, 2, ... counts."""
    return list(itertools.accumulate(counts, initial=first))


def _move(array: NDArray[Any], old: int, new: int, size: int) -> None:
    if new != old:
        array[new : new + size] = array[old : old + size]


def _shorten(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The first entries; copied if a view would keep much unused memory alive."""
    return array[:size].copy() if size < array.size - array.size // 8 else array[:size]
