"""Different labels stay different, or are refused, wherever they come from."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certsvm import LinearSVC, LinearSVCCV, bound, compare, fit_path, fit_stream, verify
from certsvm.files import BlockFile, LibsvmError, Table, convert, load_libsvm
from certsvm.files.block_file import BlockFileError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
CODES = np.where(X[:, 0] + 0.5 * RNG.standard_normal(30) > 0, 1, 0)
CLF = LinearSVC(store_dual=True, random_state=0).fit(X, np.array(["a", "b"])[CODES])
BIG = 2**53


def labelled(*labels: Any) -> Any:
    """Labels as an object array, which keeps them all."""
    return np.array(labels, dtype=object)[CODES]


DOORS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda y: LinearSVC().fit(X, y),
    "score": lambda y: CLF.score(X, y),
    "report": lambda y: CLF.report("unused.html", X, y),
    "support_status": lambda y: CLF.support_status(X, y),
    "partial_fit": lambda y: LinearSVC().partial_fit(X, y, classes=["a", "b"]),
    "classes": lambda y: LinearSVC().partial_fit(X, ["a"] * 30, classes=y),
    "LinearSVCCV": lambda y: LinearSVCCV(Cs=[0.1, 1.0], cv=2).fit(X, y),
    "fit_path": lambda y: fit_path(LinearSVC(), X, y, [0.1, 1.0]),
    "fit_stream": lambda y: fit_stream([(X, y)]),
    "verify": lambda y: verify(CLF, X, y),
    "bound": lambda y: bound(CLF.coef_, X, y, C=1.0),
    "bound of a model": lambda y: bound(CLF, X, y),
    "compare": lambda y: compare(X, y, solvers="dcd"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("as_list", [False, True])
def test_labels_that_are_missing_or_end_in_nul_are_refused(door: str, as_list: bool) -> None:
    for nul, other in (("a\0", "a"), ("b\0\0", "b")):
        y = labelled(nul, other)
        with pytest.raises(ValueError, match="ends in NUL"):
            DOORS[door](y.tolist() if as_list else y)
    y = labelled("a", "b").astype(object)
    y[0] = None
    with pytest.raises(ValueError, match="a label is missing"):
        DOORS[door](y.tolist() if as_list else y)


@pytest.mark.parametrize("door", ["fit", "LinearSVCCV", "fit_path"])
@pytest.mark.parametrize("kind", ["Int64", "UInt64"])
def test_integers_of_pandas_that_float64_would_merge_are_refused(door: str, kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    # With three classes, one that is lost goes unnoticed.
    labels = np.array([BIG, BIG + 1, BIG + 2])[CODES + (X[:, 1] > 0.5)]
    with pytest.raises(ValueError, match=f"label {BIG + 1} would become"):
        DOORS[door](pandas.Series(labels, dtype=kind))
    small = LinearSVC().fit(X, pandas.Series(CODES, dtype=kind))
    assert small.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("y", [[1, "1", "2"], [BIG + 1, 0.5, 1], [b"1", "1", "2"]])
def test_a_list_whose_labels_numpy_would_merge_is_refused(y: list[Any]) -> None:
    with pytest.raises(ValueError, match="give all labels one type"):
        LinearSVC().fit(X, y * 10)


def test_labels_of_another_type_are_compared_exactly() -> None:
    # As float64, both classes would be 2**53.
    y = np.array([BIG, BIG + 1])[CODES]
    clf = LinearSVC(store_dual=True, random_state=0).fit(X, y)
    assert verify(clf, X, y).verdict == "confirmed"
    for other in (y.astype(np.uint64), y.astype(object)):
        assert verify(clf, X, other).verdict == "confirmed"
        assert bound(clf, X, other) == bound(clf, X, y)
    with pytest.raises(ValueError, match="not trained on"):
        verify(clf, X, np.where(CODES == 1, BIG + 2.0, float(BIG)))
    of_floats = LinearSVC(store_dual=True, random_state=0).fit(X, np.array([2.0, BIG])[CODES])
    with pytest.raises(ValueError, match="not trained on"):
        verify(of_floats, X, labelled(2, BIG + 1))


def test_a_stream_keeps_labels_of_several_types_apart() -> None:
    labels = [np.array([BIG, BIG + 1], dtype=np.int64), np.array([BIG + 1, 2**63], dtype=np.uint64)]
    stream = [(X, labels[0][CODES]), (X + 0.1, labels[1][CODES])]
    model = fit_stream(stream[:1])
    assert model.classes.tolist() == [BIG, BIG + 1]
    assert verify(LinearSVC(store_dual=True).fit(X, labels[0][CODES]), *stream[0]).ok
    with pytest.raises(ValueError, match="give all labels one type"):
        fit_stream([stream[0], (X, np.array([0.5, 1.5])[CODES])])


# The first is the second for float64.
MERGED = [
    (str(BIG + 1), str(BIG)),
    (str(2**64 + 1), str(2**64)),
    ("1.00000000000000000001", "1"),
    ("1e-400", "0"),
    ("0.1000000000000000000000001", "0.1"),
    ("1152921504606847000", str(2**60)),
    ("1e-99999999999999999999", "0"),
]


def libsvm_labels(labels: list[str], tmp_path: Path) -> list[float]:
    text = "".join(f"{label} 1:{i}\n" for i, label in enumerate(labels, 1))
    y: list[float] = load_libsvm(io.BytesIO(text.encode()))[1].tolist()
    (tmp_path / "a.txt").write_text(text)
    assert load_libsvm(tmp_path / "a.txt")[1].tolist() == y
    return y


def csv_labels(labels: list[str], tmp_path: Path) -> list[Any]:
    path = tmp_path / "a.csv"
    path.write_text("a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    return [label for batch in Table(path)() for label in batch.y.tolist()]


READERS = [libsvm_labels, csv_labels]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("pair", MERGED)
def test_numbers_that_float64_merges_are_kept_apart_or_refused(
    read: Any, pair: tuple[str, str], tmp_path: Path
) -> None:
    labels = [*pair, "5"]
    if read is csv_labels and all(label.isdecimal() and int(label) < 2**63 for label in labels):
        assert read(labels, tmp_path) == [int(label) for label in labels]
        return
    with pytest.raises(ValueError, match="has more digits than float64 keeps") as caught:
        read(labels, tmp_path)
    if isinstance(caught.value, LibsvmError):
        assert (caught.value.line, caught.value.column) == (1, 1)


def test_times_that_differ_by_a_nanosecond_are_two_labels(tmp_path: Path) -> None:
    times = pa.array(range(2), pa.int64()).cast(pa.time64("ns"))
    pq.write_table(pa.table({"x": [1.0, 2.0], "label": times}), tmp_path / "a.parquet")
    labels = [label for batch in Table(tmp_path / "a.parquet")() for label in batch.y.tolist()]
    assert labels == ["00:00:00.000000000", "00:00:00.000000001"]


def test_a_missing_number_among_labels_is_named(tmp_path: Path) -> None:
    for missing in ("", "NA", "nan"):
        with pytest.raises(ValueError, match="row 3, column 'label' is missing"):
            csv_labels(["1.5", "2.5", missing, "1.5"], tmp_path)


def test_labels_of_tables_that_end_in_nul_are_refused(tmp_path: Path) -> None:
    table = pa.table({"x": X[:, 0], "label": labelled("a", "a\0").tolist()})
    pq.write_table(table, tmp_path / "a.parquet")
    rows = [f"{i},a{code * chr(0)}\n" for i, code in enumerate(CODES.tolist())]
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(rows))
    for source in (table, tmp_path / "a.parquet", tmp_path / "a.csv"):
        with pytest.raises(ValueError, match="ends in NUL"):
            fit_stream(source)


def test_a_block_file_with_labels_that_end_in_nul_is_refused(tmp_path: Path) -> None:
    rows = [f"{i},{'ab'[i % 2]}z\n" for i in range(9)]
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(rows))
    convert(tmp_path / "a.csv", tmp_path / "a.arrow")
    data = (tmp_path / "a.arrow").read_bytes()
    assert data.count(b"az") == 5
    (tmp_path / "a.arrow").write_bytes(data.replace(b"az", b"a\0").replace(b"bz", b"b\0"))
    with pytest.raises(BlockFileError, match="ends in NUL"):
        list(BlockFile(tmp_path / "a.arrow")())
