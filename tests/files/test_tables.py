"""Tables become rows, number by number; what is no number is an error with its place."""

from __future__ import annotations

import gzip
import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.tables import Table, TableError
from certsvm.matrices import refuse_broken


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
    # The first bytes, which tell the format and the compression.
    assert read in ([threading.get_ident()], 2 * [threading.get_ident()])


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
        ("", {}, "has no rows"),
        ("\n\n", {}, "has no rows"),
        ("a;label\n1,5;0\n2,5;1\n", {}, "decimal points, not commas"),
        ("a,label\n", {}, "has no rows"),
        ("a,label\n1,1\n", {"label": "label", "weight": "label"}, "one role only"),
        ("a,label\n1,1\n", {"label": "a", "ignore": ["a"]}, "one role only"),
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


def test_truth_values_in_a_csv_file(tmp_path: Path) -> None:
    X, _, _ = everything(Table(csv(tmp_path, "a,label\ntrue,1\nfalse,0\n")))
    assert X.tolist() == [[1.0], [0.0]]


def test_rows_longer_than_a_megabyte(tmp_path: Path) -> None:
    n = 600
    text = ",".join(f"c{i:02000d}" for i in range(n)) + ",label\n" + f"{0.5:.2000f}," * n + "1\n"
    X, y, _ = everything(Table(csv(tmp_path, text)), 1 << 24)
    assert X.tolist() == [[0.5] * n]
    assert y.tolist() == [1]


def test_rows_in_single_precision(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,eyes,label\n0.1,x,1\n1e39,y,0\n")
    rows = Table(path, categorical=True).blocks(dtype=np.float32)
    with pytest.raises(TableError, match=r"row 2, column 'a' is .* too large for float32"):
        list(rows)
    for options in ({"categorical": True}, {"ignore": ["eyes"]}):
        (batch,) = Table(csv(tmp_path, "a,eyes,label\n0.1,x,1\n"), **options).blocks(
            dtype=np.float32
        )
        assert batch.X.dtype == np.float32
        assert batch.X[0, 0] == np.float32(0.1)


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


def from_pandas(folder: Path, frame: Any, **options: Any) -> Path:
    frame.to_parquet(folder / "t.parquet", **options)
    return folder / "t.parquet"


def frame(n: int = 30) -> Any:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.standard_normal(n), "b": np.arange(n), "kind": np.arange(n) % 2})


@pytest.mark.parametrize("name", [None, "id", "kind of"])
def test_the_index_of_pandas_is_neither_feature_nor_label(name: str | None, tmp_path: Path) -> None:
    data = frame()
    data.index = pd.Index(np.arange(30)[::-1] + 100, name=name)
    path = from_pandas(tmp_path, data)
    column = name or "__index_level_0__"
    assert column in pq.read_schema(path).names
    table = Table(path)
    assert (table.feature_names, table.label) == (["a", "b"], "kind")
    assert f"column {column!r} is the index of a frame, and not used" in table.notes
    X, y, _ = everything(table)
    np.testing.assert_array_equal(X, data[["a", "b"]])
    np.testing.assert_array_equal(y, data["kind"])
    # Whoever names it, gets it.
    named = Table(path, label=column)
    assert (named.feature_names, named.label) == (["a", "b", "kind"], column)
    assert Table(path, features=[column, "a"]).feature_names == [column, "a"]


def test_the_index_that_pandas_writes_to_csv(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "target": ["x", "y"]})
    frame.to_csv(tmp_path / "t.csv")
    table = Table(tmp_path / "t.csv")
    assert table.feature_names == ["a"]
    assert table.label == "target"
    assert "column '' is the index of a frame, and not used" in table.notes
    assert any("in column 'target', the last one (--label" in note for note in table.notes)


def test_labels_in_another_column_than_the_last(tmp_path: Path) -> None:
    path = csv(tmp_path, "target,a,b\nx,1,2\ny,2,1\n")
    with pytest.raises(TableError, match=r"--label target .* taken from the last column, 'b'"):
        Table(path)
    assert Table(path, label="target").feature_names == ["a", "b"]
    named = csv(tmp_path, "kind,a,label\nx,1,2\ny,2,1\n", "named.csv")
    with pytest.raises(TableError, match="'kind' holds string") as refused:
        Table(named)
    assert "last column" not in str(refused.value)


def test_a_name_that_is_almost_right(tmp_path: Path) -> None:
    path = csv(tmp_path, ",target,a\n0,x,1\n1,y,2\n")
    with pytest.raises(TableError, match=r"it has target, a\. Did you mean 'target'\?"):
        Table(path, label="traget")


def test_an_index_that_has_no_column(tmp_path: Path) -> None:
    for path in (
        from_pandas(tmp_path, frame()),
        from_pandas(tmp_path, frame(), index=False),
        from_pandas(tmp_path, frame().set_index(["b"], append=True)),
    ):
        assert Table(path).feature_names[0] == "a"
        assert Table(path).label == "kind"
    assert Table(path).feature_names == ["a"]


def test_an_index_called_label(tmp_path: Path) -> None:
    path = from_pandas(tmp_path, frame().rename(columns={"kind": "label"}).set_index("label"))
    with pytest.raises(TableError, match=r"'label' is the index of a frame.*--label"):
        Table(path)
    assert Table(path, label="label").feature_names == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [b"", b"[", b"[]", b"{}", b'{"index_columns": "label"}',
     b'{"index_columns": [1, null, {}, "x"]}', b"[" * 100_000],
)  # fmt: skip
def test_metadata_of_pandas_that_make_no_sense(text: bytes, tmp_path: Path) -> None:
    table = pa.table({"a": [1.0], "label": [1]}).replace_schema_metadata({b"pandas": text})
    pq.write_table(table, tmp_path / "t.parquet")
    assert Table(tmp_path / "t.parquet").feature_names == ["a"]


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_the_separator_is_found_in_the_first_line(separator: str, tmp_path: Path) -> None:
    lines = [["a", '"b,;c"', "label"], ["1.5", "2", "x"], ["3", "4", "y"]]
    text = "".join(separator.join(line) + "\n" for line in lines)
    for name in ("t.csv", "t.csv.gz", "t.tsv"):
        table = Table(csv(tmp_path, text, name))
        assert table.feature_names == ["a", "b,;c"]
        X, y, _ = everything(table)
        assert (X.tolist(), y.tolist()) == ([[1.5, 2.0], [3.0, 4.0]], ["x", "y"])
    bare = csv(tmp_path, separator.join(["1", "2", "0"]) + "\n")
    assert Table(bare, header=False).feature_names == ["f0", "f1"]


def test_a_separator_that_is_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,x|b,y|label\n1|2|0\n")
    assert Table(path, separator="|").feature_names == ["a,x", "b,y"]
    for wrong in ("", "||", "\n", '"'):
        with pytest.raises(TableError, match="one character"):
            Table(path, separator=wrong)
    with pytest.raises(TableError, match="has no separator"):
        Table(parquet(tmp_path, {"a": [1.0], "label": [1]}), separator=";")


COLOURS = ["red", "blue", "red", "", "blue"]


def coloured(folder: Path, kind: str) -> Path:
    if kind == "csv":
        rows = [f"{c},{i},{i / 2},{i % 2}" for i, c in enumerate(COLOURS)]
        return csv(folder, "\n".join(["colour,a,b,label", *rows]) + "\n")
    colours: Any = pa.array(COLOURS)
    if kind == "dictionary":
        colours = colours.dictionary_encode()
    if kind == "large":
        colours = colours.cast(pa.large_string())
    n = np.arange(5)
    return parquet(folder, {"colour": colours, "a": n, "b": n / 2, "label": n % 2})


@pytest.mark.parametrize("kind", ["csv", "string", "large", "dictionary"])
def test_one_hot_columns(kind: str, tmp_path: Path) -> None:
    path = coloured(tmp_path, kind)
    with pytest.raises(TableError, match=r"'colour' holds .*string.*--categorical"):
        Table(path)
    table = Table(path, categorical=True)
    assert table.feature_names == ["colour=", "colour=blue", "colour=red", "a", "b"]
    assert table.origin == {"one_hot": {"colour": [0, 3]}}
    batches = list(table.blocks(1 << 20))
    X = sp.vstack([batch.X for batch in batches]).toarray()
    expected = [[c == "", c == "blue", c == "red", i, i / 2] for i, c in enumerate(COLOURS)]
    np.testing.assert_array_equal(X, np.array(expected, dtype=float))
    for batch in batches:
        refuse_broken(batch.X)
        assert batch.X.data.all()


def test_values_that_were_not_seen_are_zeros_and_are_counted(tmp_path: Path) -> None:
    features = Table(coloured(tmp_path, "csv"), categorical=True).features
    # What looks like a number is a string where the model says so.
    for text in ("b,colour,a\n1,7,2\n1,red,2\n", "b,colour,a\n1,7,2\n1,8,2\n"):
        table = Table(csv(tmp_path, text), features=features)
        (batch,) = table.blocks(1 << 20)
        red = float("red" in text)
        np.testing.assert_array_equal(batch.X.toarray(), [[0, 0, 0, 2, 1], [0, 0, red, 2, 1]])
        assert table.unseen == {"colour": 2 - red}
        assert table.label is None


def test_strings_that_are_no_categories(tmp_path: Path) -> None:
    text = "name,label\n" + "".join(f"n{i},{i % 2}\n" for i in range(30))
    with pytest.raises(TableError, match="'name' has a value of its own in each row"):
        Table(csv(tmp_path, text), categorical=True)
    few = Table(csv(tmp_path, "name,label\nx,1\ny,0\n"), categorical=True)
    assert few.feature_names == ["name=x", "name=y"]
    path = parquet(
        tmp_path, {"s": [f"{i:0100d}" for i in range(60_000)] * 2, "label": [0, 1] * 60_000}
    )
    with pytest.raises(TableError, match="values and more"):
        Table(path, categorical=True)
    with pytest.raises(TableError, match="row 2, column 's' is missing"):
        Table(parquet(tmp_path, {"s": ["x", None], "label": [1, 0]}), categorical=True)
    with pytest.raises(TableError, match="two features would be called 's=x'"):
        Table(parquet(tmp_path, {"s": ["x"], "s=x": [1.0], "label": [1]}), categorical=True)


def test_a_number_of_features(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b,c\n1,2,3\n")
    assert Table(path, n_features=2).label == "c"
    assert Table(path, n_features=3).label is None
    for wrong in (1, 4, 122):
        with pytest.raises(TableError, match=f"2 columns of features .*, the model {wrong}"):
            Table(path, n_features=wrong)


def test_a_name_with_a_dot_and_columns_that_are_not_needed(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"a.b": [1.0], "a": [2.0], "when": [[1]], "label": [1]})
    X, _, _ = everything(Table(path, features=["a.b", "a"], label="label"))
    assert X.tolist() == [[1.0, 2.0]]
    path = csv(tmp_path, "x,a,label\n1,1,1\noops,2,0\n")
    assert everything(Table(path, features=["a"], label="label"))[0].tolist() == [[1.0], [2.0]]
