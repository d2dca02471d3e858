"""Kernels on rows: sums and products, and where nothing that is compiled can be cached."""

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import certsvm
from certsvm.kernels import objective
from certsvm.kernels.jit import kernel
from certsvm.kernels.losses import HINGE
from certsvm.kernels.rows import CsrRows, RowArrays, Vector, dot


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_a_product_that_is_no_number_is_not_lost(bad: float) -> None:
    sums, masses = np.zeros((2, 1))
    args = np.array([2.0, bad]), np.ones(2), np.array([0, 2]), 0, 1, 0.0, np.ones(2), sums, masses
    objective.loss_sums(HINGE, *args)
    assert not math.isfinite(sums[0])
    assert masses[0] == 1.0


@kernel
def all_dots(rows: RowArrays, v: Vector, out: Vector) -> None:
    for k in range(out.size):
        out[k] = dot(rows, k, v)


def test_float32_is_accumulated_in_float64() -> None:
    # In float32 the sum of ones stops growing at 2^24.
    n = 2**24 + 8
    rows = CsrRows(
        np.ones(n, dtype=np.float32),
        np.arange(n, dtype=np.uint32),
        np.array([0, n], dtype=np.int64),
        0.0,
    )
    out = np.empty(1)
    all_dots(rows, np.ones(n), out)
    assert out[0] == n


@pytest.mark.parametrize("index_type", [np.uint32, np.uint64])
def test_positions_beyond_2_to_the_31(tmp_path, index_type) -> None:  # type: ignore[no-untyped-def]
    """Sparse files stand in for more values than fit into memory here."""
    start = 2**31 + 7
    values = np.memmap(tmp_path / "values", np.float32, "w+", shape=start + 3)
    indices = np.memmap(tmp_path / "indices", index_type, "w+", shape=start + 3)
    values[start:] = [1, 2, 3]
    indices[start:] = [0, 2, 1]
    indptr = np.array([start, start + 1, start + 3], dtype=np.int64)
    rows = CsrRows(np.asarray(values), np.asarray(indices), indptr, 0.0)
    out = np.empty(2)
    all_dots(rows, np.array([1.0, 10.0, 100.0]), out)
    assert out.tolist() == [1.0, 230.0]


def test_it_works_where_nothing_can_be_cached(tmp_path: Path) -> None:
    """A container without a home and with a read-only installation, say."""
    package = tmp_path / "certsvm"
    shutil.copytree(
        Path(certsvm.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    # A file where the folder would go: not even root can make it then.
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").touch()
    code = (
        "import numpy as np; from certsvm.problem.rows import Rows;"
        "print(Rows(np.eye(2)).squared_norms)"
    )
    environment = os.environ | {
        "HOME": os.devnull,
        "XDG_CACHE_HOME": os.devnull,
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    del environment["NUMBA_CACHE_DIR"]
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[1. 1.]", done.stderr
