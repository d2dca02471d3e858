"""Decimal numbers against Python's float."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from certsvm.kernels import decimal


def text_of(number: str) -> np.ndarray:
    return np.frombuffer(number.encode() + b"\n" * decimal.PADDING, dtype=np.uint8)


def check(number: str) -> None:
    """Compare with Python's float, unless the number is not settled."""
    value, end = decimal.read_number(text_of(number), 0)
    assert end == len(number)
    if not math.isnan(value):
        assert struct.pack("d", value) == struct.pack("d", float(number)), number


doubles = st.floats(allow_nan=False, allow_infinity=False)


digit_strings = st.text("0123456789", min_size=1, max_size=40)


def test_the_table_holds_the_powers_of_ten_rounded_down() -> None:
    for q, bits in zip(range(-342, 309), decimal.POWERS.tolist(), strict=True):
        exponent = (217706 * q) >> 16
        power = Fraction(10) ** q
        assert Fraction(2) ** exponent <= power < Fraction(2) ** (exponent + 1)
        assert bits == math.floor(power * Fraction(2) ** (63 - exponent))


@given(doubles)
def test_what_repr_writes(value: float) -> None:
    check(repr(value))
    check(f"{value:.16e}")
    check(f"{value:.17g}")


@given(digit_strings, digit_strings, st.integers(-400, 400), st.sampled_from(["", "+", "-"]))
@example("0", "0" * 30, -500, "-")
@example("9" * 19, "9" * 19, 289, "")
@example("17976931348623158", "0", 292, "")
def test_any_digits_and_exponent(whole: str, parts: str, e: int, sign: str) -> None:
    check(f"{sign}{whole}.{parts}e{e}")
    check(f"{sign}{whole}{parts}")
    check(f"{sign}.{parts}E{e:+d}")
    check(f"{sign}{whole}.")


@given(doubles, st.sampled_from([-1, 0, 1]), st.integers(0, 5))
@example(5e-324, 0, 0)
@example(1.7976931348623157e308, 0, 0)
@example(2.2250738585072009e-308, 0, 0)
def test_halfway_between_two_doubles(value: float, nudge: int, zeros: int) -> None:
    """The middle has hundreds of digits; a last digit more or less tips the balance."""
    value = abs(value)
    above = math.nextafter(value, math.inf)
    top = Fraction(2) ** 1024 if math.isinf(above) else Fraction(above)
    middle = (Fraction(value) + top) / 2
    scale = middle.denominator.bit_length() - 1
    whole = middle.numerator * 5**scale * 10 ** (zeros + 1) + nudge
    check(f"{whole}e{-scale - zeros - 1}")


@given(st.integers(2**53, 2**64 - 1), st.integers(-5, 25))
def test_integers_that_doubles_skip(m: int, e: int) -> None:
    """Ties are met here."""
    check(f"{m}e{e}")


@pytest.mark.parametrize("number", ["", "-", ".", "+.", ".e5", "e5", "1e", "1e+", "nan", "inf"])
def test_what_is_no_number(number: str) -> None:
    assert decimal.read_number(text_of(number), 0)[1] == -1


@pytest.mark.parametrize(
    "number",
    ["1e309", "1e999999999999999999999999", "0e999999999999999999999999",
     "1e-999999999999999999999999", "0." + "0" * 3000 + "1e3001", "1" + "0" * 3000 + "e-3000",
     "1.7976931348623157e308", "1.7976931348623159e308", "5e-324", "-0", "9007199254740993",
     "9007199254740995", "9007199254740993.000000000000000001", "1e18446744073709551617"],
)  # fmt: skip
def test_extremes(number: str) -> None:
    check(number)


def test_hardly_any_number_is_not_settled() -> None:
    digits = np.random.default_rng(0).integers(10**16, 10**17, 20_000).tolist()
    numbers = (f"0.{m}e{m % 400 - 200}" for m in digits)
    unsettled = [math.isnan(decimal.read_number(text_of(number), 0)[0]) for number in numbers]
    assert sum(unsettled) < 100
