"""Every reader against a simple one, on texts right and wrong."""

import io
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm.data import LibsvmBlocks, LibsvmError, read_libsvm
from certsvm.data.compressed import compression_of
from certsvm.data.libsvm import pieces
from tests.data.test_decimal import nearest_float32

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ITEM = re.compile(rb"(\d+):(.*)", re.DOTALL)


@dataclass
class Wrong(Exception):  # noqa: N818
    line: int | None
    column: int | None


@dataclass(frozen=True)
class Told:
    """What the caller of a reader says about the file."""

    n_features: int | None = None
    zero_based: bool | None = None
    dtype: Any = np.float64

    def arguments(self) -> dict[str, Any]:
        return {"n_features": self.n_features, "zero_based": self.zero_based, "dtype": self.dtype}


Row = tuple[float, list[tuple[int, float]]]


def reference(text: bytes, told: Told) -> tuple[list[Row], bool]:
    """Rows with indices as in the file, and whether it counts from zero; slow and plain."""
    rows: list[Row] = []
    suspects = []
    text = text.removeprefix(b"\xef\xbb\xbf")
    lines = text.split(b"\n")
    for number, line in enumerate(lines, 1):
        if number < len(lines):
            line = line.removesuffix(b"\r")
        row = reference_row(line, number, told)
        if row is None:
            continue
        rows.append(row)
        if row[1] and row[1][-1][0] == told.n_features:
            last = list(re.finditer(rb"[^ \t]+", line.partition(b"#")[0]))[-1]
            suspects.append(Wrong(number, last.start() + 1))
    if not rows:
        raise Wrong(None, None)
    zero_based = told.zero_based
    if zero_based is None:
        zero_based = any(pair[0] == 0 for _, pairs in rows for pair in pairs)
        if zero_based and suspects:
            raise suspects[0]
    return rows, zero_based


def reference_row(line: bytes, number: int, told: Told) -> Row | None:
    content, hash_, comment = line.partition(b"#")
    tokens = list(re.finditer(rb"[^ \t]+", content))
    row = None
    if tokens:
        label = number_at(tokens[0][0], np.float64, Wrong(number, tokens[0].start() + 1))
        pairs: list[tuple[int, float]] = []
        for position, token in enumerate(tokens[1:]):
            if position == 0 and re.fullmatch(rb"qid:\d+", token[0]):
                continue
            pairs.append(reference_pair(token, pairs, number, told))
        row = label, pairs
    if hash_ and (found := re.search(rb"[\0\r]", comment)):
        raise Wrong(number, len(content) + 1 + found.start() + 1)
    return row


def reference_pair(
    token: re.Match[bytes], before: list[tuple[int, float]], number: int, told: Told
) -> tuple[int, float]:
    here = Wrong(number, token.start() + 1)
    item = ITEM.fullmatch(token[0])
    if item is None:
        raise here
    index = int(item[1])
    low, high = int(told.zero_based is False), 2**63 - 2
    if told.n_features is not None:
        high = told.n_features - (told.zero_based is True)
    if not low <= index <= high or (before and index <= before[-1][0]):
        raise here
    behind_colon = Wrong(number, token.start() + 1 + len(item[1]) + 1)
    return index, number_at(item[2], told.dtype, behind_colon)


def number_at(token: bytes, dtype: Any, wrong: Wrong) -> float:
    if not NUMBER.fullmatch(token):
        raise wrong
    if dtype == np.float64:
        value = float(token)
    else:
        value = nearest_float32(token.decode())
        value = -0.0 if value == 0 and token.startswith(b"-") else value
    if np.isinf(value):
        raise wrong
    return value


def bits(rows: list[Row]) -> list[Any]:
    return [(label.hex(), [(j, v.hex()) for j, v in pairs]) for label, pairs in rows]


def rows_of(values: Any, indices: Any, indptr: Any, labels: Any, base: int) -> list[Row]:
    return [
        (
            float(label),
            [
                (int(j) + base, float(v))
                for j, v in zip(indices[a:b], values[a:b], strict=True)
            ],
        )
        for label, a, b in zip(labels, indptr[:-1], indptr[1:], strict=True)
    ]  # fmt: skip


def whole(source: Any, told: Told, n_jobs: int) -> tuple[list[Row], bool]:
    data = read_libsvm(source, n_jobs=n_jobs, **told.arguments())
    base = int(not data.zero_based)
    X = data.X
    assert X.dtype == told.dtype
    X.check_format(full_check=True)
    rows = rows_of(X.data, X.indices, X.indptr, data.y, base)
    columns = told.n_features
    if columns is None:
        columns = max((pairs[-1][0] + 1 - base for _, pairs in rows if pairs), default=0)
    assert X.shape == (len(rows), columns)
    return rows, data.zero_based


def in_blocks(source: Any, told: Told, n_jobs: int, size: int) -> tuple[list[Row], bool]:
    blocks = LibsvmBlocks(source, size, n_jobs=n_jobs, **told.arguments())
    rows: list[Row] = []
    for block in blocks:
        assert block.first_row == len(rows)
        rows += rows_of(block.values, block.indices, block.indptr, block.labels, 0)
    assert blocks.n_rows == len(rows)
    indices = [j for _, pairs in rows for j, _ in pairs]
    assert blocks.n_values == len(indices)
    assert blocks.smallest_index == min(indices, default=None)
    assert blocks.largest_index == max(indices, default=None)
    return rows, blocks.zero_based


def check(
    text: bytes, told: Told, folder: Path, piece: int = 16, names: tuple[str, ...] = ()
) -> None:
    """All readers, or those named, come to the verdict of the reference."""
    path = folder / "text"
    path.write_bytes(text)
    try:
        rows, zero_based = reference(text, told)
        expected: Any = bits(rows), zero_based
    except Wrong as wrong:
        expected = wrong.line, wrong.column
    readers: dict[str, Callable[[], Any]] = {
        "serial": lambda: whole(path, told, 1),
        "n_jobs": lambda: whole(path, told, 2),
        "stream": lambda: whole(io.BytesIO(text), told, 1),
        "single lines": lambda: in_blocks(path, told, 1, 1),
        "short blocks": lambda: in_blocks(path, told, 2, 50),
        "one block": lambda: in_blocks(io.BytesIO(text), told, 2, 10_000),
    }
    with pytest.MonkeyPatch.context() as patch:
        # As short as this, even small texts have many pieces.
        patch.setattr(pieces, "_PIECE_BYTES", piece)
        for name, reader in readers.items():
            if names and name not in names:
                continue
            try:
                rows, zero_based = reader()
                found: Any = bits(rows), zero_based
            except LibsvmError as error:
                found = error.line, error.column
            assert found == expected, (name, text)


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
tellings = st.builds(
    Told,
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


@given(texts, tellings)
def test_texts_in_the_format(text: bytes, told: Told) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(text, told, Path(folder))


@given(texts, tellings, mutations)
def test_texts_with_mistakes(
    text: bytes, told: Told, changes: list[tuple[str, float, int]]
) -> None:
    damaged = bytearray(text)
    for kind, place, byte in changes:
        position = int(place * len(damaged))
        damaged[position : position + (kind != "insert")] = [byte] * (kind != "delete")
    with tempfile.TemporaryDirectory() as folder:
        check(bytes(damaged), told, Path(folder))


@given(st.binary(max_size=60) | st.lists(st.sampled_from(list(ALPHABET)), max_size=40).map(bytes))
def test_anything_at_all(text: bytes) -> None:
    assume(compression_of(text) is None)
    with tempfile.TemporaryDirectory() as folder:
        check(text, Told(), Path(folder))


SAMPLE = b"\xef\xbb\xbf+1 qid:2 1:0.5 3:-2e1 # c\r\n\n-1 0:.25\t12345678901:7.25\n3 # 1:2\n.5 9:1"


def test_cuts_at_every_byte(tmp_path: Path) -> None:
    for length in range(len(SAMPLE) + 1):
        check(SAMPLE[:length], Told(), tmp_path)


@pytest.mark.parametrize("piece", [1, 7, 40])
def test_pieces_of_any_length(piece: int, tmp_path: Path) -> None:
    check(SAMPLE, Told(), tmp_path, piece)


def test_other_bytes_at_every_position(tmp_path: Path) -> None:
    for position in range(len(SAMPLE)):
        for byte in {*b" \n\r#:0", *(SAMPLE[position] ^ 1 << bit for bit in range(8))}:
            damaged = bytearray(SAMPLE)
            damaged[position] = byte
            check(bytes(damaged), Told(), tmp_path, names=("serial", "n_jobs", "short blocks"))
