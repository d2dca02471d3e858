"""Mutations of files that know their structure: bytes, numbers in text, JSON, arrays, digests."""

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from certsvm.files.container import read_container, write_container
from tests.files.hostile import rows, write_blocks

NUMBERS = ("0", "-0", "-1", "1e308", "-1e309", "5e-324", "nan", "inf", "1e-400", "2147483647",
           "2147483648", "9223372036854775807", "9223372036854775808", "99999999999999999999999",
           "1e999999999", "0x10", "1_000", "1.", ".5", "+1", "--1", "", "1:1", "é", "\0",
           "9" * 400, "0." + "0" * 400 + "1")  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, -1, 1, 2, 255, 2**31, 2**63 - 1, 1e308, 5e-324, 0.5, -0.0, math.nan, math.inf, -math.inf,
    True, False, None, "", "x" * 300, "\x1b[31m", "\0", [], {}, [1], [[1]], {"a": 1},
)  # fmt: skip
TYPES = ("f8", "f4", "i8", "i4", "u1", "u2", "u8", "?")


def mutated_bytes(data: bytes, r: random.Random) -> bytes:
    """Flip bits, cut, duplicate, splice, or overwrite with the bytes of an extreme number."""
    for _ in range(r.choice([1, 1, 1, 2, 5])):
        if not data:
            return data
        i, j = sorted(r.randrange(len(data) + 1) for _ in range(2))
        way, buffer = r.randrange(7), bytearray(data)
        if way == 0:
            buffer[min(i, len(data) - 1)] ^= 1 << r.randrange(8)
        elif way == 1:
            del buffer[i:]
        elif way == 2:
            buffer[j:j] = data[i:j] * r.choice([1, 1, 3])
        elif way == 3:
            del buffer[i:j]
        elif way == 4:
            k = r.randrange(len(data))
            buffer[k : k + (j - i)] = data[i:j]
        elif way == 5:
            size, value = r.choice([1, 2, 4, 8]), r.choice([0, 1, -1, 2**31 - 1, -(2**31), 2**62])
            buffer[i : i + size] = value.to_bytes(8, "little", signed=True)[:size]
        else:
            buffer[i:i] = r.randbytes(r.choice([1, 8, 100]))
        data = bytes(buffer)
    return data


def mutated_text(data: bytes, r: random.Random) -> bytes:
    """Replace a number by an extreme one, or change lines, words or bytes."""
    way = r.randrange(5)
    if way == 0:
        return mutated_bytes(data, r)
    if way == 1:
        lines = data.split(b"\n")
        i, j = r.randrange(len(lines)), r.randrange(len(lines))
        lines[i] = r.choice([b"", lines[j], lines[i] * 2, lines[i] + lines[j], lines[i][::-1]])
        return r.choice([b"\n", b"\n", b"\r\n", b"\r"]).join(lines)
    if way == 2:
        words = re.split(rb"([ ,:\n])", data)
        i, j = r.randrange(len(words)), r.randrange(len(words))
        words[i], words[j] = words[j], words[i]
        return b"".join(words)
    found = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", data))
    for match in sorted(r.sample(found, min(len(found), r.choice([1, 1, 2]))), reverse=True,
                        key=lambda m: m.start()):  # fmt: skip
        data = data[: match.start()] + r.choice(NUMBERS).encode() + data[match.end() :]
    return data


def mutated_json(value: Any, r: random.Random) -> Any:
    """Change one place of a JSON value."""
    if isinstance(value, dict) and value and r.random() < 0.9:
        name = r.choice(sorted(value))
        changed = dict(value)
        if r.random() < 0.1:
            del changed[name]
        elif r.random() < 0.1:
            changed[r.choice(["", "x", name + "."])] = r.choice(VALUES)
        else:
            changed[name] = mutated_json(value[name], r)
        return changed
    if isinstance(value, list) and value and r.random() < 0.8:
        i = r.randrange(len(value))
        return [*value[:i], *r.choice([[], [value[i]] * 2, [mutated_json(value[i], r)]]),
                *value[i + 1 :]]  # fmt: skip
    if isinstance(value, int | float) and not isinstance(value, bool) and r.random() < 0.5:
        ways = (value + 1, -value, value * 2, value * (1 + 1e-9), float(value), str(value))
        return r.choice(ways)
    return r.choice(VALUES)


def mutated_array(array: Any, r: random.Random) -> Any:
    """Change values, type or shape of an array."""
    way = r.randrange(5)
    with np.errstate(all="ignore"):
        if way == 0:
            return array.astype(r.choice(TYPES))
        if way == 1:
            return array.reshape(r.choice([(-1,), (1, -1), (-1, 1), (1, 1, -1)]))
        if way == 2:
            return array[: r.randrange(len(array) + 1)] if array.ndim and len(array) else array
        if way == 3:
            return np.concatenate([array, array]) if array.ndim else array
        changed = array.copy()
        if changed.size:
            place = r.randrange(changed.size)
            value = float(changed.reshape(-1)[place]) * r.choice([2.0, -1.0, 1.001])
            if r.random() < 0.6:
                value = r.choice([0.0, 1.0, -1.0, 1e300, 5e-324, np.nan, np.inf, 2.0**31, 2.0**62])
            changed.reshape(-1)[place] = np.float64(value).astype(changed.dtype)
        return changed


def mutated_container(path: Path, kind: str, out: Path, r: random.Random) -> None:
    """Change the bytes, the header, or content and arrays with a digest made anew."""
    way, data = r.random(), path.read_bytes()
    if way < 0.2:
        out.write_bytes(mutated_bytes(data, r))
        return
    if way < 0.4:
        length = int.from_bytes(data[:8], "little")
        header = mutated_json(json.loads(data[8 : 8 + length]), r)
        text = json.dumps(header, separators=(",", ":")).encode()
        out.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
        return
    file = read_container(path, kind)
    content, arrays = file.content, dict(file.arrays)
    for _ in range(r.choice([1, 1, 2])):
        if arrays and r.random() < 0.5:
            name = r.choice(sorted(arrays))
            arrays[name] = mutated_array(arrays[name], r)
            if r.random() < 0.1:
                arrays[r.choice(["x", name + ".x", ""])] = arrays.pop(name)
        else:
            changed = mutated_json(content, r)
            content = changed if isinstance(changed, dict) else {}
    # What the writer refuses cannot be in a file of this form.
    try:
        write_container(out, kind, content, arrays)
    except (ValueError, TypeError, OverflowError):
        out.write_bytes(mutated_bytes(data, r))


def mutated_blocks(path: Path, out: Path, r: random.Random) -> None:
    """Change the bytes, or write other numbers and headers with right digests."""
    if r.random() < 0.5:
        out.write_bytes(mutated_bytes(path.read_bytes(), r))
        return
    arrays: list[Any] = [*rows(12, seed=r.randrange(1000))]
    ones = np.ones(len(arrays[2]))
    arrays.append(ones if r.random() < 0.3 else None)
    header: dict[str, Any] = {}
    way = r.randrange(5)
    if way < 4:
        arrays[way] = mutated_array(ones if way == 3 else arrays[way], r)
    else:
        names = ["format", "n_rows", "n_columns", "n_values", "shuffled", "feature_names", "source"]
        header = {r.choice([*names, "zero_based", "x"]): r.choice(VALUES)}
    try:
        write_blocks(out, *arrays, **header)
    except (ValueError, TypeError, LookupError, pa.ArrowException, ZeroDivisionError):
        out.write_bytes(mutated_bytes(path.read_bytes(), r))


def mutated_parquet(path: Path, out: Path, r: random.Random) -> None:
    """Change the bytes, or write a table of other columns."""
    if r.random() < 0.6:
        out.write_bytes(mutated_bytes(path.read_bytes(), r))
        return
    table = pa.parquet.read_table(path)
    i = r.randrange(table.num_columns)
    column: list[Any] = table.column(i).to_pylist()
    makers: list[Callable[[], Any]] = [
        lambda: pa.array([*column[1:], r.choice([math.nan, math.inf, None, 1e308])], pa.float64()),
        lambda: pa.array([r.choice([0, 2**62, 2**64 - 1]) for _ in column], pa.uint64()),
        lambda: pa.array([r.choice(["", "a", "1", "\0"]) for _ in column]),
        lambda: pa.array([[1.0]] * len(column)),
        lambda: pa.nulls(len(column)),
        lambda: pa.array([r.random() < 0.5 for _ in column]),
        lambda: pa.array([b"\xff"] * len(column)),
        lambda: pa.array(column, pa.float64()).dictionary_encode(),
    ]
    name = r.choice([table.column_names[i], "", "label", "x\n"])
    table = table.set_column(i, name, r.choice(makers)())
    if r.random() < 0.2:
        table = table.slice(0, r.choice([0, 1]))
    pa.parquet.write_table(table, out)
