"""Embeddings in files: what is read is what was written, and hostile files are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from safetensors.numpy import save_file

from certsvm import fit_stream
from certsvm.files.block_sources import kind_of
from certsvm.files.embeddings import Embeddings

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 6)).astype(np.float32)
Y = RNG.integers(0, 3, 50)


def table(path: Path, X: Any = X, *, lists: bool = False, **columns: Any) -> Path:
    """A Parquet file with a column of lists."""
    if lists:
        rows: Any = pa.array([list(map(float, row)) for row in X], pa.list_(pa.float32()))
    else:
        rows = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    columns = columns or {"label": Y}
    pa.parquet.write_table(pa.table({"rows": rows, **columns}), path, row_group_size=17)
    return path


def written(folder: Path, kind: str, X: Any = X, y: Any = Y) -> tuple[Path, str | None]:
    """A file of some kind, and where its labels are."""
    if kind == "npy":
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        return folder / "X.npy", str(folder / "y.npy")
    if kind == "safetensors":
        save_file({"e": X, "labels": y, "weights": np.ones(len(X))}, folder / "X.safetensors")
        return folder / "X.safetensors", None
    return table(folder / "X.parquet", X, lists=kind == "lists", label=y), None


@pytest.mark.parametrize("kind", ["npy", "safetensors", "fixed", "lists"])
def test_rows_and_labels_are_read(tmp_path: Path, kind: str) -> None:
    path, label = written(tmp_path, kind)
    assert kind_of(path) == "embeddings"
    file = Embeddings(path, label=label)
    assert file.n_rows == 50
    for batches in (list(file.blocks(8 * 6 * 7)), [file.read(np.float64)]):
        np.testing.assert_array_equal(np.concatenate([batch.X for batch in batches]), X)
        np.testing.assert_array_equal(np.concatenate([batch.y for batch in batches]), Y)
        assert {batch.X.dtype.name for batch in batches} == {"float32"}
    if kind != "lists":
        assert max(len(batch.y) for batch in file.blocks(8 * 6 * 7)) == 7


@pytest.mark.parametrize("kind", ["npy", "safetensors", "fixed", "lists"])
def test_fit_stream_reads_them(tmp_path: Path, kind: str) -> None:
    path, labels = written(tmp_path, kind)
    model = fit_stream(path, label=labels, C=0.1)
    expected = fit_stream([(X, Y)], C=0.1)
    np.testing.assert_allclose(model.coef, expected.coef)
    assert model.fingerprint == expected.fingerprint
    with pytest.raises(ValueError, match="weight is for tables"):
        fit_stream(path, label=labels, weight="w")


@pytest.mark.parametrize(
    ("dtype", "read"),
    [("float16", "float32"), ("float64", "float64"), (">f4", "float32"), ("int8", "float32"),
     ("int32", "float64")],
)  # fmt: skip
def test_types(tmp_path: Path, dtype: str, read: str) -> None:
    stored = np.asfortranarray(np.arange(12).reshape(4, 3).astype(dtype))
    np.save(tmp_path / "X.npy", stored)
    file = Embeddings(tmp_path / "X.npy", labelled=False)
    for wanted, expected in ((np.float64, read), (np.float32, "float32")):
        batch = file.read(wanted)
        assert batch.X.dtype == expected
        np.testing.assert_array_equal(batch.X, stored)
        assert batch.y.tolist() == [""] * 4
    assert file.read(None).X.dtype == stored.dtype.newbyteorder("=")


def test_bfloat16(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_tensors

    rows, path = torch.from_numpy(X).bfloat16(), tmp_path / "X.safetensors"
    save_tensors({"X": rows, "y": torch.from_numpy(Y)}, path)
    file = Embeddings(path)
    assert torch.equal(file.read(None).X, rows)
    np.testing.assert_array_equal(file.read(np.float64).X, rows.float().numpy())


def test_an_array_is_mapped_and_never_changed(tmp_path: Path) -> None:
    path, label = written(tmp_path, "npy")
    before = path.read_bytes()
    batch = Embeddings(path, label=label).read(None)
    base = batch.X
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    batch.X[:] = 0
    assert path.read_bytes() == before


def test_names(tmp_path: Path) -> None:
    path = tmp_path / "X.safetensors"
    save_file({"image": X, "text": -X, "class": Y}, path)
    with pytest.raises(ValueError, match=r"--embeddings NAME.*'image', 'text'"):
        Embeddings(path, label="class")
    with pytest.raises(ValueError, match="no labels 'kind'"):
        Embeddings(path, embeddings="text", label="kind")
    with pytest.raises(ValueError, match="has no labels: say where they are"):
        Embeddings(path, embeddings="text")
    file = Embeddings(path, embeddings="text", label="class")
    np.testing.assert_array_equal(file.read(np.float64).X, -X)
    parquet = table(tmp_path / "t.parquet", kind=[f"k{y}" for y in Y], more=[[1.0]] * 50)
    assert Embeddings(parquet, embeddings="rows", label="kind").read(None).y[0] == f"k{Y[0]}"
    np.save(tmp_path / "y.npy", Y)
    nothing = table(tmp_path / "n.parquet", label=pa.nulls(50))
    apart = Embeddings(nothing, label=str(tmp_path / "y.npy")).read(None)
    np.testing.assert_array_equal(apart.y, Y)
    pa.parquet.write_table(pa.table({"a": [1.0, 2.0], "label": [0, 1]}), tmp_path / "u.parquet")
    assert kind_of(tmp_path / "u.parquet") == "table"


BAD_LABELS: list[Any] = [
    (np.arange(49), "50 rows need as many labels"),
    (np.eye(50, dtype=int), "50 rows need as many labels"),
    (np.full(50, np.nan), "missing or not finite"),
    (np.full(50, 1j), "integers, booleans or strings"),
    (np.full(50, b"a"), "integers, booleans or strings"),
    (np.full(50, {}), "cannot be read as an array of numbers"),
]


@pytest.mark.parametrize(("y", "wrong"), BAD_LABELS)
def test_labels_that_are_refused(tmp_path: Path, y: Any, wrong: str) -> None:
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    with pytest.raises(ValueError, match=wrong):
        Embeddings(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))


BAD_ARRAYS: list[Any] = [
    (np.array([[{}]]), "cannot be read as an array of numbers"),
    (np.ones((3, 2), dtype=complex), "not real numbers"),
    (np.array([["a"]]), "not real numbers"),
    (np.zeros((2, 2), dtype=[("a", int)]), "not real numbers"),
    (np.ones(3), "a row for each embedding is needed"),
    (np.ones((0, 3)), r"a row for each embedding is needed|cannot be read"),
]


@pytest.mark.parametrize(("rows", "wrong"), BAD_ARRAYS)
def test_arrays_that_are_refused(tmp_path: Path, rows: Any, wrong: str) -> None:
    np.save(tmp_path / "X.npy", rows)
    with pytest.raises(ValueError, match=wrong):
        Embeddings(tmp_path / "X.npy", labelled=False)


@pytest.mark.parametrize("shape", ["(1000000000000, 6)", "(-1, 6)", "(4611686018427387904, 8)"])
def test_an_array_of_another_size_is_refused(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (tmp_path / "X.npy").write_bytes(start + header.encode() + bytes(100))
    with pytest.raises(ValueError, match=r"cannot be read as an array|is needed"):
        Embeddings(tmp_path / "X.npy", labelled=False)


BAD_ENTRIES: list[Any] = [
    {"dtype": "F8_E4M3"},
    {"shape": [51, 6]},
    {"data_offsets": [0, 10**12]},
    {"data_offsets": [-8, 1192]},
    {"dtype": "nothing"},
]


@pytest.mark.parametrize("change", BAD_ENTRIES)
def test_safetensors_that_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    entry = {"dtype": "F32", "shape": [50, 6], "data_offsets": [0, X.nbytes]}
    header = json.dumps({"e": entry | change}).encode()
    path = tmp_path / "X.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + X.tobytes())
    with pytest.raises(ValueError, match=r"X\.safetensors"):
        Embeddings(path, labelled=False)
    path.write_bytes(b"{}")
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        Embeddings(path, labelled=False)


BAD_TABLES: list[Any] = [
    ([[1.0], [2.0, 3.0]], [0, 1], "different lengths"),
    ([[1.0], None], [0, 1], "missing"),
    ([[1.0], [None]], [0, 1], "missing"),
    ([["a"], ["b"]], [0, 1], "not real numbers"),
    ([[1.0], [2.0]], [0, None], "labels"),
    ([[], []], [0, 1], "not real numbers"),
    (pa.array([], pa.list_(pa.float32())), [], "has no rows"),
]


@pytest.mark.parametrize(("lists", "labels", "wrong"), BAD_TABLES)
def test_tables_that_are_refused(tmp_path: Path, lists: Any, labels: Any, wrong: str) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"e": lists, "label": labels}), path)
    assert kind_of(path) == "embeddings"
    with pytest.raises(ValueError, match=wrong):
        Embeddings(path).read(np.float64)
    for n in (10, path.stat().st_size - 20):
        path.write_bytes(path.read_bytes()[:n])
        assert kind_of(path) != "embeddings"
