"""Text that is not UTF-8 is refused with its place, and never becomes the name of a class."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certsvm.files.tables import Table, TableError
from tests.cli.running import run

HEAD, GOOD = b"a,b,label\n", b"1,2,yes\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"a,b\xe4,label\n" + GOOD, 1),
        (HEAD + GOOD + b"1,2,\xe4\n", 3),
        (HEAD + b"1,\xe4,yes\n" + GOOD, 2),
        (HEAD + GOOD * 10 + b"1,2,\xe4", 12),
        # Beyond the block from which types are inferred.
        (HEAD + GOOD * 200_000 + b"1,2,n\xe4\n" + GOOD, 200_002),
        ("a,b,label\n1,2,yes\n".encode("utf-16"), 1),
    ],
    ids=["name", "label", "feature", "last line", "later", "UTF-16"],
)
@pytest.mark.parametrize("separator", [None, ","])
def test_csv(text: bytes, line: int, separator: str | None, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(TableError, match=rf"t\.csv, line {line}: .* is not UTF-8.*iconv -f"):
        list(Table(tmp_path / "t.csv", separator=separator)())


def test_letters_beyond_ascii_are_classes(tmp_path: Path) -> None:
    text = "größe,label\n1,ä\n2,ö\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert [list(batch.y) for batch in Table(tmp_path / "t.csv")()] == [["ä", "ö"]]


KINDS = [pa.binary(), pa.large_binary(), pa.binary(1), pa.dictionary(pa.int32(), pa.binary())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("value", [b"y", b"\xe4"])
def test_parquet_with_bytes_as_labels(kind: pa.DataType, value: bytes, tmp_path: Path) -> None:
    column = pa.array([b"x", value], pa.binary())
    column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
    pq.write_table(pa.table({"a": [1.0, 2.0], "label": column}), tmp_path / "t.parquet")
    if value == b"y":
        assert [list(batch.y) for batch in Table(tmp_path / "t.parquet")()] == [["x", "y"]]
        return
    with pytest.raises(TableError, match=r"row 2, column 'label' holds b.*UTF-8"):
        list(Table(tmp_path / "t.parquet")())


def test_parquet_with_strings_that_are_not_text(tmp_path: Path) -> None:
    strings = pa.array([b"x", b"\xe4"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"s": strings, "label": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"row 2, column 's' holds b.*UTF-8"):
        Table(tmp_path / "t.parquet", categorical=True)


def test_by_the_command(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(HEAD + b"1,2,\xe4\n-1,2,\xf6\n" * 20)
    refused = run("train", "t.csv", cwd=tmp_path)
    assert refused.code == 2
    assert "t.csv, line 2" in refused.err
    assert not (tmp_path / "t.csv.model").exists()
