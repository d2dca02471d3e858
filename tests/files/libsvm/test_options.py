"""Options of the readers."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files import (
    LibsvmBlocks,
)
from certsvm.files.libsvm.options import ParseOptions, is_count
from certsvm.parallel import available_processors
from tests.files.libsvm.reading import load


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": np.int32}, "dtype must be float32 or float64"),
        ({"n_features": -1}, "n_features must be"),
        ({"n_features": 2.0}, "n_features must be"),
        ({"n_features": 2**63}, "n_features must be"),
        ({"zero_based": 1}, "zero_based must be"),
        ({"n_jobs": -1}, "n_jobs must be"),
    ],
)
def test_what_cannot_be_asked_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(b"1 1:1\n", **options)
    with pytest.raises(ValueError, match=message):
        LibsvmBlocks(io.BytesIO(b"1 1:1\n"), **options)


@given(st.none() | st.integers(0, 9), st.sampled_from([None, True, False]), st.integers(0, 1))
def test_which_indices_are_allowed(n: int | None, zero_based: bool | None, base: int) -> None:
    options = ParseOptions.checked(io.BytesIO(), np.float64, n, zero_based, 1)
    rules = options.rules(base)
    assert rules.base == base
    for index in range(12):
        # A column of its own for each index, whichever the file counts from.
        from_zero = index < (12 if n is None else n)
        from_one = 1 <= index <= (12 if n is None else n)
        allowed = {True: from_zero, False: from_one, None: from_zero or from_one}[zero_based]
        if index == 0 and n == 0 and zero_based is None:
            # Reported when the file has ended: it is notable.
            allowed = True
        assert (rules.low <= index <= rules.high) == allowed
        assert (index == rules.notable) == (zero_based is None and index == n)


def test_no_number_of_threads_means_all_processors() -> None:
    options = ParseOptions.checked(io.BytesIO(), np.float32, None, None, 0, name="rows")
    assert options.n_jobs == available_processors()
    assert (options.file, options.dtype) == ("rows", np.dtype(np.float32))


def test_counts() -> None:
    assert all(map(is_count, (0, 7, np.int64(3))))
    assert not any(map(is_count, (-1, 1.0, True, "1", None)))
