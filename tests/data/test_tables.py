"""Tables become rows, number by number; what is no number is an error with its place."""

from __future__ import annotations

import gzip
import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.data.tables import Table, TableError


def csv(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def parquet(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "t.parquet", **options)
    return folder / "t.parquet"


def everything(table: Table, block_bytes: int = 1 << 20) -> tuple[Any, Any, Any]:
    blocks = list(table.blocks(block_bytes))
    weights = [b.weights for b in blocks if b.weights is not None]
    return (
        np.concatenate([b.X for b in blocks]),
        np.concatenate([b.y for b in blocks]),
        np.concatenate(weights) if weights else None,
    )


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(finite, finite, st.integers(-9, 9)), min_size=1, max_size=20))
def test_numbers_are_exact(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, float, int]]
) -> None:
    folder = tmp_path_factory.mktemp("t")
    text = "a,b,label\n" + "".join(f"{a!r},{b!r},{y}\n" for a, b, y in rows)
    columns = {"a": [r[0] for r in rows], "b": [r[1] for r in rows], "label": [r[2] for r in rows]}
    for path in (csv(folder, text), csv(folder, text, "t.csv.gz"), parquet(folder, columns)):
        X, y, weights = everything(Table(path))
        assert X.tobytes() == np.array([r[:2] for r in rows]).tobytes()
        assert y.tolist() == [r[2] for r in rows]
        assert weights is None


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_threads_of_arrow_need_no_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A thread that releases a file of Python's aborts a process that ends just then."""
    path = csv(tmp_path, "a,label\n1,0\n2,1\n", name)
    if name == "t.parquet":
        path = parquet(tmp_path, {"a": [1.0, 2.0], "label": [0, 1]})
    read: list[int] = []

    class Watched(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            read.append(threading.get_ident())
            return super().read(size) or b""

    monkeypatch.setattr(Path, "open", lambda self, mode: Watched(self, mode))
    everything(Table(path))
    assert read == [threading.get_ident()], "more than the first bytes were read through Python"


def test_columns_keep_their_order_and_roles(tmp_path: Path) -> None:
    path = csv(tmp_path, "b,label,w,a\n1,x,0.5,2\n3,y,1.5,4\n")
    table = Table(path, weight="w")
    X, y, weights = everything(table)
    assert table.feature_names == ["b", "a"]
    assert X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert y.tolist() == ["x", "y"]
    assert weights.tolist() == [0.5, 1.5]
    assert Table(csv(tmp_path, "b,label\n1,2\n"), label="b").feature_names == ["label"]


def test_the_last_column_has_the_labels_unless_one_is_called_so(tmp_path: Path) -> None:
    assert Table(csv(tmp_path, "a,b\n1,2\n")).label == "b"
    assert Table(csv(tmp_path, "label,b\n1,2\n")).label == "label"


def test_many_small_blocks(tmp_path: Path) -> None:
    n = 40_000
    text = "a,label\n" + "".join(f"{i},{i % 3}\n" for i in range(n))
    for path in (
        csv(tmp_path, text), csv(tmp_path, text, "t.csv.gz"),
        parquet(tmp_path, {"a": np.arange(n), "label": np.arange(n) % 3}),
    ):  # fmt: skip
        assert len(list(Table(path).blocks(1000))) > 3
        X, y, _ = everything(Table(path), 1000)
        np.testing.assert_array_equal(X[:, 0], np.arange(n))
        np.testing.assert_array_equal(y, np.arange(n) % 3)


def test_whole_numbers_at_first_and_fractions_later(tmp_path: Path) -> None:
    """The first block of text must not decide that a column is whole numbers."""
    n = 300_000
    text = "a,w,label\n" + "1,1,0\n" * n + "2.5,0.5,1\n"
    X, y, weights = everything(Table(csv(tmp_path, text), weight="w"), 1 << 17)
    assert (X[-1, 0], weights[-1], y[-1]) == (2.5, 0.5, 1)
    assert len(y) == n + 1


def test_labels_of_another_kind_later_are_an_error_not_other_labels(tmp_path: Path) -> None:
    text = "a,label\n" + "1,1\n" * 300_000 + "1,1.5\n"
    with pytest.raises(TableError, match=r"label|column #1"):
        everything(Table(csv(tmp_path, text)), 1 << 17)


@pytest.mark.parametrize(
    "kind", ["int8", "uint16", "int64", "float", "double", "bool", "halffloat"]
)
def test_parquet_types(kind: str, tmp_path: Path) -> None:
    values = np.array([1, 0, 1], dtype=np.float16)
    column = (
        pa.array(values).cast(pa.float32()).cast(kind) if kind != "halffloat" else pa.array(values)
    )
    X, _, _ = everything(Table(parquet(tmp_path, {"a": column, "label": [1, 2, 1]})))
    assert X.tolist() == [[1.0], [0.0], [1.0]]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a,label\n1,1\n,0\n", {}, "row 2, column 'a' is missing"),
        ("a,label\n1,1\nNA,0\n", {}, "row 2, column 'a' is missing"),
        ("a,label\n1,1\n2,NA\n", {}, "row 2, column 'label' is missing"),
        ("a,w,label\n1,1,1\n2,,1\n", {"weight": "w"}, "row 2, column 'w' is missing"),
        ("a,label\n1,1\n2,1\ninf,0\n", {}, "row 3, column 'a' is not finite"),
        ("a,label\n1e999,1\n", {}, "column 'a' is not finite"),
        ("a,label\n1,1.5\n2,inf\n", {}, "row 2, column 'label' is not finite"),
        ("a,label\n1,1\nnan,0\n", {}, "row 2, column 'a' is (missing|not finite)"),
        ("a,b,label\n1,red,1\n", {}, "column 'b' holds string, not numbers"),
        ("a,b,label\n1,2020-01-01,1\n", {}, "column 'b' holds date.*, not numbers"),
        ("a,label\n1,1\n", {"label": "y"}, "no column 'y' for the labels; it has a, label"),
        ("a,label\n1,1\n", {"weight": "w"}, "no column 'w' for the weights"),
        ("label\n1\n", {}, "no columns besides 'label'"),
        ("a,a,label\n1,2,1\n", {}, "two columns of the same name"),
        ("a,label\n1,1\n2,0,4\n", {}, "Expected 2 columns, got 3"),
        ("", {}, "cannot be read"),
        ("a,label\n", {}, "has no rows"),
        ("a,label\n1,1\n", {"label": "label", "weight": "label"}, "label"),
        ("a,w,label\n1,-1,1\n", {"weight": "w"}, "row 1, column 'w' is negative"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_csv_file(
    text: str, settings: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=message):
        everything(Table(csv(tmp_path, text), **settings))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, None], "label": [1, 2]}, "row 2, column 'a' is missing"),
        ({"a": [1.0, 2.0], "label": [1, None]}, "row 2, column 'label' is missing"),
        ({"a": [1.0, np.nan], "label": [1, 2]}, "row 2, column 'a' is not finite"),
        ({"a": [1.0, 2.0], "label": [1.0, np.nan]}, "row 2, column 'label' is not finite"),
        ({"a": [[1], [2]], "label": [1, 2]}, "column 'a' holds list"),
        ({"a": ["x", "y"], "label": [1, 2]}, "column 'a' holds string"),
        ({"a": pa.array([], pa.float64()), "label": pa.array([], pa.int64())}, "has no rows"),
        ({"a": [1.0], "label": pa.array([2**63], pa.uint64())}, "label"),
    ],
)
def test_what_is_wrong_with_a_parquet_file(columns: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        everything(Table(parquet(tmp_path, columns)))


def test_a_parquet_file_that_is_cut(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"a": np.arange(1000.0), "label": np.arange(1000)})
    whole = path.read_bytes()
    for length in range(4, len(whole), 501):
        path.write_bytes(whole[:length])
        with pytest.raises((TableError, OSError)):
            everything(Table(path))


@pytest.mark.parametrize("cut", [-1, -9, -200])
def test_a_compressed_csv_file_that_is_cut(cut: int, tmp_path: Path) -> None:
    text = "a,label\n" + "".join(f"{i},{i % 7}\n" for i in range(5000))
    path = csv(tmp_path, text, "t.csv.gz")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises((TableError, OSError)):
        everything(Table(path))


def test_several_gzip_streams_are_one_text(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,label\n1,1\n", "t.csv.gz")
    path.write_bytes(path.read_bytes() + gzip.compress(b"2,0\n"))
    assert everything(Table(path))[0].tolist() == [[1.0], [2.0]]


def test_truth_values_in_a_csv_file(tmp_path: Path) -> None:
    X, _, _ = everything(Table(csv(tmp_path, "a,label\ntrue,1\nfalse,0\n")))
    assert X.tolist() == [[1.0], [0.0]]


def test_rows_longer_than_a_megabyte(tmp_path: Path) -> None:
    n = 120_000
    text = ",".join(f"c{i:09d}" for i in range(n)) + ",label\n" + "0.5," * n + "1\n"
    X, y, _ = everything(Table(csv(tmp_path, text)), 1 << 24)
    assert X.shape == (1, n)
    assert y.tolist() == [1]


@pytest.mark.parametrize("first", ["1,2,0", "5.1,3,setosa", "-1,b,c", "1,1,1", "1e3,2,x"])
def test_a_first_line_of_data_is_not_taken_as_names(first: str, tmp_path: Path) -> None:
    path = csv(tmp_path, f"{first}\n3,4,1\n")
    with pytest.raises(TableError, match=r"looks like data.*--no-header.*--header"):
        Table(path)


@pytest.mark.parametrize("first", ["a,b,c", "0,1,label", "x1,x2,2_000", "nan,b,c", "a,,c"])
def test_names_may_have_numbers_in_them(first: str, tmp_path: Path) -> None:
    table = Table(csv(tmp_path, f"{first}\n3,4,1\n"))
    assert [*table.feature_names, table.label] == first.split(",")


def test_without_a_line_of_names_every_line_is_a_row(tmp_path: Path) -> None:
    path = csv(tmp_path, "1,2,0\n3,4,1\n")
    table = Table(path, header=False)
    X, y, _ = everything(table, 1)
    assert (table.feature_names, table.label) == (["f0", "f1"], "f2")
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(y, [0, 1])
    assert Table(path, header=False, label="f0").feature_names == ["f1", "f2"]
    named = Table(path, header=True)
    assert named.feature_names == ["1", "2"]
    assert everything(named)[1].tolist() == [1]


def test_a_parquet_file_has_no_line_of_names(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="Parquet"):
        Table(parquet(tmp_path, {"a": [1.0], "label": [1]}), header=False)
