"""Sizes, and what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.memory import left_of, parse_size

UNITS = {"": 1, "k": 10**3, "M": 10**6, "g": 10**9, "T": 10**12,
         "Ki": 2**10, "mi": 2**20, "GI": 2**30, "ti": 2**40}  # fmt: skip


@given(
    st.integers(0, 9999), st.sampled_from(sorted(UNITS)), st.sampled_from(["", "b", "B"]),
    st.sampled_from(["", " ", "  "]),
)  # fmt: skip
def test_sizes(number: int, unit: str, byte: str, blank: str) -> None:
    assert parse_size(f"{blank}{number}{blank}{unit}{byte}{blank}") == number * UNITS[unit]
    assert parse_size(f"{number}.5{unit}{byte}") == int((number + 0.5) * UNITS[unit])


@pytest.mark.parametrize(
    "text",
    ["", "M", "-1M", "1e9", "1,5G", "nan", "inf", "1 M B", "5x", "5i", "5ib", "1.M", ".5M", "0x10",
     "9" * 400],
)  # fmt: skip
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_too_little_says_how_much_is_needed() -> None:
    with pytest.raises(ValueError, match=r"1 MB of memory are not enough.* at least \d+ MB") as e:
        left_of(1_000_000)
    needed = int(str(e.value).split("at least ")[1].split(" MB")[0])
    assert left_of((needed + 20) * 10**6) > 0
