import numpy as np
import pytest

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import CsrRows, RowArrays, Vector, dot


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
