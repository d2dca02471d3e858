"""One file format for models, witnesses and checkpoints: JSON, arrays, and a digest of it all.

Nothing in such a file is ever executed, and nothing in it is believed before it is checked: sizes
are compared with the file's own before memory is asked for, and a digest finds any damage. A
file either reads back as it was written, or says what is wrong with it. docs/model-format.md
describes every byte.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, NoReturn

import numpy as np
import xxhash
from numpy.typing import NDArray

from certsvm.storage.atomic import atomic_write

FORMAT_VERSION = 1

# As in PNG: a byte that is no text, and a line ending that a transfer as text would change.
MAGIC = b"\x89CSVM\r\n\x1a"
_PREAMBLE = struct.Struct("<8sIIQQ")
_ALIGNMENT = 64
_DIGEST_BYTES = 16
_CHUNK = 1 << 24
# Parsed JSON takes many times the memory of its text.
_LONGEST_HEADER = 1 << 28
_MOST_DIMENSIONS = 8
_DTYPES = {
    name: np.dtype("<" + name)
    for name in ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
}
_DTYPES["bool"] = np.dtype(np.bool_)
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_FLOAT_KEY = "$float"

_FOREIGN = (
    (b"\x89CSVM", "it was changed by a transfer as text; transfer it again, as binary"),
    (b"solver_type", "it looks like a liblinear model: certsvm.models.load_liblinear reads it"),
    (b"svm_type", "it looks like a libsvm model, which is not linear in general"),
    (b"\x80", "it looks like a pickle, which certsvm neither writes nor opens"),
    (b"PK\x03\x04", "it looks like a zip archive (an .npz file is one)"),
    (b"\x89HDF\r\n\x1a\n", "it looks like HDF5"),
    (b"\x93NUMPY", "it looks like a NumPy array (.npy)"),
    (b"\x1f\x8b", "it looks compressed with gzip; decompress it first"),
)


class ModelFileError(ValueError):
    """A file is not what it should be: foreign, damaged, or made by a newer version."""


@dataclass(frozen=True, eq=False)
class Container:
    """What a file holds.

    Attributes
    ----------
    content : dict
        JSON: None, booleans, integers, floats, strings, lists and dicts with string keys.
    arrays : dict of ndarray
        By name, in the machine's own byte order. They share one piece of memory.
    """

    content: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write_container(
    path: str | os.PathLike[str],
    kind: str,
    content: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file, atomically.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    kind : str
        What it holds, such as "model"; who reads it has to ask for the same.
    content : dict
        What JSON can say. Floats are kept exactly, infinities and NaN included.
    arrays : dict of ndarray
        Of type float32, float64, int8 to int64, uint8 to uint64 or bool.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "example")
    ...     write_container(path, "example", {"C": 0.1}, {"w": np.arange(3)})
    ...     found = read_container(path, "example")
    >>> found.content, found.arrays["w"].tolist()
    ({'C': 0.1}, [0, 1, 2])
    """
    stored = {name: _stored(name, array) for name, array in arrays.items()}
    entries: list[dict[str, Any]] = []
    length = 0
    for name, array in stored.items():
        offset = _aligned(length)
        entries.append(
            {
                "name": name,
                "dtype": _NAMES[array.dtype],
                "shape": list(array.shape),
                "offset": offset,
                "nbytes": array.nbytes,
            }
        )
        length = offset + array.nbytes
    header = _to_json({"kind": kind, "content": dict(content), "arrays": entries})
    if len(header) > _LONGEST_HEADER:
        raise ValueError(
            f"names and parameters take {len(header)} bytes, more than the {_LONGEST_HEADER} that "
            "a file has room for"
        )
    data_start = _aligned(_PREAMBLE.size + len(header))
    total = data_start + length + _DIGEST_BYTES
    with atomic_write(path) as file:
        out = _HashingWriter(file)
        out.write(_PREAMBLE.pack(MAGIC, FORMAT_VERSION, 0, len(header), total))
        out.write(header)
        for entry, array in zip(entries, stored.values(), strict=True):
            out.pad_to(data_start + entry["offset"])
            out.write(array.reshape(-1).view(np.uint8).data)
        out.pad_to(data_start + length)
        file.write(out.digest())


class _HashingWriter:
    """Writes, counts and hashes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = xxhash.xxh3_128()
        self._position = 0

    def write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        for start in range(0, len(view), _CHUNK):
            part = view[start : start + _CHUNK]
            self._hash.update(part)
            self._file.write(part)
        self._position += len(view)

    def pad_to(self, position: int) -> None:
        self.write(bytes(position - self._position))

    def digest(self) -> bytes:
        return self._hash.digest()


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT


def _stored(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """The array as it lies in the file: contiguous and little-endian."""
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _NAMES:
        raise ValueError(f"array {name!r} is of type {array.dtype}, which files do not hold")
    if array.ndim > _MOST_DIMENSIONS:
        raise ValueError(f"array {name!r} has {array.ndim} dimensions, files hold at most 8")
    return np.asarray(array, dtype=dtype, order="C")


def _to_json(value: Any) -> bytes:
    text = json.dumps(
        encoded(value, "content"), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"a string with a lone surrogate cannot be stored: {error}") from None


def encoded(value: Any, where: str) -> Any:
    """The value as JSON can hold it; a ValueError says where it is something else.

    Floats that JSON has no number for become ``{"$float": "inf"}``, "-inf" or "nan".
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"{where} is {value}: an integer of more than 64 bits")
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return {_FLOAT_KEY: "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, list | tuple):
        return [encoded(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, dict):
        raise ValueError(f"{where} is of type {type(value).__name__}, which JSON does not have")
    for key in value:
        if not isinstance(key, str) or key == _FLOAT_KEY:
            raise ValueError(f"{where} has the key {key!r}; keys are strings other than '$float'")
    return {key: encoded(item, f"{where}[{key!r}]") for key, item in value.items()}


def read_container(path: str | os.PathLike[str], kind: str) -> Container:
    """Read a file and check all of it.

    Parameters
    ----------
    path : str or path-like
        A regular file.
    kind : str
        What it should hold.

    Returns
    -------
    container : Container
        What was written.

    Raises
    ------
    ModelFileError
        The file is foreign, damaged, of another kind or made by a newer version.
    """
    name = os.fspath(path)
    data = _read_all(name)
    _, _, _, header_length, _ = _PREAMBLE.unpack_from(data.data)
    header = _parsed(name, data[_PREAMBLE.size : _PREAMBLE.size + header_length].tobytes())
    if header["kind"] != kind:
        raise ModelFileError(f"{name} holds a {header['kind']}, not a {kind}")
    body = data[_aligned(_PREAMBLE.size + header_length) : data.size - _DIGEST_BYTES]
    return Container(header["content"], _arrays(name, header["arrays"], body))


def _read_all(name: str) -> NDArray[np.uint8]:
    """The whole file, once its length and its digest are right."""
    with _open_regular(name) as file:
        size = os.fstat(file.fileno()).st_size
        _check_preamble(name, file.read(_PREAMBLE.size), size)
        data = np.empty(size, dtype=np.uint8)
        file.seek(0)
        if _fill(file, data) != data.size or file.read(1):
            raise ModelFileError(f"{name} changed while it was read; read it again")
    whole = xxhash.xxh3_128()
    for first in range(0, data.size - _DIGEST_BYTES, _CHUNK):
        whole.update(data[first : min(first + _CHUNK, data.size - _DIGEST_BYTES)].data)
    if whole.digest() != data[-_DIGEST_BYTES:].tobytes():
        raise ModelFileError(
            f"{name} is damaged: its digest is not that of its content. Take another copy."
        )
    return data


def _open_regular(name: str) -> IO[bytes]:
    # Non-blocking, as opening a pipe would otherwise wait for someone to write to it.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(name, flags)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb", buffering=0)
    os.close(descriptor)
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
    raise ModelFileError(f"{name} is {what}; certsvm reads regular files only")


def _fill(file: IO[bytes], data: NDArray[np.uint8]) -> int:
    """Read until the array is full or the file ends; one read may bring less than asked for."""
    view, filled = data.data, 0
    while filled < data.size:
        count = file.readinto(view[filled : filled + _CHUNK])  # type: ignore[attr-defined]
        if not count:
            break
        filled += count
    return filled


def _check_preamble(name: str, start: bytes, size: int) -> None:
    if size == 0:
        raise ModelFileError(f"{name} is empty")
    if not (start.startswith(MAGIC) or MAGIC.startswith(start)):
        for beginning, what in _FOREIGN:
            if start.startswith(beginning):
                raise ModelFileError(f"{name} is not a file of certsvm: {what}")
        raise ModelFileError(f"{name} is not a file of certsvm: it begins with {start[:8]!r}")
    if len(start) < _PREAMBLE.size:
        raise ModelFileError(f"{name} is truncated: it has only {size} bytes")
    _, version, reserved, header_length, total = _PREAMBLE.unpack(start)
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{name} was written by a newer certsvm (format {version}; this one reads formats up "
            f"to {FORMAT_VERSION}). Upgrade certsvm."
        )
    if version != FORMAT_VERSION or reserved != 0:
        raise ModelFileError(f"{name} is damaged: there is no format {version}.{reserved}")
    if size < total:
        raise ModelFileError(f"{name} is truncated: it has {size} of {total} bytes")
    if size > total:
        raise ModelFileError(f"{name} is damaged: it has {size - total} bytes more than it states")
    if header_length > _LONGEST_HEADER:
        raise ModelFileError(f"{name} is damaged: its header is too large ({header_length} bytes)")
    if _aligned(_PREAMBLE.size + header_length) + _DIGEST_BYTES > total:
        raise ModelFileError(f"{name} is damaged: its header reaches beyond its end")


def _parsed(name: str, text: bytes) -> dict[str, Any]:
    """The header, if it is strictly what the format says."""
    try:
        header = json.loads(
            text.decode(),
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
        # Whoever reads the strings relies on them being text.
        if b"\\u" in text:
            json.dumps(header, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{name}: its header is not valid: {error}") from None
    types = {"kind": str, "content": dict, "arrays": list}
    if not isinstance(header, dict) or header.keys() != types.keys():
        raise ModelFileError(f"{name}: its header is not valid: it needs {', '.join(types)}")
    for key, kind in types.items():
        if not isinstance(header[key], kind):
            raise ModelFileError(f"{name}: its header is not valid: {key} is no {kind.__name__}")
    return header


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    if _FLOAT_KEY not in found:
        return found
    stands_for = found[_FLOAT_KEY]
    if len(found) != 1 or not isinstance(stands_for, str) or stands_for not in _NON_FINITE:
        raise ValueError(f"{found} stands for no float")
    return _NON_FINITE[stands_for]


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a float64")
    return value


def _arrays(name: str, entries: list[Any], body: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    end = 0
    for entry in entries:
        try:
            key, dtype, shape, nbytes = _checked_entry(entry, end, body.size)
            if key in arrays:
                raise ValueError("its name occurs twice")
            stored = body[entry["offset"] : entry["offset"] + nbytes]
            if dtype == np.bool_ and (stored > 1).any():
                raise ValueError("a boolean is neither 0 nor 1")
            # Fails where one length is zero and the others are absurd.
            array = stored.view(dtype).reshape(shape)
        except ValueError as error:
            raise ModelFileError(f"{name}: its array {len(arrays)} is not valid: {error}") from None
        arrays[key] = array.astype(dtype.newbyteorder("="), copy=False)
        end = entry["offset"] + nbytes
    if end != body.size:
        raise ModelFileError(f"{name}: {body.size - end} bytes after its arrays belong to none")
    return arrays


def _checked_entry(
    entry: Any, previous_end: int, available: int
) -> tuple[str, np.dtype[Any], tuple[int, ...], int]:
    """An array's name, type, shape and size, if there is room for it where it is said to be."""
    keys = {"name", "dtype", "shape", "offset", "nbytes"}
    if not isinstance(entry, dict) or entry.keys() != keys or not isinstance(entry["name"], str):
        raise ValueError(f"its description needs {', '.join(sorted(keys))}")
    shape, offset, nbytes = entry["shape"], entry["offset"], entry["nbytes"]
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
        raise ValueError(f"there is no type {entry['dtype']!r}")
    if not (isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS):
        raise ValueError(f"its shape is {shape!r}")
    # Not isinstance: a boolean is an int to Python.
    if not all(type(n) is int and n >= 0 for n in [*shape, offset, nbytes]):
        raise ValueError("its shape, offset and size must be integers >= 0")
    dtype = _DTYPES[entry["dtype"]]
    if math.prod(shape) * dtype.itemsize != nbytes:
        raise ValueError(f"shape {shape} of {entry['dtype']} does not take {nbytes} bytes")
    if offset + nbytes > available:
        raise ValueError("it reaches outside the file")
    if offset < previous_end:
        raise ValueError("it overlaps the one before it")
    if offset != _aligned(previous_end):
        raise ValueError(f"it begins at {offset}, not at {_aligned(previous_end)}")
    return entry["name"], dtype, tuple(shape), nbytes
