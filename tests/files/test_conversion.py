"""Converting moves rows and changes nothing; whatever goes wrong, nothing is left behind."""

import gzip
import os
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from certsvm.files import LibsvmError, load_libsvm, save_libsvm
from certsvm.files.batch import Batch
from certsvm.files.block_file import BlockFile
from certsvm.files.conversion import convert, in_runs
from certsvm.files.memory import left_of, parse_size
from certsvm.files.tables import TableError
from tests.platforms import posix


def as_tuples(X: Any, y: Any, weights: Any = None) -> list[tuple[Any, ...]]:
    found = []
    for k in range(len(y)):
        if sp.issparse(X):
            part = slice(X.indptr[k], X.indptr[k + 1])
            row: Any = tuple(X.indices[part].tolist()), X.data[part].tobytes()
        else:
            row = X[k].tobytes()
        found.append((row, y[k].item(), None if weights is None else weights[k].tobytes()))
    return found


def contents(path: Path) -> list[tuple[Any, ...]]:
    return [row for block in BlockFile(path)() for row in as_tuples(*block)]


def matrix(n: int, seed: int, d: int = 7) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.4, format="csr", random_state=rng)
    X.data[::5] = 0.0
    return X, rng.integers(-2, 3, n).astype(np.float64)


def libsvm(folder: Path, X: Any, y: Any, *, zero_based: bool = False) -> Path:
    path = folder / "rows.txt"
    save_libsvm(path, X, y, zero_based=zero_based)
    return path


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    ("n", "zero_based", "dtype", "block_bytes"),
    [(1, True, np.float64, None), (47, False, np.float64, 1), (60, True, np.float32, 300)],
)
def test_rows_are_those_of_the_text(
    tmp_path: Path, n: int, shuffle: bool, zero_based: bool, dtype: Any, block_bytes: int | None
) -> None:
    folder, seed = tmp_path, n
    path = libsvm(folder, *matrix(n, seed), zero_based=zero_based)
    target = folder / "rows.arrow"
    summary, _ = convert(
        path, target, shuffle=shuffle, zero_based=zero_based, dtype=dtype, n_features=7,
        block_bytes=block_bytes, seed=seed,
    )  # fmt: skip
    X, y = load_libsvm(path, zero_based=zero_based, dtype=dtype, n_features=7)
    expected, found = as_tuples(X, y), contents(target)
    assert Counter(found) == Counter(expected)
    if not shuffle:
        assert found == expected
    assert (summary.n_rows, summary.n_columns, summary.n_values) == (n, 7, X.nnz)
    assert BlockFile(target).summary == summary
    assert summary.shuffled == shuffle
    assert sorted(os.listdir(folder)) == ["rows.arrow", "rows.txt"]
    if block_bytes == 1:
        assert BlockFile(target).n_blocks == n


def test_seeds_reproduce_bit_by_bit(tmp_path: Path) -> None:
    path = libsvm(tmp_path, *matrix(500, 0))
    made = []
    for seed in (0, 0, 1):
        convert(path, tmp_path / "rows.arrow", seed=seed)
        made.append((tmp_path / "rows.arrow").read_bytes())
    assert made[0] == made[1] != made[2]
    assert contents(tmp_path / "rows.arrow") != as_tuples(*load_libsvm(path))


@posix
def test_a_compressed_pipe_by_its_path(tmp_path: Path) -> None:
    X, y = matrix(3000, 0)
    text = gzip.compress(libsvm(tmp_path, X, y).read_bytes())
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(text)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        summary, _ = convert(f"/dev/fd/{reading}", tmp_path / "rows.arrow", shuffle=False)
    finally:
        os.close(reading)
        thread.join()
    assert summary.n_rows == 3000
    assert contents(tmp_path / "rows.arrow") == as_tuples(X, y)


def test_from_zero_or_one(tmp_path: Path) -> None:
    """Whether indices count from zero may be known at the last row only."""
    path = tmp_path / "rows.txt"
    path.write_text("1 2:1\n" * 50 + "-1 0:3\n")
    summary, notes = convert(path, tmp_path / "rows.arrow", shuffle=False, block_bytes=100)
    assert summary.n_columns == 3
    assert "indices count from zero" in notes
    rows = contents(tmp_path / "rows.arrow")
    assert rows[0][0][0] == (2,)
    assert rows[-1][0][0] == (0,)
    path.write_text("1 2:1\n-1 3:3\n")
    assert convert(path, tmp_path / "rows.arrow")[0].n_columns == 3
    assert convert(path, tmp_path / "rows.arrow", zero_based=True)[0].n_columns == 4


@pytest.mark.parametrize(("form", "dtype"), [("csv.gz", np.float64), ("parquet", np.float32)])
def test_tables(form: str, dtype: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((400, 3)), rng.random(400)
    y = np.array(["ham", "spam", "egg"])[rng.integers(0, 3, 400)]
    path = tmp_path / f"rows.{form}"
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(w=w, kind=y)
    (frame.to_parquet if form == "parquet" else frame.to_csv)(path, index=False)
    target = tmp_path / "rows.arrow"
    summary, notes = convert(path, target, label="kind", weight="w", dtype=dtype)
    assert summary.feature_names == ["x0", "x1", "x2"]
    assert notes == ["labels are in column 'kind'"]
    assert Counter(contents(target)) == Counter(as_tuples(X.astype(dtype), y, w))
    convert(path, target, label="kind", weight="w", dtype=dtype, shuffle=False)
    assert contents(target) == as_tuples(X.astype(dtype), y, w)


BAD = [
    ("rows.txt", "1 1:2\n" * 30 + "1 x\n", LibsvmError),
    ("rows.txt", "".join(f"{label} 1:1\n" for label in range(30)), ValueError),
    ("rows.csv", "a,label\n" + "1,1\n" * 30 + "1,2,3\n", TableError),
    ("rows.csv", "a,label\n1,1\n,1\n", TableError),
]


@pytest.mark.parametrize(("name", "text", "kind"), BAD)
def test_errors_leave_what_was_there(name: str, text: str, kind: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    target = tmp_path / "rows.arrow"
    target.write_bytes(b"old")
    with pytest.raises(kind):
        convert(tmp_path / name, target)
    assert target.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == sorted([name, "rows.arrow"])


@pytest.mark.parametrize("what", ["read", "written"])
def test_an_interrupt_leaves_nothing(what: str, tmp_path: Path) -> None:
    path = libsvm(tmp_path, *matrix(50, 0))

    def report(stage: str, rows: int) -> None:
        if stage == what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(path, tmp_path / "rows.arrow", report=report)
    assert os.listdir(tmp_path) == ["rows.txt"]


SENSELESS: list[Any] = [
    ("rows.txt", {"label": "y"}, "unexpected keyword argument 'label'"),
    ("rows.csv", {"zero_based": True}, "unexpected keyword argument 'zero_based'"),
    ("rows.txt", {"memory": 1000}, "memory must be at least"),
    ("rows.csv", {"dtype": np.int32}, "dtype must be float32 or float64"),
]


@pytest.mark.parametrize(("name", "settings", "message"), SENSELESS)
def test_senseless_settings(name: str, settings: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a,label\n1.5,1\n" if name.endswith("csv") else "1 1:2\n-1 2:1\n")
    with pytest.raises((TypeError, ValueError), match=message):
        convert(tmp_path / name, tmp_path / "rows.arrow", **settings)
    assert os.listdir(tmp_path) == [name]


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    """Rows, some of them stored zeros, cut anywhere; sparse ones as wide as they need to be."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 60))
    sparse, weighted = draw(st.booleans()), draw(st.booleans())
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    X = rng.choice([0.0, -0.0, 0.1, 1.5, -7.25], (n, 5)).astype(dtype)
    y = rng.choice(["a", "bb", "ccc"], n) if draw(st.booleans()) else rng.integers(-3, 3, n)
    weights = rng.random(n) if weighted else None
    cuts = sorted({0, n, *draw(st.lists(st.integers(0, n), max_size=5))})
    result = []
    for a, b in pairwise(cuts):
        part: Any = X[a:b]
        if sparse:
            part = sp.csr_matrix(part)
            width = int(part.indices.max(initial=-1)) + 1
            part = sp.csr_matrix((part.data, part.indices, part.indptr), shape=(b - a, width))
        result.append(Batch(part, y[a:b], None if weights is None else weights[a:b]))
    return result


@settings(max_examples=25)
@given(batches(), st.integers(150, 5000), st.sampled_from([0, 1000, 10**15]), st.integers(0, 9))
def test_every_row_comes_out_once(
    tmp_path_factory: pytest.TempPathFactory, given: list[Batch], most: int, expected: int,
    seed: int,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("buckets")
    before = [row for batch in given for row in as_tuples(*batch)]
    out = []
    for rng in (*(np.random.default_rng(seed) for _ in range(2)), None):
        runs = list(in_runs(given, folder, most, expected, rng))
        out.append([row for run in runs for row in as_tuples(*run)])
        assert all(run.X.dtype == given[0].X.dtype for run in runs)
        # A row cannot be split.
        assert rng is None or all(run.nbytes <= most for run in runs)
        for path in folder.iterdir():
            path.unlink()
    assert Counter(out[0]) == Counter(before)
    assert out[0] == out[1]
    assert out[2] == before


@pytest.mark.parametrize("most", [150, 10**6])
def test_all_orders_are_equally_likely(most: int, tmp_path: Path) -> None:
    """Chi-square over the 24 orders of four rows; the seed is fixed, so is the verdict."""
    rng, trials = np.random.default_rng(1), 480
    rows = Batch(np.ones((4, 8)), np.arange(4))
    halves = [rows.take(np.arange(2)), rows.take(np.arange(2, 4))]
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(trials):
        runs = in_runs(halves, tmp_path, most, rows.nbytes, rng)
        counts[tuple(label for run in runs for label in run.y.tolist())] += 1
    assert len(counts) == 24
    # 23 degrees of freedom: 49.7 has a probability of 0.1 %.
    assert sum((count - trials / 24) ** 2 / (trials / 24) for count in counts.values()) < 49.7


UNITS = {"": 1, "k": 10**3, "M": 10**6, "g": 10**9, "T": 10**12,
         "Ki": 2**10, "mi": 2**20, "GI": 2**30, "ti": 2**40}  # fmt: skip


@given(
    st.integers(0, 9999), st.sampled_from(sorted(UNITS)), st.sampled_from(["", "b", "B"]),
    st.sampled_from(["", " ", "  "]),
)  # fmt: skip
def test_sizes(number: int, unit: str, byte: str, blank: str) -> None:
    assert parse_size(f"{blank}{number}{blank}{unit}{byte}{blank}") == number * UNITS[unit]
    assert parse_size(f"{number}.5{unit}{byte}") == int((number + 0.5) * UNITS[unit])


@pytest.mark.parametrize(
    "text",
    ["", "M", "-1M", "1e9", "1,5G", "nan", "inf", "1 M B", "5x", "5i", "5ib", "1.M", ".5M", "0x10",
     "9" * 400],
)  # fmt: skip
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_too_little_says_how_much_is_needed() -> None:
    with pytest.raises(ValueError, match=r"1 MB of memory are not enough.* at least \d+ MB") as e:
        left_of(1_000_000)
    needed = int(str(e.value).split("at least ")[1].split(" MB")[0])
    assert left_of((needed + 20) * 10**6) > 0
