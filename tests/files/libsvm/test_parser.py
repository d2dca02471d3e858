"""Every reader against a plain one, on texts right and wrong."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm.files import (
    LibsvmBlocks,
    LibsvmError,
    read_libsvm,
)
from certsvm.files.compressed import compression_of
from tests.files.libsvm.reading import SAMPLE, Options, check, load

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


def test_other_bytes_at_every_position(tmp_path: Path) -> None:
    for position in range(len(SAMPLE)):
        for byte in {*b" \n\r#:0", *(SAMPLE[position] ^ 1 << bit for bit in range(8))}:
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


def test_notes() -> None:
    data = read_libsvm(io.BytesIO(b"1 qid:1 0:1\n1 qid:1\n1\n"))
    assert data.zero_based
    assert data.notes == ["indices count from zero", "qid ignored on 2 lines"]
    blocks = LibsvmBlocks(io.BytesIO(b"1 qid:1 1:1\n"))
    assert blocks.notes == []
    list(blocks)
    assert blocks.notes == ["qid ignored on 1 line"]
    assert not blocks.zero_based
