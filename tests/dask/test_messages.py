"""Packed vectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from certsvm.dask.cluster import size_of
from certsvm.dask.messages import packed, unpacked

ENTRIES = st.one_of(st.just(0.0), st.floats(allow_nan=False, allow_subnormal=False))


@given(arrays(np.float64, st.integers(0, 60), elements=ENTRIES))
def test_packing_keeps_the_vector_and_never_takes_more_room(vector: np.ndarray) -> None:
    message = packed(vector)
    np.testing.assert_array_equal(unpacked(message), vector)
    # The length is a number of eight bytes.
    assert size_of(message) <= vector.nbytes + 8


def test_vectors_are_packed_when_that_is_less() -> None:
    assert packed(np.arange(1.0, 100.0)).indices is None
    sparse = np.zeros(100)
    sparse[[3, 50]] = 1.0, -2.0
    assert size_of(packed(sparse)) == 24 + 8


def test_an_unpacked_vector_has_its_own_memory() -> None:
    vector = np.ones(5)
    unpacked(packed(vector))[0] = 7.0
    assert vector[0] == 1.0
