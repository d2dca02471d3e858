"""Whole files as matrices."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from certsvm.files import (
    LibsvmError,
    load_libsvm,
    save_libsvm,
)
from tests.files.libsvm.reading import load


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
    def types(text: bytes, **options: Any) -> tuple[Any, ...]:
        path = tmp_path / "text"
        path.write_bytes(text)
        X, _ = load_libsvm(path if seekable else io.BytesIO(text), **options)
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
