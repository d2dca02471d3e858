"""A prefetch is asked for, at any row, and changes nothing."""

import numpy as np
from hypothesis import given

from certsvm.kernels.jit import kernel
from certsvm.kernels.prefetch import prefetch_row
from certsvm.kernels.rows import RowArrays
from tests.problems import Case, cases


@kernel
def all_rows(rows: RowArrays, n: int) -> int:
    for k in range(n):
        prefetch_row(rows, k)
    return n


@given(cases())
def test_rows_stay_as_they_are(case: Case) -> None:
    rows = case.problem().rows
    before = [np.copy(array) for array in rows.arrays]
    for function in (all_rows, all_rows.py_func):
        assert function(rows.arrays, rows.n_rows) == rows.n_rows
    for array, copy in zip(rows.arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
