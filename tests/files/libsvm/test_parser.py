"""Every reader against a plain one, on texts right and wrong."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from certsvm.files import LibsvmError
from certsvm.files.compressed import compression_of
from certsvm.files.libsvm_parser import nearest
from tests.files.libsvm.reading import SAMPLE, Options, check, load, nearest_float32

numbers = st.one_of(
    st.sampled_from(["1", "0", "-0", "+1", ".5", "3.", "1e3", "2E-2", "0.1", "1e-46", "1e38"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(0, 1, width=32).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.text("0123456789", min_size=1, max_size=30),
    st.tuples(st.text("0123456789", min_size=1, max_size=25), st.integers(-360, 310)).map(
        lambda p: f"0.{p[0]}e{p[1]}"
    ),
    st.sampled_from(["16777217", "16777217.000000000000000001", "9007199254740993.0", "1e309"]),
)


blanks = st.sampled_from([" ", " ", " ", "\t", "  ", " \t "])


comments = st.sampled_from(["", "", "", "", "#", "# 1:2 3:4", "#x\t#", "# caf\xe9"])


ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "\r\n \n"])


@st.composite
def lines(draw: st.DrawFn) -> str:
    indices = sorted(draw(st.sets(st.integers(0, 12) | st.integers(0, 2**40), max_size=5)))
    parts = [draw(numbers.filter(lambda n: n != "1e309"))]
    if draw(st.integers(0, 4)) == 0:
        parts.append(f"qid:{draw(st.integers(0, 99))}")
    for index in indices:
        zeros = draw(st.sampled_from(["", "", "", "0", "000000000"]))
        parts.append(f"{zeros}{index}:{draw(numbers)}")
    line = "".join(part + draw(blanks) for part in parts)
    if draw(st.booleans()):
        line = line.rstrip()
    return draw(st.sampled_from(["", "", " "])) + line + draw(comments) + draw(ends)


texts = st.builds(
    lambda mark, parts, cut: (mark + "".join(parts)[: None if cut else -1]).encode(),
    st.sampled_from(["", "", "", "\ufeff"]),
    st.lists(lines(), min_size=1, max_size=6),
    st.booleans(),
)


option_sets = st.builds(
    Options,
    st.none() | st.none() | st.integers(0, 14),
    st.sampled_from([None, None, True, False]),
    st.sampled_from([np.float64, np.float32]),
)


ALPHABET = b" \t\n\r#:,.+-e0159qdxin\0\x0b_\xa0\xff"


mutations = st.lists(
    st.tuples(
        st.sampled_from(["insert", "replace", "delete"]),
        st.floats(0, 1),
        st.sampled_from(list(ALPHABET)),
    ),
    min_size=1,
    max_size=3,
)


@given(texts, option_sets)
def test_texts_in_the_format(text: bytes, options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(text, options, Path(folder))


@given(texts, option_sets, mutations)
def test_texts_with_mistakes(
    text: bytes, options: Options, changes: list[tuple[str, float, int]]
) -> None:
    damaged = bytearray(text)
    for kind, place, byte in changes:
        position = int(place * len(damaged))
        damaged[position : position + (kind != "insert")] = [byte] * (kind != "delete")
    with tempfile.TemporaryDirectory() as folder:
        check(bytes(damaged), options, Path(folder))


@given(st.binary(max_size=60) | st.lists(st.sampled_from(list(ALPHABET)), max_size=40).map(bytes))
def test_anything_at_all(text: bytes) -> None:
    assume(compression_of(text) is None)
    with tempfile.TemporaryDirectory() as folder:
        check(text, Options(), Path(folder))


@pytest.mark.parametrize("piece", [1, 7, 40])
def test_cuts_at_every_byte(piece: int, tmp_path: Path) -> None:
    for length in range(piece % 3, len(SAMPLE) + 1, 3):
        check(SAMPLE[:length], Options(), tmp_path, piece)


def test_other_bytes_at_every_position(tmp_path: Path) -> None:
    for position in range(len(SAMPLE)):
        for byte in {*b" \n\r#:0", SAMPLE[position] ^ 1 << position % 8}:
            damaged = bytearray(SAMPLE)
            damaged[position] = byte
            check(bytes(damaged), Options(), tmp_path, names=("serial", "n_jobs", "short blocks"))


def test_more_unsettled_numbers_than_expected() -> None:
    number = b"9007199254740993." + b"0" * 30 + b"1"
    text = (b"1 " + b" ".join(b"%d:%b" % (j, number) for j in range(1, 40)) + b"\n") * 50
    X, _ = load(text)
    assert set(X.data.tolist()) == {9007199254740994.0}
    # A label that is rounded is refused, however many there are before it.
    labels = b"1.0000000000000000\n" * 600
    assert load(labels)[1].tolist() == [1.0] * 600
    with pytest.raises(LibsvmError, match=r"line 601, column 1: .*more digits"):
        load(labels + number + b"\n")


@given(st.floats(0, width=32, allow_infinity=False), st.integers(-1, 1), st.integers(0, 30))
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
