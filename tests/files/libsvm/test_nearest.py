"""The nearest float32 against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from certsvm.files.libsvm.nearest import nearest
from certsvm.kernels.decimal import (
    narrows_twice,
)
from tests.files.libsvm.reading import nearest_float32

doubles = st.floats(allow_nan=False, allow_infinity=False)


singles = st.floats(0, width=32, allow_infinity=False)


@given(singles, st.integers(-1, 1), st.integers(0, 30))
@example(float(np.finfo(np.float32).max), 0, 0)
@example(float(np.finfo(np.float32).max), -1, 30)
@example(0.0, 1, 30)
@example(0.0, 0, 0)
def test_float32_halfway(single: float, nudge: int, zeros: int) -> None:
    """A hair beside the middle, rounding to a double first would round the wrong way."""
    with np.errstate(over="ignore", under="ignore"):
        above = float(np.nextafter(np.float32(single), np.float32(np.inf)))
    top = Fraction(2) ** 128 if math.isinf(above) else Fraction(above)
    middle = (Fraction(single) + top) / 2
    scale = middle.denominator.bit_length() - 1
    whole = middle.numerator * 5**scale * 10 ** (zeros + 1) + nudge
    number = f"{whole}e{-scale - zeros - 1}"
    expected = nearest_float32(number)
    assert nearest(number.encode(), np.dtype(np.float32)) == expected
    assert nearest(b"-" + number.encode(), np.dtype(np.float32)) == -expected
    assert nudge or narrows_twice(float(middle))


@given(doubles)
def test_doubles_that_narrow_once_need_no_second_look(value: float) -> None:
    number = repr(value)
    if not narrows_twice(value):
        with np.errstate(all="ignore"):
            assert float(np.float32(value)) == nearest_float32(number)
    assert nearest(number.encode(), np.dtype(np.float32)) == nearest_float32(number)
