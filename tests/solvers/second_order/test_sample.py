"""How large a sample is, and when there is none."""

from __future__ import annotations

import pytest

from certsvm.solvers.second_order.sample import (
    first_rows,
    first_rows_suffice,
    has_enough_weight,
    sample_size,
)


@pytest.mark.parametrize(
    ("m", "columns", "most", "size"),
    [
        (120_000, 10, None, 10_000),
        (120_000, 10, 2000, 2000),
        (120_000, 1000, None, 20_000),
        (3000, 10, None, 1000),
        (2999, 10, None, None),
        (59_999, 1000, None, None),
        (60_000, 1000, None, 20_000),
        # A block of the rows is smaller than the sample would be.
        (59_999, 1000, 500, 500),
    ],
)
def test_size(m: int, columns: int, most: int | None, size: int | None) -> None:
    assert sample_size(m, columns, most) == size


def test_a_sample_needs_its_share_of_the_weight() -> None:
    assert has_enough_weight(0.01, 100, 1000)
    assert not has_enough_weight(0.009, 100, 1000)


def test_first_rows() -> None:
    assert first_rows(640_000, 10) == 10_000
    assert first_rows(320_000, 10) == 5000
    assert first_rows(640, 10) == 1000
    assert first_rows_suffice(100, 10)
    assert not first_rows_suffice(99, 10)
