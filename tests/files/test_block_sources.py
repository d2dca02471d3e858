"""Whatever holds blocks of rows gives the same model."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from certsvm import Model, fit_stream
from certsvm.files import BlockFile, Table, convert, save_libsvm
from certsvm.files.block_sources import block_source
from certsvm.files.streams import BlockStream, DataChangedError

N = 90


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3)).round(6)
    return X, (X @ [1.0, -1.0, 0.3] + 0.3 * rng.standard_normal(N) > 0).astype(np.int64)


X, y = data()


def table() -> pa.Table:
    columns = {name: X[:, j] for j, name in enumerate("abc")}
    return pa.table({**columns, "label": y})


def chunked() -> pa.Table:
    return pa.Table.from_batches(table().to_batches(max_chunksize=7))


def fit(source: Any, **roles: Any) -> Model:
    return fit_stream(source, C=0.5, tol=1e-5, **roles)


class Varying:
    """An Arrow stream that is cut differently each time."""

    def __init__(self) -> None:
        self._sizes = itertools.count(5)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        cut = pa.Table.from_batches(table().to_batches(max_chunksize=next(self._sizes)))
        return cut.to_reader().__arrow_c_stream__(requested_schema)


def sources(folder: Path) -> dict[str, Any]:
    save_libsvm(folder / "text", sp.csr_matrix(X), y)
    save_libsvm(folder / "zero", sp.csr_matrix(X), y, zero_based=True)
    convert(folder / "text", folder / "data.arrow", shuffle=False)
    frame = table().to_pandas()
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "semicolon.csv", index=False, sep=";")
    frame.index = pd.Index(np.arange(N)[::-1] + 7)
    frame.to_parquet(folder / "t.parquet")
    blocks = [(X[:40], y[:40]), (X[40:], y[40:], None)]
    return {
        "function": lambda: iter(blocks),
        "list": blocks,
        "tuple": tuple(blocks),
        "text": str(folder / "text"),
        "zero-based text": folder / "zero",
        "blocks": str(folder / "data.arrow"),
        "BlockFile": BlockFile(folder / "data.arrow"),
        "csv": folder / "t.csv",
        "parquet": folder / "t.parquet",
        "Table": Table(folder / "semicolon.csv", separator=";"),
        "pyarrow": table(),
        "chunks": chunked(),
        "polars": pl.DataFrame(table()),
        "pandas": frame,
        "a reader each time": lambda: chunked().to_reader(),
        "cut differently": Varying(),
    }


NAMELESS = ("function", "list", "tuple", "text", "zero-based text", "blocks", "BlockFile")
NAMED = ("csv", "parquet", "Table", "pyarrow", "chunks", "polars", "pandas", "a reader each time",
         "cut differently")  # fmt: skip


@pytest.mark.parametrize("name", NAMELESS + NAMED)
def test_all_sources_give_the_same_model(name: str, tmp_path: Path) -> None:
    source = sources(tmp_path)[name]
    if name == "pandas" and not hasattr(source, "__arrow_c_stream__"):
        pytest.skip("this pandas has no Arrow streams")
    stream = BlockStream(block_source(source))
    assert (stream.n_rows, stream.n_columns, stream.classes.tolist()) == (N, 3, [0, 1])
    model = fit(source)
    expected = fit([(X, y)])
    assert model.certificates[0].met
    np.testing.assert_allclose(model.coef, expected.coef, rtol=1e-2, atol=1e-3)
    assert model.feature_names == (("a", "b", "c") if name in NAMED else None)
    if "text" in name:
        assert model.parameters["zero_based"] is ("zero" in name)


def test_columns_of_arrow_data_have_roles() -> None:
    rng = np.random.default_rng(1)
    w = rng.integers(1, 4, N).astype(float)
    colour = rng.choice(["red", "blue"], N)
    given = table().append_column("w", pa.array(w)).append_column("colour", pa.array(colour))
    given = given.rename_columns(["a", "b", "c", "y", "w", "colour"])
    roles = {"label": "y", "weight": "w"}
    with pytest.raises(ValueError, match=r"'colour' holds string.*categorical=True"):
        fit(given, **roles)
    for source in (given, lambda: given.to_reader(max_chunksize=11)):
        model = fit(source, categorical=True, **roles)
        assert model.feature_names == ("a", "b", "c", "colour=blue", "colour=red")
        assert model.parameters["one_hot"] == {"colour": [3, 5]}
        one_hot = np.column_stack([X, colour == "blue", colour == "red"]).astype(float)
        expected = fit([(one_hot, y, w)])
        np.testing.assert_allclose(model.coef, expected.coef, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["blue", "no", "red", "yes"])])
def test_categories_of_polars_are_strings(kind: Any) -> None:
    rng = np.random.default_rng(1)
    strings = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(
        pl.Series("colour", rng.choice(["red", "blue"], N)),
        pl.Series("label", np.where(y == 1, "yes", "no")),
    )
    categories = strings.with_columns(pl.col("colour", "label").cast(kind))
    halves = pl.concat([categories[:40], categories[40:]], rechunk=False)
    expected = fit(strings, categorical=True)
    for source in (categories, halves, lambda: categories):
        model = fit(source, categorical=True)
        assert model.feature_names == ("a", "b", "c", "colour=blue", "colour=red")
        assert model.classes.tolist() == ["no", "yes"]
        np.testing.assert_array_equal(model.coef, expected.coef)


def test_a_lazy_frame_is_no_data() -> None:
    lazy = pl.DataFrame(table()).lazy()
    with pytest.raises(TypeError, match="Got LazyFrame"):
        fit(lazy)
    fit(lambda: lazy.collect())


def test_what_can_be_read_only_once_is_refused() -> None:
    with pytest.raises(TypeError, match=r"RecordBatchReader can be read once.*read_all"):
        fit(table().to_reader())
    with pytest.raises(TypeError, match=r"they are read many times\. Got generator"):
        fit((X, y) for _ in range(1))
    once = table().to_reader()
    with pytest.raises(DataChangedError, match="cannot be read a second time"):
        fit(lambda: once)
    with pytest.raises(TypeError, match="Got int"):
        fit(7)
    with pytest.raises(ValueError, match="a block must be"):
        fit((X, y))


@pytest.mark.parametrize("role", [{"label": "a"}, {"weight": "a"}, {"categorical": True}])
def test_roles_are_for_columns(role: Any, tmp_path: Path) -> None:
    save_libsvm(tmp_path / "text", sp.csr_matrix(X), y)
    convert(tmp_path / "text", tmp_path / "data.arrow")
    for source in ([(X, y)], lambda: [(X, y)], tmp_path / "text", tmp_path / "data.arrow",
                   BlockFile(tmp_path / "data.arrow")):  # fmt: skip
        with pytest.raises(ValueError, match="is for tables and Arrow data"):
            fit(source, **role)


def test_a_wide_table_is_not_parsed_in_each_pass(tmp_path: Path) -> None:
    """Streamed, SGD would make its most passes, a thousand, and parse the table in each of them."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.standard_normal((40, 4000)).round(4)).add_prefix("c")
    wide["label"] = (wide["c0"] > 0).astype(int)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    model = fit_stream(tmp_path / "wide.csv", C=1.0)
    assert model.certificates[0].met
    assert model.parameters["passes"] < 100
    assert model.feature_names is not None
    assert len(model.feature_names) == 4000
