"""Arrays that are filled in parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.libsvm.arrays import Arrays, sums
from certsvm.kernels.libsvm import Report

# For each part: the values of each row, and the unused rows and values after it.
parts = st.lists(
    st.tuples(st.lists(st.integers(0, 3), max_size=4), st.integers(0, 9), st.integers(0, 9)),
    max_size=5,
)


@given(parts)
def test_gaps_are_closed(parts: list[tuple[list[int], int, int]]) -> None:
    rows = sums(len(lengths) + spare for lengths, spare, _ in parts)
    values = sums(sum(lengths) + spare for lengths, _, spare in parts)
    arrays = Arrays.empty(rows[-1], values[-1], np.float64, np.int32)
    reports, label = [], 0
    for (lengths, _, _), row, value in zip(parts, rows, values, strict=False):
        for k, end in enumerate(sums(lengths)[1:]):
            arrays.labels[row + k] = label
            arrays.indptr[row + k + 1] = value + end
            first = value + end - lengths[k]
            arrays.values[first : first + lengths[k]] = label
            arrays.indices[first : first + lengths[k]] = range(lengths[k])
            label += 1
        reports.append(Report(0, 0, len(lengths), sum(lengths), 0, 0, 0, 0, -1))
    arrays.close_gaps(list(zip(rows[:-1], values[:-1], strict=True)), reports)
    X = arrays.matrix(3)
    X.check_format(full_check=True)
    lengths = [n for part, _, _ in parts for n in part]
    assert X.shape == (len(lengths), 3)
    assert arrays.labels.tolist() == list(range(len(lengths)))
    assert np.diff(X.indptr).tolist() == lengths
    assert X.data.tolist() == [k for k, n in enumerate(lengths) for _ in range(n)]


@pytest.mark.parametrize(("n_columns", "dtype"), [(2**31 - 1, np.int32), (2**31, np.int64)])
def test_indices_have_32_bits_if_that_is_enough(n_columns: int, dtype: type) -> None:
    arrays = Arrays(np.ones(1), np.zeros(1, np.int64), np.array([0, 1]), np.ones(1))
    X = arrays.matrix(n_columns)
    assert (X.indices.dtype, X.indptr.dtype) == (dtype, dtype)
