"""Files of blocks: what was written, or an error; never anything else."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
import scipy.sparse as sp

from certsvm.files.batch import Batch
from certsvm.files.block_file import BlockFile, BlockFileError, Summary, write_blocks
from certsvm.files.streams import BlockStream, DataChangedError
from tests.files import hostile


def blocks(kind: str, n: int = 12, seed: int = 0) -> list[tuple[Any, Any, Any]]:
    """Two blocks; ``kind`` names what they hold."""
    rng = np.random.default_rng(seed)
    dtype = np.float32 if "float32" in kind else np.float64
    X: Any = rng.choice([0.0, -0.0, 1.5, -1e-300, 0.1], (n, 5)).astype(dtype)
    if "csr" in kind:
        X = sp.csr_matrix(X)
        X.data[:1] = 0.0
    if "int64" in kind:
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    y: Any = rng.integers(0, 3, n)
    if "string" in kind:
        y = np.array(["a", "bb", "\N{SNOWMAN}"])[y]
    if "float-labels" in kind:
        y = y + 0.5
    weights = rng.random(n) if "weighted" in kind else None
    half = n // 2
    return [
        (X[part], y[part], None if weights is None else weights[part])
        for part in (slice(0, half), slice(half, n))
    ]


def write(path: Path, content: list[tuple[Any, Any, Any]], **more: Any) -> Path:
    n_rows = sum(len(y) for _, y, _ in content)
    n_values = sum(X.nnz if sp.issparse(X) else X.size for X, _, _ in content)
    settings = {"feature_names": [f"column {i}" for i in range(5)], "source": "rows.txt"} | more
    summary = Summary(n_rows, content[0][0].shape[1], n_values, shuffled=True, **settings)
    with path.open("wb") as file:
        write_blocks(file, summary, [Batch(*block) for block in content])
    return path


def bits(block: tuple[Any, Any, Any]) -> tuple[Any, ...]:
    X, y, weights = block
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return (
        X.shape, X.dtype.str, *(np.asarray(a).tolist() for a in arrays),
        arrays[0].tobytes(), y.tolist(), None if weights is None else weights.tobytes(),
    )  # fmt: skip


def read(path: Path) -> tuple[Summary, list[tuple[Any, ...]]]:
    file = BlockFile(path)
    return file.summary, [bits(block) for block in file()]


KINDS = ["csr", "csr-int64-weighted", "csr-float32-string", "dense", "dense-float32-weighted",
         "dense-string-weighted", "csr-float-labels"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read(kind: str, tmp_path: Path) -> None:
    content = blocks(kind)
    file = BlockFile(write(tmp_path / "rows.arrow", content))
    assert file.n_blocks == 2
    assert (file.summary.n_rows, file.summary.n_columns) == (12, 5)
    for _ in range(2):
        assert [bits(block) for block in file()] == [bits(block) for block in content]
    assert BlockStream(file).fingerprint == BlockStream(lambda: content).fingerprint


@pytest.mark.parametrize("kind", ["csr-string", "dense-weighted"])
def test_any_program_that_knows_arrow_can_read_it(kind: str, tmp_path: Path) -> None:
    content = blocks(kind)
    path = write(tmp_path / "rows.arrow", content)
    table = pa.ipc.open_file(str(path)).read_all()
    assert table.column("label").to_pylist() == np.concatenate([b[1] for b in content]).tolist()
    rows = table.column("row").to_pylist()
    first = content[0][0]
    if sp.issparse(first):
        pairs = [(item["index"], item["value"]) for item in rows[0]]
        assert pairs == list(zip(first.indices[: first.indptr[1]].tolist(),
                                 first.data[: first.indptr[1]].tolist(), strict=True))  # fmt: skip
    else:
        assert rows[0] == first[0].tolist()


def flipped(whole: bytes, at: int, bit: int) -> bytes:
    return whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :]


@pytest.mark.parametrize("kind", ["csr", "dense-string-weighted"])
def test_a_flipped_bit_never_gives_other_rows(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.arrow", blocks(kind))
    whole = path.read_bytes()
    expected = read(path)
    refused = 0
    tried = range(0, len(whole), 3)
    for at in tried:
        path.write_bytes(flipped(whole, at, at % 8))
        try:
            assert read(path) == expected, (at, at % 8)
        except BlockFileError as error:
            refused += str(path) in str(error)
    assert refused > len(tried) // 3


@pytest.mark.parametrize("kind", ["csr", "dense-string-weighted"])
def test_any_truncation_is_an_error(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.arrow", blocks(kind))
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 23), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(BlockFileError, match="not an Arrow file, or not a whole one"):
            read(path)


def test_another_file_in_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.arrow", blocks("dense"))
    stream = BlockStream(BlockFile(path))
    write(path, blocks("dense", seed=1))
    with pytest.raises(DataChangedError, match="Nothing is certified"):
        list(stream.blocks())
    write(path, blocks("dense")[:1])
    with pytest.raises(DataChangedError, match="Nothing is certified"):
        list(stream.blocks())


def rewritten(path: Path, order: list[int]) -> None:
    """The same batches, in another order or not all, as another program might write them."""
    with pa.OSFile(str(path)) as source:
        reader = pa.ipc.open_file(source)
        batches = [reader.get_batch_with_custom_metadata(i) for i in range(2)]
        with pa.ipc.new_file(str(path) + "2", reader.schema) as writer:
            for i in order:
                batch, metadata = batches[i]
                writer.write_batch(batch, custom_metadata=metadata)
    Path(str(path) + "2").rename(path)


@pytest.mark.parametrize(
    ("order", "message"),
    [([1, 0], "block 1 of 2 is damaged"), ([0], "has 6 rows and says 12"),
     ([0, 0], "block 2 of 2 is damaged"), ([0, 1, 1], "block 3 of 3 is damaged"),
     ([], "has 0 rows and says 12")],
)  # fmt: skip
def test_batches_out_of_place(order: list[int], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.arrow", blocks("csr"))
    rewritten(path, [0, 1])
    read(path)
    rewritten(path, order)
    with pytest.raises(BlockFileError, match=message):
        read(path)


HEADERS: list[Any] = [
    (b"[]", "header that is damaged"),
    (b"\xff", "header that is damaged"),
    (b'{"format": 3}', "format 3 is not 2: convert the data again"),
    (b'{"format": 2, "other": 1}', "header that is damaged"),
    (b'{"format": 2, "n_rows": 2, "n_columns": 1, "n_values": 2, "shuffled": true}',
     "block 1 of 1 is damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "message"), HEADERS)
def test_a_forged_header(metadata: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "forged.arrow"
    signed = {b"certsvm": metadata, b"certsvm-digest": b"%08x" % zlib.crc32(metadata)}
    table = pa.table({"a": [1, 2], "label": [0, 1]}).replace_schema_metadata(signed)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(BlockFileError, match=message):
        read(path)


def test_hostile_files_are_refused_before_anything_reads_them(tmp_path: Path) -> None:
    for path, message in hostile.hostile(tmp_path).items():
        with pytest.raises(BlockFileError, match=message):
            list(BlockFile(path)())
    good = hostile.write_blocks(tmp_path / "good.arrow", *hostile.rows())
    assert sum(len(batch.y) for batch in BlockFile(good)()) == 40
