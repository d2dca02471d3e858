"""Whether a CSR matrix is safe to read: kernels against their Python text, and against NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from certsvm.kernels.checks import (
    COLUMN_OUT_OF_RANGE,
    DUPLICATE_COLUMN,
    SOUND,
    inspect_indices,
    inspect_indptr,
    survey_indices,
)

structures = st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=6)
index_types = st.sampled_from([np.int32, np.int64])


def csr(rows: list[list[int]], dtype: type) -> tuple[NDArray[np.int64], NDArray[np.signedinteger]]:
    indptr = np.cumsum([0] + [len(row) for row in rows])
    return indptr.astype(np.int64), np.array([j for row in rows for j in row], dtype=dtype)


@pytest.mark.parametrize("function", [inspect_indptr, inspect_indptr.py_func])
def test_indptr(function: object) -> None:
    for indptr, first_bad in (
        ([0], -1),
        ([0, 0, 2, 5], -1),
        ([1, 3, 5], -1),
        ([-1, 3], 0),
        ([0, 3, 2, 5], 1),
        ([0, 3, 6], 1),
    ):
        assert function(np.array(indptr), 5) == first_bad  # type: ignore[operator]


@given(structures, st.integers(1, 6), index_types, st.booleans())
def test_the_first_defect_is_found(
    rows: list[list[int]], columns: int, dtype: type, remembers: bool
) -> None:
    indptr, indices = csr(rows, dtype)
    results = []
    for function in (inspect_indices, inspect_indices.py_func):
        memory = np.full(columns if remembers else 0, -1, dtype=np.int64)
        results.append(tuple(int(x) for x in function(indptr, indices, columns, memory)))
    assert results[0] == results[1]
    code, row, position = results[0]
    for k, row_indices in enumerate(rows):
        wide = [j for j, column in enumerate(row_indices) if column >= columns]
        ascends = all(a < b for a, b in itertools.pairwise(row_indices))
        if wide:
            assert (code, row, position) == (COLUMN_OUT_OF_RANGE, k, indptr[k] + wide[0])
            return
        if not ascends and (not remembers or len(set(row_indices)) < len(row_indices)):
            assert (code, row) == (DUPLICATE_COLUMN, k)
            if remembers:
                inside = position - indptr[k]
                assert row_indices[inside] in row_indices[:inside]
            return
    assert (code, row, position) == (SOUND, -1, -1)


def test_a_negative_column_is_out_of_range() -> None:
    indptr, indices = csr([[0], [1, -1]], np.int32)
    memory = np.full(3, -1, dtype=np.int64)
    assert inspect_indices(indptr, indices, 3, memory) == (COLUMN_OUT_OF_RANGE, 1, 2)


@given(structures, st.sampled_from([np.uint32, np.uint64]), st.integers(0, 3))
def test_survey(rows: list[list[int]], dtype: type, offset: int) -> None:
    """Also of a matrix whose rows begin somewhere inside larger arrays."""
    indptr, indices = csr(rows, dtype)
    ascends = all(a < b for row in rows for a, b in itertools.pairwise(row))
    for function in (survey_indices, survey_indices.py_func):
        largest, ascending = function(indptr + offset, indices)
        assert largest == max((j for row in rows for j in row), default=0)
        assert bool(ascending) == ascends
