"""Messages say what is wrong with a text, and where."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certsvm.files import LibsvmBlocks, LibsvmError, load_libsvm


@pytest.mark.parametrize(
    ("text", "options", "line", "column", "found", "what"),
    [
        (b"1 1:1\n1 3:1.5x\n", {}, 2, 5, "1.5x", 'expected a number after the colon, found "1.5x"'),
        (b"1 1:1e400\n", {}, 1, 5, "1e400", 'the value "1e400" is too large for float64'),
        (b"1 1:1e39\n", {"dtype": np.float32}, 1, 5, "1e39", "too large for float32"),
        (b"1e999 1:1\n", {}, 1, 1, "1e999", 'the label "1e999" is too large for float64'),
        (b"1 3:\n", {}, 1, 5, "", 'expected a number after the colon, found ""'),
        (b"1 3\n", {}, 1, 3, "3", 'expected index:value, found "3"'),
        (b"1 -3:1\n", {}, 1, 3, "-3:1", 'expected index:value, found "-3:1"'),
        (b"1 " + b"9" * 5000 + b":1\n", {}, 1, 3, "9" * 40 + "...", "beyond the largest allowed"),
        (b"1 2:1 1:1\n", {}, 1, 7, "1:1", "indices must ascend within a line, but 1 follows 2"),
        (b"1 2:1 02:1\n", {}, 1, 7, "02:1", "indices must ascend within a line, but 2 follows 2"),
        (b"1 0:1\n", {"zero_based": False}, 1, 3, "0:1", "index 0 is out of range"),
        (b"1 4:1\n", {"n_features": 3}, 1, 3, "4:1",
         "index 4 is out of range: n_features=3, counted from one"),
        (b"1 1:1 3:1\n1 0:1\n", {"n_features": 3}, None, None, "",
         "index 3 is out of range: n_features=3, counted from zero"),
        (b"1 1:1\0\n", {}, 1, 5, "1\\x00", 'found a NUL byte in "1\\x00"; is this a text file?'),
        (b"1 1:1\r1 2:1\n", {}, 1, 5, "1\\r1", "carriage return that does not end a line"),
        (b"1,2 1:1\n", {}, 1, 1, "1,2", 'expected a decimal number as label, found "1,2"'),
        (b"1:1 2:1\n", {}, 1, 1, "1:1", 'expected a decimal number as label, found "1:1"'),
        (b"\n yes 1:1\n", {}, 2, 2, "yes", 'expected a decimal number as label, found "yes"'),
        (b"1 qid:1 qid:2\n", {}, 1, 9, "qid:2", 'expected index:value, found "qid:2"'),
        (b"1 1:\x1b[31m\xff\n", {}, 1, 5, "\\x1b[31m\\xff", "expected a number"),
        (b"\n# nothing\n\r\n", {}, None, None, "", "there are no rows in this file"),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(
    text: bytes, options: dict[str, Any], line: int | None, column: int | None, found: str,
    what: str, tmp_path: Path,
) -> None:  # fmt: skip
    path = tmp_path / "train.txt"
    path.write_bytes(text)
    where = f"{path}, line {line}, column {column}: " if line else f"{path}: "
    for read in (
        lambda: load_libsvm(path, **options),
        lambda: list(LibsvmBlocks(path, 1, **options)),
        lambda: list(LibsvmBlocks(str(path), **options)),
    ):
        with pytest.raises(LibsvmError, match=re.escape(what)) as caught:
            read()
        error = caught.value
        assert (error.line, error.column, error.text) == (line, column, found)
        assert error.file == str(path)
        assert str(error).startswith(where)
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.column) == (str(error), error.column)
