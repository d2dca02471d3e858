"""Every reader against a plain one, on texts right and wrong; what is written reads back."""

import gzip
import io
import math
import os
import pickle
import re
import stat
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given
from hypothesis import strategies as st

from certsvm.files import LibsvmBlocks, LibsvmError, load_libsvm, save_libsvm
from certsvm.files.compressed import compression_of
from tests.files.libsvm_reference import SAMPLE, Options, check, load, nearest_float32

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


ways = st.sampled_from(["insert", "replace", "delete"])
places = st.tuples(ways, st.floats(0, 1), st.sampled_from(list(ALPHABET)))
mutations = st.lists(places, min_size=1, max_size=3)


@given(texts, option_sets)
def test_texts_in_the_format(text: bytes, options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(text, options, Path(folder))


@given(texts, option_sets, mutations)
def test_texts_with_mistakes(text: bytes, options: Options, changes: list[Any]) -> None:
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
    X, _ = load((b"1" + b" ".join(b" %d:%b" % (j, number) for j in range(1, 40)) + b"\n") * 50)
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
    text = f"1 1:{number} 2:-{number}\n".encode()
    if math.isinf(expected):
        with pytest.raises(LibsvmError, match="too large for float32"):
            load(text, dtype=np.float32)
    else:
        assert load(text, dtype=np.float32)[0].data.tolist() == [expected, -expected]


def sample(n_rows: int, seed: int = 0, dtype: Any = np.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, 50, density=0.2, random_state=rng, format="csr", dtype=dtype)
    return X, rng.choice([-1.0, 1.0, 2.5], n_rows)


def assert_same(X: Any, y: Any, Z: Any, z: Any) -> None:
    assert X.shape == Z.shape
    assert X.data.dtype == Z.data.dtype
    assert X.data.tobytes() == Z.data.tobytes()
    np.testing.assert_array_equal(X.indices, Z.indices)
    np.testing.assert_array_equal(X.indptr, Z.indptr)
    assert np.asarray(y, dtype=np.float64).tobytes() == z.tobytes()


@pytest.mark.parametrize("seekable", [True, False])
def test_index_types(seekable: bool, tmp_path: Path) -> None:
    def types(text: bytes, **options: Any) -> tuple[Any, ...]:
        path = tmp_path / "text"
        path.write_bytes(text)
        X, _ = load_libsvm(path if seekable else io.BytesIO(text), **options)
        return X.indices.dtype, X.indptr.dtype, X.indices.tolist(), X.shape[1]

    narrow, wide = np.dtype(np.int32), np.dtype(np.int64)
    assert types(b"1 2147483647:1\n") == (narrow, narrow, [2**31 - 2], 2**31 - 1)
    assert types(b"1 2147483648:1\n") == (wide, wide, [2**31 - 1], 2**31)
    largest = b"1 2:1\n1 0:1 9223372036854775806:1\n"
    assert types(largest) == (wide, wide, [2, 0, 2**63 - 2], 2**63 - 1)
    assert types(b"1 5:1\n", zero_based=False) == (narrow, narrow, [4], 5)


def test_blocks_of_a_path_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"1 2:0.5\n-1\n1 7:3\n")
    blocks = LibsvmBlocks(path, 8)
    for _ in range(2):
        batches = list(blocks)
        assert [X.shape for X, _, _ in batches] == [(1, 3), (1, 0), (1, 8)]
        assert [X.indices.tolist() for X, _, _ in batches] == [[2], [], [7]]
        assert [y.tolist() for _, y, _ in batches] == [[1.0], [-1.0], [1.0]]
        assert (blocks.n_columns, blocks.zero_based, blocks.notes) == (7, False, [])


@pytest.mark.parametrize("block_bytes", [4, 16, 1000])
def test_a_line_longer_than_allowed_is_an_error_with_its_number(block_bytes: int) -> None:
    text = b"1 1:1\n\n-1 2:1\n" + b"1 " + b"3:1 " + b" " * 5000 + b"\n1 1:1\n"
    blocks = LibsvmBlocks(io.BytesIO(text), block_bytes, longest_line=5006)
    assert sum(len(y) for _, y, _ in blocks) == 4
    with pytest.raises(LibsvmError, match=r"line 4, column 1: this line is longer than"):
        list(LibsvmBlocks(io.BytesIO(text), block_bytes, longest_line=4000))


def test_what_messages_call_the_source(tmp_path: Path) -> None:
    with pytest.raises(LibsvmError, match=r"^<input>, line 1"):
        list(LibsvmBlocks(io.BytesIO(b"1 1:x\n")))
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"1 1:x\n"))
    for source in (path, str(path), os.fsencode(path)):
        with pytest.raises(LibsvmError) as caught:
            load_libsvm(source)
        assert caught.value.file == str(path)


BAD_OPTIONS: list[Any] = [
    ({"dtype": np.int32}, "dtype must be float32 or float64"),
    ({"n_features": -1}, "n_features must be"),
    ({"n_features": 2**63}, "n_features must be"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_what_cannot_be_asked_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LibsvmBlocks(io.BytesIO(b"1 1:1\n"), **options)


MISTAKES: list[Any] = [
    (b"1 1:1\n1 3:1.5x\n", {}, 2, 5, "1.5x", 'expected a number after the colon, found "1.5x"'),
    (b"1 1:1e400\n", {}, 1, 5, "1e400", 'the value "1e400" is too large for float64'),
    (b"1 1:1e39\n", {"dtype": np.float32}, 1, 5, "1e39", "too large for float32"),
    (b"1e999 1:1\n", {}, 1, 1, "1e999", 'the label "1e999" is too large for float64'),
    (b"1 3:\n", {}, 1, 5, "", 'expected a number after the colon, found ""'),
    (b"1 3\n", {}, 1, 3, "3", 'expected index:value, found "3"'),
    (b"1 -3:1\n", {}, 1, 3, "-3:1", 'expected index:value, found "-3:1"'),
    (b"1 " + b"9" * 5000 + b":1\n", {}, 1, 3, "9" * 40 + "...", "beyond the largest allowed"),
    (b"1 2:1 1:1\n", {}, 1, 7, "1:1", "indices must ascend within a line, but 1 follows 2"),
    (b"1 2:1 02:1\n", {}, 1, 7, "02:1", "indices must ascend within a line, but 2 follows 2"),
    (b"1 0:1\n", {"zero_based": False}, 1, 3, "0:1", "index 0 is out of range"),
    (b"1 4:1\n", {"n_features": 3}, 1, 3, "4:1",
     "index 4 is out of range: n_features=3, counted from one"),
    (b"1 1:1 3:1\n1 0:1\n", {"n_features": 3}, None, None, "",
     "index 3 is out of range: n_features=3, counted from zero"),
    (b"1 1:1\0\n", {}, 1, 5, "1\\x00", 'found a NUL byte in "1\\x00"; is this a text file?'),
    (b"1 1:1\r1 2:1\n", {}, 1, 5, "1\\r1", "carriage return that does not end a line"),
    (b"1,2 1:1\n", {}, 1, 1, "1,2", 'expected a decimal number as label, found "1,2"'),
    (b"1:1 2:1\n", {}, 1, 1, "1:1", 'expected a decimal number as label, found "1:1"'),
    (b"\n yes 1:1\n", {}, 2, 2, "yes", 'expected a decimal number as label, found "yes"'),
    (b"1 qid:1 qid:2\n", {}, 1, 9, "qid:2", 'expected index:value, found "qid:2"'),
    (b"1 1:\x1b[31m\xff\n", {}, 1, 5, "\\x1b[31m\\xff", "expected a number"),
    (b"\n# nothing\n\r\n", {}, None, None, "", "there are no rows in this file"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "line", "column", "found", "what"), MISTAKES)
def test_what_is_wrong_and_where(
    text: bytes, options: Any, line: Any, column: Any, found: str, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(text)
    where = f"{path}, line {line}, column {column}: " if line else f"{path}: "
    for read in (
        lambda: load_libsvm(path, **options),
        lambda: list(LibsvmBlocks(path, 1, **options)),
        lambda: list(LibsvmBlocks(str(path), **options)),
    ):
        with pytest.raises(LibsvmError, match=re.escape(what)) as caught:
            read()
        error = caught.value
        assert (error.line, error.column, error.text) == (line, column, found)
        assert error.file == str(path)
        assert str(error).startswith(where)
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.column) == (str(error), error.column)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Any, Any, bool]:
    width = draw(st.sampled_from([32, 64]))
    dtype = np.float32 if width == 32 else np.float64
    columns = draw(st.sampled_from([1, 5, 2**31 - 1, 2**40]))
    values = st.floats(allow_nan=False, allow_infinity=False, width=width)
    row = st.dictionaries(st.integers(0, columns - 1), values, max_size=6)
    rows = draw(st.lists(row, min_size=1, max_size=6))
    label = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-1.0, 1.0])
    labels = draw(st.lists(label, min_size=len(rows), max_size=len(rows)))
    pairs = [(j, row[j]) for row in rows for j in sorted(row)]
    indptr = np.cumsum([0, *map(len, rows)])
    data = np.array([v for _, v in pairs], dtype=dtype)
    indices = np.array([j for j, _ in pairs], dtype=np.int64)
    X = sp.csr_matrix((data, indices, indptr), shape=(len(rows), columns))
    return X, np.array(labels), draw(st.booleans())


@given(matrices())
def test_round_trip(case: tuple[Any, Any, bool]) -> None:
    X, y, zero_based = case
    file = io.BytesIO()
    save_libsvm(file, X, y, zero_based=zero_based)
    text = file.getvalue()
    options = {"n_features": X.shape[1], "zero_based": zero_based, "dtype": X.dtype}
    assert_same(X, y, *load(text, **options))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        save_libsvm(path, X, y, zero_based=zero_based)
        assert path.read_bytes() == text
        assert_same(X, y, *load_libsvm(path, **options))


def test_how_numbers_are_written(tmp_path: Path) -> None:
    X = sp.csr_matrix(([0.1, 0.0, -0.0, 3.0, 1e300], [0, 1, 2, 3, 4], [0, 2, 5]), shape=(2, 5))
    path = tmp_path / "text"
    save_libsvm(path, X, np.array([1.0, -2.5]))
    assert path.read_text() == "1 1:0.1 2:0\n-2.5 3:-0 4:3 5:1e+300\n"
    save_libsvm(path, X[:1].astype(np.float32), [True], zero_based=True)
    assert path.read_text() == "1 0:0.1 1:0\n"
    save_libsvm(path, np.array([[1, 0], [0, 2]]), [0, 7])
    assert path.read_text() == "0 1:1\n7 2:2\n"
    save_libsvm(path, np.array([[2**53 + 1]]), [2**63 - 1])
    assert path.read_text() == "9223372036854775807 1:9007199254740993\n"


UNWRITABLE: list[Any] = [
    ([[np.nan]], [1], "X contains NaN or infinity"),
    ([[1.0]], [np.inf], "y contains NaN or infinity"),
    ([[1.0]], [1, 2], "one label for each of 1 rows"),
    ([[1j]], [1], "X must hold real numbers"),
    ([["a"]], [1], "X must hold real numbers"),
    ([1.0], [1], "two dimensions"),
    (np.empty((0, 3)), [], "no rows"),
]


@pytest.mark.parametrize(("X", "y", "message"), UNWRITABLE)
def test_what_cannot_be_written(X: Any, y: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("as it was")
    for matrix in (X, sp.csr_matrix(X)) if "real" not in message and "two" not in message else (X,):
        with pytest.raises(ValueError, match=message):
            save_libsvm(path, matrix, y)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_writing_to_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    # Open for reading before there is a writer, so that neither waits for the other.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        save_libsvm(path, [[1.0]], [1])
        assert os.read(descriptor, 100) == b"1 1:1\n"
    finally:
        os.close(descriptor)
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.bool_])
@pytest.mark.parametrize("flags", [False, True])
def test_values_stored_twice_are_added_up_in_float64(dtype: Any, flags: bool) -> None:
    values = np.array([1, 100, 0.1, 100, 1], dtype=dtype)
    X = sp.csr_matrix((values, [2, 0, 1, 0, 1], [0, 5]), shape=(1, 3))
    if flags:
        X.has_canonical_format = X.has_sorted_indices = True
    file = io.BytesIO()
    save_libsvm(file, X, [1])
    exact = np.zeros(3)
    np.add.at(exact, [2, 0, 1, 0, 1], values.astype(np.float64))
    read, _ = load(file.getvalue(), n_features=3, zero_based=False, dtype=np.float64)
    np.testing.assert_array_equal(read.toarray(), [exact])
    assert X.indices.tolist() == [2, 0, 1, 0, 1]
