"""Whole files as matrices."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from certsvm.files import LibsvmBlocks, LibsvmError, load_libsvm, save_libsvm
from certsvm.files.libsvm_parser import Parser


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
    read: list[Any] = []
    with pytest.raises(LibsvmError, match=r"line 4, column 1: this line is longer than"):
        read.extend(LibsvmBlocks(io.BytesIO(text), block_bytes, longest_line=4000))
    assert [label for _, y, _ in read for label in y] == [1.0, -1.0]


@pytest.mark.parametrize("positioned", [True, False])
@pytest.mark.parametrize("change", ["shorter", "longer", "denser"])
def test_a_file_that_changes_between_counting_and_parsing(
    change: str, positioned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not positioned:
        # As on Windows.
        monkeypatch.delattr(os, "preadv", raising=False)
    path = tmp_path / "text"
    path.write_bytes(b"1 1:1000\n" * 1000)
    assert load_libsvm(path)[0].shape == (1000, 1)
    parse = Parser._parse

    def change_then_parse(*arguments: Any) -> Any:
        if change == "shorter":
            os.truncate(path, 4000)
        elif change == "denser":
            with open(path, "r+b") as file:
                file.write(b"1 1:1 2:1\n1\n")
        else:
            with open(path, "ab") as file:
                file.write(b"1 1:1\n")
        return parse(*arguments)

    monkeypatch.setattr(Parser, "_parse", change_then_parse)
    with pytest.raises(LibsvmError, match="changed while it was read"):
        load_libsvm(path)


def test_what_messages_call_the_source(tmp_path: Path) -> None:
    with pytest.raises(LibsvmError, match=r"^<input>, line 1"):
        list(LibsvmBlocks(io.BytesIO(b"1 1:x\n")))
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"1 1:x\n"))
    for source in (path, str(path), os.fsencode(path)):
        with pytest.raises(LibsvmError) as caught:
            load_libsvm(source)
        assert caught.value.file == str(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": np.int32}, "dtype must be float32 or float64"),
        ({"n_features": -1}, "n_features must be"),
        ({"n_features": 2**63}, "n_features must be"),
        ({"n_jobs": -1}, "n_jobs must be"),
        ({"block_bytes": 0}, "block_bytes must be"),
    ],
)
def test_what_cannot_be_asked_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LibsvmBlocks(io.BytesIO(b"1 1:1\n"), **options)
