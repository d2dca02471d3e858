import gzip
import io
import os
import pickle
import re
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from certsvm.data import (
    LibsvmBlocks,
    LibsvmError,
    load_libsvm,
    read_libsvm,
    save_libsvm,
)
from certsvm.data.libsvm.plain_file import PlainFile
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import decimal_tables


def load(text: bytes, **told: Any) -> tuple[Any, Any]:
    return load_libsvm(io.BytesIO(text), **told)


def sample(n_rows: int, seed: int = 0, dtype: Any = np.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, 50), density=0.2, rng=rng, format="csr", dtype=dtype)
    return X, rng.choice([-1.0, 1.0, 2.5], n_rows)


def assert_same(X: Any, y: Any, Z: Any, z: Any) -> None:
    assert X.shape == Z.shape
    assert X.data.dtype == Z.data.dtype
    assert X.data.tobytes() == Z.data.tobytes()
    np.testing.assert_array_equal(X.indices, Z.indices)
    np.testing.assert_array_equal(X.indptr, Z.indptr)
    assert np.asarray(y, dtype=np.float64).tobytes() == z.tobytes()


@pytest.mark.parametrize(
    ("text", "told", "line", "column", "found", "what"),
    [
        (b"1 1:1\n1 3:1.5x\n", {}, 2, 5, "1.5x", 'expected a number after the colon, found "1.5x"'),
        (b"1 1:nan\n", {}, 1, 5, "nan", 'expected a number after the colon, found "nan"'),
        (b"1 1:-Infinity\n", {}, 1, 5, "-Infinity", "expected a number after the colon"),
        (b"1 1:0x1p3\n", {}, 1, 5, "0x1p3", "expected a number after the colon"),
        (b"1 1:1_0\n", {}, 1, 5, "1_0", "expected a number after the colon"),
        (b"1 1:1e400\n", {}, 1, 5, "1e400", 'the value "1e400" is too large for float64'),
        (b"1 1:1e39\n", {"dtype": np.float32}, 1, 5, "1e39", "too large for float32"),
        (b"1 1:3.4028235677973367e38\n", {"dtype": np.float32}, 1, 5, "3.4028235677973367e38",
         "too large for float32"),
        (b"1 1:17976931348623158079372897140530341507993413271003782e257\n", {}, 1, 5,
         "1797693134862315807937289714053034150799...", "too large for float64"),
        (b"1e999 1:1\n", {}, 1, 1, "1e999", 'the label "1e999" is too large for float64'),
        (b"1 3:\n", {}, 1, 5, "", "expected a number after the colon, found nothing"),
        (b"1 3: 4:1\n", {}, 1, 5, "", "expected a number after the colon, found nothing"),
        (b"1 :3\n", {}, 1, 3, ":3", 'expected an index before the colon, found ":3"'),
        (b"1 3\n", {}, 1, 3, "3", 'expected index:value, found "3"'),
        (b"1 a:3\n", {}, 1, 3, "a:3", 'expected index:value, found "a:3"'),
        (b"1 -3:1\n", {}, 1, 3, "-3:1", 'an index has no sign, found "-3:1"'),
        (b"1 +3:1\n", {}, 1, 3, "+3:1", 'an index has no sign, found "+3:1"'),
        (b"1 9223372036854775807:1\n", {}, 1, 3, "9223372036854775807:1", "beyond the largest"),
        (b"1 " + b"9" * 5000 + b":1\n", {}, 1, 3, "9" * 40 + "...", "beyond the largest allowed"),
        (b"1 2:1 1:1\n", {}, 1, 7, "1:1", "indices must ascend within a line, but 1 follows 2"),
        (b"1 2:1 02:1\n", {}, 1, 7, "02:1", "index 2 is there twice in this line"),
        (b"1 0:1\n", {"zero_based": False}, 1, 3, "0:1", "index 0, although indices count"),
        (b"1 4:1\n", {"n_features": 3}, 1, 3, "4:1",
         "index 4 is out of range: n_features=3, counted from one"),
        (b"1 3:1\n", {"n_features": 3, "zero_based": True}, 1, 3, "3:1",
         "index 3 is out of range: n_features=3, counted from zero"),
        (b"1 1:1 3:1\n1 0:1\n", {"n_features": 3}, 1, 7, "3:1",
         "index 3 is out of range: n_features=3, counted from zero"),
        (b"1 1:1\0\n", {}, 1, 5, "1\\x00", 'found a NUL byte in "1\\x00"; is this a text file?'),
        (b"1 1:1 # a\0b\n", {}, 1, 10, "\\x00", "found a NUL byte"),
        (b"1 1:1\r1 2:1\n", {}, 1, 5, "1\\r1", "carriage return that does not end a line"),
        (b"1 1:1 # a\rb\n", {}, 1, 10, "\\r", "carriage return that does not end a line"),
        (b"1 1:1\r", {}, 1, 5, "1\\r", "carriage return that does not end a line"),
        (b"1,2 1:1\n", {}, 1, 1, "1,2", 'several labels, "1,2": multi-label data is not supported'),
        (b"1:1 2:1\n", {}, 1, 1, "1:1", 'expected a label before the first index, found "1:1"'),
        (b"\n yes 1:1\n", {}, 2, 2, "yes", 'expected a decimal number as label, found "yes"'),
        (b"nan 1:1\n", {}, 1, 1, "nan", 'expected a decimal number as label, found "nan"'),
        (b"1 qid:x 1:1\n", {}, 1, 3, "qid:x", "qid and a whole number may stand right after"),
        (b"1 1:1 qid:2\n", {}, 1, 7, "qid:2", "qid and a whole number may stand right after"),
        (b"1 qid:1 qid:2\n", {}, 1, 9, "qid:2", "qid and a whole number may stand right after"),
        (b"1 1:" + b"x" * 99 + b"\n", {}, 1, 5, "x" * 40 + "...", "expected a number"),
        (b"1 1:\x1b[31m\xff\n", {}, 1, 5, "\\x1b[31m\\xff", "expected a number"),
        (b"", {}, None, None, "", "there are no rows in this file"),
        (b"\n# nothing\n\r\n", {}, None, None, "", "there are no rows in this file"),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(
    text: bytes, told: dict[str, Any], line: int | None, column: int | None, found: str,
    what: str, tmp_path: Path,
) -> None:  # fmt: skip
    path = tmp_path / "train.txt"
    path.write_bytes(text)
    where = f"{path}, line {line}, column {column}: " if line else f"{path}: "
    for read in (
        lambda: load_libsvm(path, **told),
        lambda: list(LibsvmBlocks(path, 1, **told)),
        lambda: list(LibsvmBlocks(str(path), **told)),
    ):
        with pytest.raises(LibsvmError, match=re.escape(what)) as caught:
            read()
        error = caught.value
        assert (error.line, error.column, error.text) == (line, column, found)
        assert error.file == str(path)
        assert str(error).startswith(where)
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.column) == (str(error), error.column)


@pytest.mark.parametrize(
    ("text", "rows", "labels"),
    [
        (b"1 1:2 3:4\r\n-1 2:5\r\n", [[2, 0, 4], [0, 5, 0]], [1, -1]),
        (b"\xef\xbb\xbf1 1:2\n", [[2]], [1]),
        (b"# first\n\n  \t\n+1\t1:2  \n# last", [[2]], [1]),
        (b"1 1:2# 3:4\n2 2:1 #\n", [[2, 0], [0, 1]], [1, 2]),
        (b"1e3 qid:7 1:2\n0.5 qid:8\n", [[2], [0]], [1000, 0.5]),
        (b"-.5 1:+2. 2:.5E+1", [[2, 5]], [-0.5]),
        (b"1\n2", [[], []], [1, 2]),
        (b"1 0:1 2:3\n", [[1, 0, 3]], [1]),
        (b"1 # caf\xe9\n", [[]], [1]),
    ],
)
def test_what_the_format_allows(text: bytes, rows: Any, labels: Any) -> None:
    X, y = load(text)
    np.testing.assert_array_equal(X.toarray(), np.array(rows, dtype=float))
    np.testing.assert_array_equal(y, labels)


def test_notes() -> None:
    data = read_libsvm(io.BytesIO(b"1 qid:1 0:1\n1 qid:1\n1\n"))
    assert data.zero_based
    assert data.notes == ["indices count from zero", "qid ignored on 2 lines"]
    blocks = LibsvmBlocks(io.BytesIO(b"1 qid:1 1:1\n"))
    assert blocks.notes == []
    list(blocks)
    assert blocks.notes == ["qid ignored on 1 line"]
    assert not blocks.zero_based


def test_where_counting_starts_is_decided_for_the_whole_file() -> None:
    text = b"".join(b"1 5:1\n" for _ in range(1000)) + b"1 0:1\n"
    assert load(text)[0].shape == (1001, 6)
    assert load(text, n_features=9)[0].shape == (1001, 9)
    assert load(text[:-6])[0].shape == (1000, 5)
    assert load(text[:-6], zero_based=True)[0].shape == (1000, 6)
    with pytest.raises(LibsvmError, match="line 1001"):
        load(text, zero_based=False)


@pytest.mark.parametrize("seekable", [True, False])
def test_index_types(seekable: bool, tmp_path: Path) -> None:
    def types(text: bytes, **told: Any) -> tuple[Any, ...]:
        path = tmp_path / "text"
        path.write_bytes(text)
        X, _ = load_libsvm(path if seekable else io.BytesIO(text), **told)
        return X.indices.dtype, X.indptr.dtype, X.indices.tolist(), X.shape[1]

    narrow, wide = np.dtype(np.int32), np.dtype(np.int64)
    assert types(b"1 2147483647:1\n") == (narrow, narrow, [2**31 - 2], 2**31 - 1)
    assert types(b"1 2147483648:1\n") == (wide, wide, [2**31 - 1], 2**31)
    assert types(b"1 2:1\n1 0:1 9223372036854775806:1\n") == (
        wide, wide, [2, 0, 2**63 - 2], 2**63 - 1,
    )  # fmt: skip
    assert types(b"1 5:1\n", zero_based=False) == (narrow, narrow, [4], 5)


def test_agreement_with_scikit_learn(tmp_path: Path) -> None:
    path = tmp_path / "text"
    X, y = sample(5000)
    save_libsvm(path, X, y)
    Z, z = load_svmlight_file(str(path), n_features=50)
    for n_jobs in (1, 2, 5):
        assert_same(*load_libsvm(path, n_features=50, n_jobs=n_jobs), Z, z)


def test_a_line_longer_than_a_block() -> None:
    long = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 500)) + b"\n"
    text = b"1 1:1\n" * 100 + long + b"1 1:1\n" * 1000
    sizes = [block.labels.size for block in LibsvmBlocks(io.BytesIO(text), 64)]
    assert sum(sizes) == 1101
    # The long line doubles the buffer until it fits; afterwards blocks are short again.
    assert max(sizes[:9]) <= 11
    assert max(sizes) <= len(long) // 6 + 11
    assert max(sizes[-9:]) <= 11


def test_blocks_of_a_path_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"1 1:1\n2 2:2\n")
    blocks = LibsvmBlocks(path, 6)
    for _ in range(2):
        assert [block.labels.tolist() for block in blocks] == [[1.0], [2.0]]
        assert blocks.n_rows == 2


def test_standard_input() -> None:
    code = (
        "import sys; from certsvm.data import load_libsvm; "
        "X, y = load_libsvm(sys.stdin.buffer); print(X.shape, y.sum())"
    )
    text = b"1 1:2\n" * 100_000
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout.split() == [b"(100000,", b"1)", b"100000.0"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"1 1:2\n" * 50_000))
    writer.start()
    X, _ = load_libsvm(path)
    writer.join()
    assert X.shape == (50_000, 1)


def test_a_file_object_is_read_from_where_it_is() -> None:
    file = io.BytesIO(b"header\n1 1:2\n")
    file.readline()
    assert load_libsvm(file)[0].shape == (1, 1)


def test_what_messages_call_the_source(tmp_path: Path) -> None:
    text = b"1 1:x\n"
    with pytest.raises(LibsvmError, match=r"^<input>, line 1"):
        list(LibsvmBlocks(io.BytesIO(text)))
    with pytest.raises(LibsvmError, match=r"^train\.txt, line 1"):
        list(LibsvmBlocks(io.BytesIO(text), name="train.txt"))
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(text))
    for source in (path, str(path), os.fsencode(path)):
        with pytest.raises(LibsvmError) as caught:
            load_libsvm(source)
        assert caught.value.file == str(path)


@pytest.mark.parametrize("change", ["shorter", "longer", "denser"])
def test_a_file_that_changes_between_counting_and_parsing(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"1 1:1000\n" * 1000)
    count = PlainFile.pieces

    def count_then_change(*arguments: Any) -> Any:
        pieces = count(*arguments)
        if change == "shorter":
            os.truncate(path, 4000)
        elif change == "denser":
            with open(path, "r+b") as file:
                file.write(b"1 1:1 2:1\n1\n")
        else:
            with open(path, "ab") as file:
                file.write(b"1 1:1\n")
        return pieces

    monkeypatch.setattr(PlainFile, "pieces", count_then_change)
    with pytest.raises(LibsvmError, match="changed while it was read"):
        load_libsvm(path)


def test_more_unsettled_numbers_than_expected() -> None:
    number = b"9007199254740993." + b"0" * 30 + b"1"
    text = (b"1 " + b" ".join(b"%d:%b" % (j, number) for j in range(1, 40)) + b"\n") * 50
    text += number + b"\n"
    X, y = load(text)
    assert set(X.data.tolist()) == {9007199254740994.0}
    assert y[-1] == 9007199254740994.0


def test_the_kernel_refuses_text_that_it_could_read_beyond() -> None:
    report = np.empty(len(kernels.Report._fields), dtype=np.int64)
    outputs = (
        np.empty(9), np.empty(9, np.int32), np.empty(9), np.empty(9, np.int64), 0,
        np.empty((9, 2), np.int64), report,
    )  # fmt: skip
    rules = kernels.IndexRules(1, 0, 9, -2)
    for text, end in ((b"1 1:1\n", 6), (b"1 1:1" + b" " * 9, 5), (b"\n" * 20, 0)):
        array = np.frombuffer(text, dtype=np.uint8)
        kernels.parse_lines(array, end, rules, decimal_tables(), *outputs)
        assert report[0] == kernels.BAD_BUFFER


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"dtype": np.int32}, "dtype must be float32 or float64"),
        ({"n_features": -1}, "n_features must be"),
        ({"n_features": 2.0}, "n_features must be"),
        ({"n_features": 2**63}, "n_features must be"),
        ({"zero_based": 1}, "zero_based must be"),
        ({"n_jobs": -1}, "n_jobs must be"),
    ],
)
def test_what_cannot_be_asked_for(told: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(b"1 1:1\n", **told)
    with pytest.raises(ValueError, match=message):
        LibsvmBlocks(io.BytesIO(b"1 1:1\n"), **told)


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="expected a path or a binary file, got int"):
        load_libsvm(3)
    with pytest.raises(FileNotFoundError):
        load_libsvm(tmp_path / "nothing")
    with pytest.raises(ValueError, match="block_bytes must be"):
        LibsvmBlocks(io.BytesIO(b""), 0)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Any, Any, bool]:
    width = draw(st.sampled_from([32, 64]))
    dtype = np.float32 if width == 32 else np.float64
    columns = draw(st.sampled_from([1, 5, 2**31 - 1, 2**40]))
    values = st.floats(allow_nan=False, allow_infinity=False, width=width)
    rows = draw(
        st.lists(st.dictionaries(st.integers(0, columns - 1), values, max_size=6), min_size=1,
                 max_size=6)
    )  # fmt: skip
    labels = draw(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-1.0, 1.0]),
            min_size=len(rows),
            max_size=len(rows),
        )
    )
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
    told = {"n_features": X.shape[1], "zero_based": zero_based, "dtype": X.dtype}
    assert_same(X, y, *load(text, **told))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        save_libsvm(path, X, y, zero_based=zero_based)
        assert path.read_bytes() == text
        assert_same(X, y, *load_libsvm(path, **told))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_float32_takes_no_more_digits_than_it_needs(value: float) -> None:
    file = io.BytesIO()
    save_libsvm(file, sp.csr_matrix(([np.float32(value)], ([0], [0]))), [1])
    written = file.getvalue().split(b":")[1].strip().decode()
    digits = re.sub(r"e.*|\D", "", written).strip("0")
    assert len(digits) <= len(re.sub(r"e.*|\D", "", f"{np.float32(value):.8e}").strip("0"))
    assert len(digits) <= 9


def test_how_numbers_are_written(tmp_path: Path) -> None:
    X = sp.csr_matrix(([0.1, 0.0, -0.0, 3.0, 1e300], [0, 1, 2, 3, 4], [0, 2, 5]), shape=(2, 5))
    path = tmp_path / "text"
    save_libsvm(path, X, np.array([1.0, -2.5]))
    assert path.read_text() == "1 1:0.1 2:0\n-2.5 3:-0 4:3 5:1e+300\n"
    save_libsvm(path, X[:1].astype(np.float32), [True], zero_based=True)
    assert path.read_text() == "1 0:0.1 1:0\n"
    save_libsvm(path, np.array([[1, 0], [0, 2]]), [0, 7])
    assert path.read_text() == "0 1:1\n7 2:2\n"


def test_unsorted_rows_are_written_in_order_and_left_alone() -> None:
    X = sp.csr_matrix(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    file = io.BytesIO()
    save_libsvm(file, X, [1])
    assert file.getvalue() == b"1 1:2 3:4\n"
    assert X.indices.tolist() == [2, 0, 2]


def test_many_rows_and_a_long_one(tmp_path: Path) -> None:
    wide = sp.csr_matrix(np.ones((1, 150_000)))
    X = sp.vstack([wide, sp.csr_matrix((100_000, 150_000)), wide], format="csr")
    path = tmp_path / "text"
    save_libsvm(path, X, np.arange(100_002))
    assert_same(X, np.arange(100_002), *load_libsvm(path))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan]], [1], "X contains NaN or infinity"),
        ([[1.0]], [np.inf], "y contains NaN or infinity"),
        ([[1.0]], [1, 2], "one label for each of 1 rows"),
        ([[1j]], [1], "X must hold real numbers"),
        ([["a"]], [1], "X must hold real numbers"),
        ([[2**53 + 1]], [1], "X has numbers of type int64 that are not float64"),
        ([[1.0]], [2**63 - 1], "y has numbers of type int64 that are not float64"),
        ([1.0], [1], "two dimensions"),
        (np.empty((0, 3)), [], "no rows"),
    ],
)
def test_what_cannot_be_written(X: Any, y: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("as it was")
    for matrix in (X, sp.csr_matrix(X)) if "real" not in message and "two" not in message else (X,):
        with pytest.raises(ValueError, match=message):
            save_libsvm(path, matrix, y)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    path.write_text("as it was")

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save_libsvm(path, [[1.0]], [1])
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "text", tmp_path / "link"
    path.touch()
    path.chmod(0o640)
    link.symlink_to(path)
    save_libsvm(link, [[1.0]], [1])
    assert link.is_symlink()
    assert path.read_text() == "1 1:1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "text"
    with pytest.raises(OSError, match=f"could not write {path}: the folder .* does not exist"):
        save_libsvm(path, [[1.0]], [1])


def test_a_folder_is_not_written_to(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=f"could not write {tmp_path}: Is a directory"):
        save_libsvm(tmp_path, [[1.0]], [1])


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


def test_writing_to_a_device() -> None:
    save_libsvm(os.devnull, [[1.0]], [1])
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_writing_to_a_text_file_is_refused() -> None:
    with pytest.raises(TypeError):
        save_libsvm(io.StringIO(), [[1.0]], [1])
