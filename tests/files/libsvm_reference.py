"""A slow, plain reader that every reader is compared with, and texts right and wrong."""

import io
import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certsvm.files import LibsvmBlocks, LibsvmError, libsvm, load_libsvm, read_libsvm


def load(text: bytes, **options: Any) -> tuple[Any, Any]:
    return load_libsvm(io.BytesIO(text), **options)


def nearest_float32(number: str) -> float:
    """By exact comparison of the candidates; halfway, the one whose last bit is 0."""
    exact = Fraction(Decimal(number))
    if abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103:
        return math.inf if exact > 0 else -math.inf
    with np.errstate(all="ignore"):
        guess = np.float32(float(number))
        around = [np.nextafter(guess, np.float32(s * np.inf)) for s in (-1, 1)]
    near = [f for f in (guess, *around) if np.isfinite(f)]
    return float(min(near, key=lambda f: (abs(Fraction(float(f)) - exact), f.view(np.uint32) & 1)))


NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ITEM = re.compile(rb"(\d+):(.*)", re.DOTALL)


@dataclass
class Wrong(Exception):  # noqa: N818
    line: int | None
    column: int | None


@dataclass(frozen=True)
class Options:
    """What the caller of a reader says about the file."""

    n_features: int | None = None
    zero_based: bool | None = None
    dtype: Any = np.float64


Row = tuple[float, list[tuple[int, float]]]


def reference(text: bytes, options: Options) -> tuple[list[Row], bool]:
    """Rows with indices as in the file, and whether it counts from zero; slow and plain."""
    rows: list[Row] = []
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        if number < len(lines):
            line = line.removesuffix(b"\r")
        if (row := reference_row(line, number, options)) is not None:
            rows.append(row)
    if not rows:
        raise Wrong(None, None)
    zero_based = options.zero_based
    if zero_based is None:
        zero_based = any(pair[0] == 0 for _, pairs in rows for pair in pairs)
        if zero_based and any(pair[0] == options.n_features for _, pairs in rows for pair in pairs):
            raise Wrong(None, None)
    return rows, zero_based


def reference_row(line: bytes, number: int, options: Options) -> Row | None:
    content, hash_, comment = line.partition(b"#")
    tokens = list(re.finditer(rb"[^ \t]+", content))
    row = None
    if tokens:
        here = Wrong(number, tokens[0].start() + 1)
        label = number_at(tokens[0][0], np.float64, here)
        if not is_kept(tokens[0][0].decode(), label):
            raise here
        pairs: list[tuple[int, float]] = []
        for position, token in enumerate(tokens[1:]):
            if position == 0 and re.fullmatch(rb"qid:\d+", token[0]):
                continue
            pairs.append(reference_pair(token, pairs, number, options))
        row = label, pairs
    if hash_ and (found := re.search(rb"[\0\r]", comment)):
        raise Wrong(number, len(content) + 1 + found.start() + 1)
    return row


def is_kept(text: str, value: float) -> bool:
    """Whether a label is a float64 rounded to as many digits as it has, or its shortest form."""
    exact = Decimal(text)
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    off = abs(Fraction(exact) - Fraction(value))
    shortest = len(digits) <= 17 and exact == Decimal(repr(value))
    return shortest or off <= Fraction(10) ** exponent / 2


def reference_pair(
    token: re.Match[bytes], before: list[tuple[int, float]], number: int, options: Options
) -> tuple[int, float]:
    here = Wrong(number, token.start() + 1)
    item = ITEM.fullmatch(token[0])
    if item is None:
        raise here
    index = int(item[1])
    low, high = int(options.zero_based is False), 2**63 - 2
    if options.n_features is not None:
        high = options.n_features - (options.zero_based is True)
    if not low <= index <= high or (before and index <= before[-1][0]):
        raise here
    behind_colon = Wrong(number, token.start() + 1 + len(item[1]) + 1)
    return index, number_at(item[2], options.dtype, behind_colon)


def number_at(token: bytes, dtype: Any, wrong: Wrong) -> float:
    if not NUMBER.fullmatch(token):
        raise wrong
    if dtype == np.float64:
        value = float(token)
    else:
        value = nearest_float32(token.decode())
        value = -0.0 if value == 0 and token.startswith(b"-") else value
    if np.isinf(value):
        raise wrong
    return value


def bits(rows: list[Row]) -> list[Any]:
    return [(label.hex(), [(j, v.hex()) for j, v in pairs]) for label, pairs in rows]


def rows_of(values: Any, indices: Any, indptr: Any, labels: Any, base: int) -> list[Row]:
    pairs = [(int(j) + base, float(v)) for j, v in zip(indices, values, strict=True)]
    rows = zip(labels, pairwise(indptr), strict=True)
    return [(float(label), pairs[first:last]) for label, (first, last) in rows]


def whole(source: Any, options: Options, n_jobs: int) -> tuple[list[Row], bool]:
    data = read_libsvm(source, n_jobs=n_jobs, **asdict(options))
    base = int(not data.zero_based)
    X = data.X
    assert X.dtype == options.dtype
    X.check_format(full_check=True)
    rows = rows_of(X.data, X.indices, X.indptr, data.y, base)
    columns = options.n_features
    if columns is None:
        columns = max((pairs[-1][0] + 1 - base for _, pairs in rows if pairs), default=0)
    assert X.shape == (len(rows), columns)
    return rows, data.zero_based


def in_blocks(source: Any, options: Options, n_jobs: int, size: int) -> tuple[list[Row], bool]:
    blocks = LibsvmBlocks(source, size, n_jobs=n_jobs, **asdict(options))
    rows: list[Row] = []
    for X, y, _ in blocks:
        X.check_format(full_check=True)
        rows += rows_of(X.data, X.indices, X.indptr, y, 0)
    largest = max((j for _, pairs in rows for j, _ in pairs), default=-1)
    width = max(largest + blocks.zero_based, 0)
    assert blocks.n_columns == (width if options.n_features is None else options.n_features)
    return rows, blocks.zero_based


def check(text: bytes, options: Options, folder: Path, piece: int = 16, names: Any = ()) -> None:
    """All readers, or those named, come to the verdict of the reference."""
    path = folder / "text"
    path.write_bytes(text)
    try:
        rows, zero_based = reference(text, options)
        expected: Any = bits(rows), zero_based
    except Wrong as wrong:
        expected = wrong.line, wrong.column
    readers: dict[str, Callable[[], Any]] = {
        "serial": lambda: whole(path, options, 1),
        "n_jobs": lambda: whole(path, options, 2),
        "stream": lambda: whole(io.BytesIO(text), options, 1),
        "single lines": lambda: in_blocks(path, options, 1, 1),
        "short blocks": lambda: in_blocks(path, options, 2, 50),
        "one block": lambda: in_blocks(io.BytesIO(text), options, 2, 10_000),
    }
    with pytest.MonkeyPatch.context() as patch:
        # As short as this, even small texts have many pieces.
        patch.setattr(libsvm, "_PIECE_BYTES", piece)
        for name, reader in readers.items():
            if names and name not in names:
                continue
            try:
                rows, zero_based = reader()
                found: Any = bits(rows), zero_based
            except LibsvmError as error:
                found = error.line, error.column
            assert found == expected, (name, text)


SAMPLE = b"\xef\xbb\xbf+1 qid:2 1:0.5 3:-2e1 # c\r\n\n-1 0:.25\t12345678901:7.25\n3 # 1:2\n.5 9:1"
