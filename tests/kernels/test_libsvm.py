"""The parser of libsvm lines, on plain arrays; the readers above it are tested in tests/files."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from certsvm.kernels import libsvm
from certsvm.kernels.decimal import PADDING, decimal_tables
from certsvm.kernels.libsvm import IndexRules, Report, Room, parse_lines

RULES = IndexRules(base=1, low=1, high=libsvm.LARGEST_INDEX, notable=-2)


class Parsed:
    """Results of parsing a text, with room for a number of rows and values."""

    def __init__(
        self,
        text: bytes,
        rules: IndexRules = RULES,
        room: int = 50,
        dtype: Any = np.float64,
        index_type: Any = np.int64,
    ) -> None:
        array = np.frombuffer(text + b"\n" * PADDING, dtype=np.uint8)
        self.values, self.indices = np.zeros(room, dtype), np.zeros(room, index_type)
        self.labels, self.row_ends = np.zeros(room), np.zeros(room, np.int64)
        self.deferred = np.zeros((3, 2), np.int64)
        report = np.empty(len(Report._fields), dtype=np.int64)
        results = Room(self.values, self.indices, self.labels, self.row_ends, self.deferred, report)
        parse_lines(array, len(text), rules, decimal_tables(), 0, results)
        self.report = Report(*report.tolist())

    def rows(self) -> list[tuple[float, list[tuple[int, float]]]]:
        ends = [0, *self.row_ends[: self.report.rows].tolist()]
        return [
            (label, list(zip(self.indices[a:b].tolist(), self.values[a:b].tolist(), strict=True)))
            for label, a, b in zip(self.labels.tolist(), ends[:-1], ends[1:], strict=False)
        ]


numbers = st.integers(-99999, 99999).map(lambda n: n / 16)
rows = st.lists(
    st.tuples(numbers, st.dictionaries(st.integers(1, 10**12), numbers, max_size=4)),
    min_size=1,
    max_size=6,
)


@given(rows, st.sampled_from(["\n", "\r\n", " # comment\n", "\n\n"]), st.booleans())
def test_lines_are_read_as_written(rows: list[Any], end: str, last_end: bool) -> None:
    rows = [(label, sorted(pairs.items())) for label, pairs in rows]
    lines = [" ".join([repr(y), *(f"{j}:{v!r}" for j, v in pairs)]) for y, pairs in rows]
    text = end.join(lines) + (end if last_end else "")
    parsed = Parsed(text.encode())
    assert parsed.rows() == [(y, [(j - 1, v) for j, v in pairs]) for y, pairs in rows]
    indices = [j for _, pairs in rows for j, _ in pairs]
    report = parsed.report
    assert (report.code, report.values, report.queries) == (libsvm.PARSED, len(indices), 0)
    assert report.smallest == min(indices, default=libsvm.LARGEST_INDEX)
    assert report.largest == max(indices, default=-1)


def test_results_that_have_no_room() -> None:
    text = b"1 1:1 2:1 3:1\n"
    assert Parsed(text, room=2).report.code == libsvm.NO_ROOM
    assert Parsed(text * 4, room=3).report.code == libsvm.NO_ROOM
    wide = b"1 2147483648:1\n"
    assert Parsed(wide, index_type=np.int32).report.code == libsvm.WIDE_INDEX
    assert Parsed(wide).report.code == libsvm.PARSED


def test_unsettled_numbers_are_listed_as_far_as_there_is_room() -> None:
    unsettled = b"9007199254740993." + b"0" * 30 + b"1"
    pairs = b" ".join(b"%d:%b" % (j, unsettled) for j in range(1, 5))
    parsed = Parsed(unsettled + b" " + pairs + b"\n")
    assert parsed.report.deferred == 5
    assert parsed.deferred[:, 0].tolist() == [-1, 0, 1], "the label of row 0, then slots"
    assert parsed.deferred[0, 1] == 0


def test_text_that_could_be_read_beyond_is_refused() -> None:
    report = np.empty(len(Report._fields), dtype=np.int64)
    results = Room(
        np.empty(9), np.empty(9, np.int32), np.empty(9), np.empty(9, np.int64),
        np.empty((9, 2), np.int64), report,
    )  # fmt: skip
    for text, end in ((b"1 1:1\n", 6), (b"1 1:1" + b" " * 9, 5), (b"\n" * 20, 0)):
        array = np.frombuffer(text, dtype=np.uint8)
        parse_lines(array, end, RULES, decimal_tables(), 0, results)
        assert report[0] == libsvm.BAD_BUFFER
