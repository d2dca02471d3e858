"""Tables become rows, number by number; what is no number is an error with its place."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from certsvm.files.columns import Features
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


@settings(max_examples=20)
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


def test_columns_keep_their_order_and_roles(tmp_path: Path) -> None:
    table = Table(csv(tmp_path, "b,label,w,a\n1,x,0.5,2\n3,y,1.5,4\n"), weight="w")
    X, y, weights = everything(table)
    assert table.feature_names == ["b", "a"]
    assert X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert y.tolist() == ["x", "y"]
    assert weights.tolist() == [0.5, 1.5]
    assert Table(csv(tmp_path, "b,label\n1,2\n"), label="b").feature_names == ["label"]
    assert Table(csv(tmp_path, "a,b\n1,2\n")).label == "b"
    assert everything(Table(csv(tmp_path, "a,b\ntrue,1\nfalse,2\n")))[0].tolist() == [[1], [0]]


def test_many_small_blocks(tmp_path: Path) -> None:
    n = 400_000
    text = "a,label\n" + "".join(f"{i},{i % 3}\n" for i in range(n))
    columns = {"a": range(n), "label": np.arange(n) % 3}
    for path in (csv(tmp_path, text), parquet(tmp_path, columns)):
        blocks = list(Table(path).blocks(10_000))
        assert len(blocks) > 3
        np.testing.assert_array_equal(np.concatenate([b.X[:, 0] for b in blocks]), np.arange(n))
        np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), np.arange(n) % 3)


def test_whole_numbers_at_first_and_fractions_later(tmp_path: Path) -> None:
    """The first block of text must not decide that a column is whole numbers."""
    n = 300_000
    text = "a,w,label\n" + "1,1,0\n" * n + "2.5,0.5,1\n"
    X, y, weights = everything(Table(csv(tmp_path, text), weight="w"), 1 << 17)
    assert (X[-1, 0], weights[-1], y[-1]) == (2.5, 0.5, 1)
    assert len(y) == n + 1


def test_parquet_types(tmp_path: Path) -> None:
    names = ["int8", "uint16", "int64", "float", "double", "bool"]
    columns: dict[str, Any] = {name: pa.array([1, 0, 1]).cast(name) for name in names}
    columns["half"] = pa.array(np.array([1, 0, 1], dtype=np.float16))
    X, _, _ = everything(Table(parquet(tmp_path, {**columns, "label": [1, 2, 1]})))
    np.testing.assert_array_equal(X, np.array([[1.0], [0.0], [1.0]]) * np.ones(7))


BAD_CSV: list[Any] = [
    ("a,label\n1,1\n,0\n", {}, "row 2, column 'a' is missing"),
    ("a,label\n1,1\n2,NA\n", {}, "row 2, column 'label' is missing"),
    ("a,w,label\n1,1,1\n2,,1\n", {"weight": "w"}, "row 2, column 'w' is missing"),
    ("a,label\n1,1\n2,1\ninf,0\n", {}, "row 3, column 'a' is not finite"),
    ("a,label\n1,1.5\n2,inf\n", {}, "row 2, column 'label' is not finite"),
    ("a,b,label\n1,red,1\n", {}, "column 'b' holds string, not numbers"),
    ("a,label\n1,1\n", {"label": "y"}, "no column 'y' for the labels; it has 'a', 'label'"),
    ("a,label\n1,1\n", {"weight": "w"}, "no column 'w' for the weights"),
    ("label\n1\n", {}, "no columns besides 'label'"),
    ("a,a,label\n1,2,1\n", {}, "two columns of the same name"),
    ("a,label\n1,1\n2,0,4\n", {}, "Expected 2 columns, got 3"),
    ("", {}, "has no rows"),
    ("a;label\n1,5;0\n2,5;1\n", {}, "decimal points, not commas"),
    ("a,label\n", {}, "has no rows"),
    ("a,label\n1,1\n", {"label": "a", "ignore": ["a"]}, "one role only"),
    ("a,w,label\n1,-1,1\n", {"weight": "w"}, "row 1, column 'w' is negative"),
    ("target,a,b\nx,1,2\ny,2,1\n", {}, "'target' holds string.*or name the labels"),
    (",target,a\n0,x,1\n", {"label": "traget"}, "'traget' .* it has '', 'target', 'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "message"), BAD_CSV)
def test_bad_csv_files(text: str, options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        everything(Table(csv(tmp_path, text), **options))


BAD_PARQUET: list[Any] = [
    ({"a": [1.0, None], "label": [1, 2]}, "row 2, column 'a' is missing"),
    ({"a": [1.0, 2.0], "label": [1.0, np.nan]}, "row 2, column 'label' is not finite"),
    ({"a": [[1], [2]], "label": [1, 2]}, "column 'a' holds list"),
    ({"a": ["x", "y"], "label": [1, 2]}, "column 'a' holds string"),
    ({"a": pa.array([], pa.float64()), "label": pa.array([], pa.int64())}, "has no rows"),
]


@pytest.mark.parametrize(("columns", "message"), BAD_PARQUET)
def test_bad_parquet_files(columns: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        everything(Table(parquet(tmp_path, columns)))


def test_files_that_are_cut(tmp_path: Path) -> None:
    text = "a,label\n" + "".join(f"{i},{i % 7}\n" for i in range(5000))
    columns = {"a": np.arange(1000.0), "label": np.arange(1000)}
    for path in (csv(tmp_path, text, "t.csv.gz"), parquet(tmp_path, columns)):
        whole = path.read_bytes()
        for length in (*range(20, len(whole), len(whole) // 9), len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(TableError):
                everything(Table(path))


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
        path = csv(tmp_path, "a,eyes,label\n0.1,x,1\n")
        (batch,) = Table(path, **options).blocks(dtype=np.float32)
        assert batch.X.dtype == np.float32
        assert batch.X[0, 0] == np.float32(0.1)


@pytest.mark.parametrize("first", ["1,2,0", "5.1,3,setosa", "1,1,1"])
def test_a_first_line_of_data_is_not_taken_as_names(first: str, tmp_path: Path) -> None:
    path = csv(tmp_path, f"{first}\n3,4,1\n")
    with pytest.raises(TableError, match=r"looks like data.*--no-header.*--header"):
        Table(path)


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


@pytest.mark.parametrize("name", [None, "id", "label"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_index_of_pandas_has_no_role(name: str | None, form: str, tmp_path: Path) -> None:
    path, n = tmp_path / f"t.{form}", np.arange(30)
    data = pd.DataFrame({"a": n / 7, "b": n, "kind": n % 2})
    data.index = pd.Index(n[::-1] + 100, name=name)
    if form == "csv":
        data.index.name = None
        data.to_csv(path)
    else:
        data.to_parquet(path)
    column = "" if form == "csv" else name or "__index_level_0__"
    table = Table(path)
    assert (table.feature_names, table.label) == (["a", "b"], "kind")
    assert f"column {column!r} is the index of a frame, and not used" in table.notes
    assert "labels are in column 'kind'" in table.notes
    np.testing.assert_array_equal(everything(table)[0], data[["a", "b"]])
    # Whoever names it, gets it.
    named = Table(path, label=column)
    assert (named.feature_names, named.label) == (["a", "b", "kind"], column)
    assert Table(path, features=[column, "a"]).feature_names == [column, "a"]
    data.reset_index(drop=True).to_parquet(tmp_path / "range")
    assert Table(tmp_path / "range").feature_names == ["a", "b"]


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
    path = parquet(tmp_path, {"a": [1.0], "label": [1]})
    for option in ({"separator": ";"}, {"header": False}):
        with pytest.raises(TableError, match="is a Parquet file, which has no"):
            Table(path, **option)


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
    assert table.origin == {"one_hot": {"colour": [0, 3]}, "label": "label"}
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
    with pytest.raises(TableError, match="'name' has 30 values in 30 rows"):
        Table(csv(tmp_path, text), categorical=True)
    few = Table(csv(tmp_path, "name,label\nx,1\ny,0\n"), categorical=True)
    assert few.feature_names == ["name=x", "name=y"]
    many = [f"{i:0100d}" for i in range(60_000)] * 2
    path = parquet(tmp_path, {"s": many, "label": [0, 1] * 60_000})
    with pytest.raises(TableError, match=r"values in .*not categories"):
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


HEAD, GOOD = b"a,b,label\n", b"1,2,yes\n"
NOT_UTF8 = {
    "name": b"a,b\xe4,label\n" + GOOD,
    "label": HEAD + GOOD + b"1,2,\xe4\n",
    "last line": HEAD + GOOD * 10 + b"1,2,\xe4",
    # Beyond the block from which types are inferred.
    "later": HEAD + GOOD * 200_000 + b"1,2,n\xe4\n" + GOOD,
    "UTF-16": "a,b,label\n1,2,yes\n".encode("utf-16"),
}


@pytest.mark.parametrize("where", NOT_UTF8)
def test_csv_that_is_not_utf8(where: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(NOT_UTF8[where])
    with pytest.raises(TableError, match=r"t\.csv.*Text must be UTF-8: iconv -f"):
        list(Table(tmp_path / "t.csv")())


@pytest.mark.parametrize("kind", ["binary", "dictionary", "string"])
@pytest.mark.parametrize("value", [b"y", b"\xe4"])
def test_parquet_with_bytes_as_labels(kind: str, value: bytes, tmp_path: Path) -> None:
    column = pa.array([b"x", value], pa.binary())
    if kind == "dictionary":
        column = column.dictionary_encode()
    elif kind == "string":
        column = column.view(pa.string())
    table = Table(parquet(tmp_path, {"a": [1.0, 2.0], "label": column}))
    if value == b"y":
        assert [list(batch.y) for batch in table()] == [["x", "y"]]
        return
    with pytest.raises(TableError, match=r"column 'label' cannot be read: Invalid UTF8"):
        list(table())


@pytest.mark.parametrize(
    "spans",
    [1, {"a": None}, {"a": [0]}, {"a": [0, 9]}, {"a": [1, 0]}, {"a": [-1, 1]}, {"b": [0, 1]},
     {"a": [0, 2], "c": [1, 2]}, {"a": [0.0, 1.0]}, {"a": [0, 1], "": [1, 2]}],
)  # fmt: skip
def test_spans_from_a_file_that_make_no_sense(spans: Any) -> None:
    names = ["a=x", "a=y", "c"]
    assert Features.from_names(names, {"a": [0, 2]}).columns == ("a", "c")
    with pytest.raises(ValueError, match="one-hot columns"):
        Features.from_names(names, spans)
