"""Checks of CSR matrices: compiled kernels against their Python source and against NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from certsvm.kernels.checks import inspect_indptr, repeats_column, survey_indices

structures = st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=6)
index_types = st.sampled_from([np.uint32, np.uint64])


def csr(
    rows: list[list[int]], dtype: type
) -> tuple[NDArray[np.int64], NDArray[np.unsignedinteger]]:
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


@given(structures, index_types)
def test_repeated_columns(rows: list[list[int]], dtype: type) -> None:
    indptr, indices = csr(rows, dtype)
    for function in (repeats_column, repeats_column.py_func):
        last_row_with = np.full(6, -1, dtype=np.int64)
        repeats = bool(function(indptr, indices, last_row_with))
        assert repeats == any(len(set(row)) < len(row) for row in rows)


@given(structures, index_types, st.integers(0, 3))
def test_survey(rows: list[list[int]], dtype: type, offset: int) -> None:
    """Also of a matrix whose rows begin inside larger arrays."""
    indptr, indices = csr(rows, dtype)
    ascends = all(a < b for row in rows for a, b in itertools.pairwise(row))
    for function in (survey_indices, survey_indices.py_func):
        largest, ascending = function(indptr + offset, indices)
        assert largest == max((j for row in rows for j in row), default=0)
        assert bool(ascending) == ascends
