"""What is written reads back to the same bits."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files import load_libsvm, save_libsvm
from tests.files.libsvm.reading import load
from tests.files.libsvm.test_reader import assert_same


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
