r"""One file format for models, witnesses and checkpoints: safetensors with checked metadata.

The arrays are the file's tensors, so any reader of safetensors opens them. Everything else is one
JSON text, the value of the metadata's only key, "certsvm": the format version, a digest, the kind
of the file and its content. docs/model-format.md describes them.

The digest is the XXH3-128 of the whole file without the digest's own 32 digits. They lie at a fixed
place, since the header begins with the metadata and the JSON text with version and digest:

    8 bytes   {"__metadata__":{"certsvm":"{\"format\":1,\"digest\":\"   32 digits   \",\"kind\":...

A file either reads back as it was written, or is refused with the reason. Nothing in it is
executed, and no size that it states is allocated: reading takes twice the file's actual size.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import xxhash
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from certsvm.storage.atomic import atomic_write
from certsvm.storage.strict_json import from_json, to_json

FORMAT_VERSION = 1

# The limit of safetensors' own reader.
_LONGEST_HEADER = 100_000_000
_BEGINNING = rb'{"__metadata__":{"certsvm":"{\"format\":'
_UP_TO_DIGEST = _BEGINNING + rb"%d,\"digest\":\"" % FORMAT_VERSION
_DIGEST = slice(8 + len(_UP_TO_DIGEST), 8 + len(_UP_TO_DIGEST) + 32)
_CHUNK = 1 << 24
_DTYPES = {
    f"{letter}{8 * size}": np.dtype(f"<{letter.lower()}{size}")
    for letter, sizes in (("F", (4, 8)), ("I", (1, 2, 4, 8)), ("U", (1, 2, 4, 8)))
    for size in sizes
}
_DTYPES["BOOL"] = np.dtype(np.bool_)
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_FOREIGN = (
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
        By name, writeable, in the machine's own byte order.
    """

    content: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def is_container(first_bytes: bytes) -> bool:
    """Whether a file that begins with these bytes was written by ``write_container``.

    Parameters
    ----------
    first_bytes : bytes
        The first 64 bytes of the file, or more.

    Returns
    -------
    ours : bool
        True for files of newer formats and for damaged ones, too.
    """
    return first_bytes.startswith(_BEGINNING, 8)


def write_container(
    path: str | os.PathLike[str],
    kind: str,
    content: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file, atomically. The same content gives the same bytes.

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
    ...     container = read_container(path, "example")
    >>> container.content, container.arrays["w"].tolist()
    ({'C': 0.1}, [0, 1, 2])
    """
    stored = [(name, _stored(name, array)) for name, array in arrays.items()]
    # The header ends at a multiple of 8, so this order aligns every array.
    stored.sort(key=lambda item: -item[1].itemsize)
    text = to_json(
        {"format": FORMAT_VERSION, "digest": "0" * 32, "kind": kind, "content": dict(content)},
        "header",
    )
    start = bytearray(_start(text.decode(), stored))
    data = [array.reshape(-1).view(np.uint8).data for _, array in stored]
    start[_DIGEST] = _digest([memoryview(start), *data])
    with atomic_write(path) as file:
        file.write(start)
        for part in data:
            for first in range(0, len(part), _CHUNK):
                file.write(part[first : first + _CHUNK])


def _stored(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """The array as it lies in the file: contiguous and little-endian."""
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _NAMES:
        raise ValueError(f"array {name!r} is of type {array.dtype}, which files do not hold")
    if name == "__metadata__":
        raise ValueError("no array can be called '__metadata__': safetensors uses the name")
    return np.asarray(array, dtype=dtype, order="C")


def _start(text: str, stored: list[tuple[str, NDArray[Any]]]) -> bytes:
    """What precedes the arrays: the header's length and the header, as safetensors defines it."""
    entries: dict[str, Any] = {"__metadata__": {"certsvm": text}}
    end = 0
    for name, array in stored:
        first, end = end, end + array.nbytes
        entries[name] = {
            "dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [first, end],
        }  # fmt: skip
    header = to_json(entries, "header")
    header = header.ljust(-(-len(header) // 8) * 8)
    if len(header) > _LONGEST_HEADER:
        raise ValueError(
            f"names and parameters take {len(header)} bytes, more than the {_LONGEST_HEADER} that "
            "the header of a safetensors file has room for"
        )
    return len(header).to_bytes(8, "little") + header


def _digest(parts: Iterable[memoryview]) -> bytes:
    """The digest of a file, whose first part contains the place for it."""
    whole = xxhash.xxh3_128()
    first, *others = parts
    whole.update(first[: _DIGEST.start])
    whole.update(first[_DIGEST.stop :])
    for part in others:
        whole.update(part)
    return whole.hexdigest().encode()


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
    data = _read(name)
    try:
        tensors = deserialize(data)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise ModelFileError(f"{name} is truncated or damaged: {error}") from None
    if _digest([memoryview(data)]) != data[_DIGEST]:
        raise ModelFileError(
            f"{name} is damaged: its digest is not that of its content. Take another copy."
        )
    try:
        metadata = _metadata(data[8 : 8 + _header_length(data)])
    except ValueError as error:
        raise ModelFileError(f"{name}: its header is not valid: {error}") from None
    if metadata["kind"] != kind:
        raise ModelFileError(f"{name} holds a {metadata['kind']}, not a {kind}")
    arrays = {}
    for key, tensor in tensors:
        try:
            arrays[key] = _array(tensor)
        except (ValueError, OverflowError) as error:
            raise ModelFileError(f"{name}: its array {key!r} is not valid: {error}") from None
    return Container(metadata["content"], arrays)


def _read(name: str) -> bytes:
    """The whole file, if it begins like one of certsvm's."""
    with _open_regular(name) as file:
        size = os.fstat(file.fileno()).st_size
        _check_start(name, file.read(_DIGEST.stop), size)
        file.seek(0)
        data = file.read(size)
        if len(data) != size or file.read(1):
            raise ModelFileError(f"{name} changed while it was read; read it again")
    return data


def _open_regular(name: str) -> IO[bytes]:
    # Non-blocking, as opening a pipe would otherwise wait for someone to write to it.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(name, flags)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
    raise ModelFileError(f"{name} is {what}; certsvm reads regular files only")


def _check_start(name: str, start: bytes, size: int) -> None:
    """Refuse what can be told from the first bytes, before the rest is read."""
    if size == 0:
        raise ModelFileError(f"{name} is empty")
    length = _header_length(start)
    if len(start) < _DIGEST.stop:
        if length <= _LONGEST_HEADER and _UP_TO_DIGEST.startswith(start[8 : _DIGEST.start]):
            raise ModelFileError(f"{name} is truncated: it has only {size} bytes")
        raise _foreign(name, start)
    if not is_container(start):
        raise _foreign(name, start)
    version = re.match(rb"\d+", start[8 + len(_BEGINNING) :])
    if version is not None and int(version[0]) > FORMAT_VERSION:
        raise ModelFileError(
            f"{name} was written by a newer certsvm (format {int(version[0])}; this one reads "
            f"formats up to {FORMAT_VERSION}). Upgrade certsvm."
        )
    if not start.startswith(_UP_TO_DIGEST, 8):
        raise ModelFileError(f"{name} is damaged: its format version is not valid")
    if length > _LONGEST_HEADER:
        raise ModelFileError(f"{name} is damaged: its header is too large ({length} bytes)")
    if length > size - 8:
        raise ModelFileError(
            f"{name} is truncated: it has {size} bytes, its header alone {length + 8}"
        )


def _header_length(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _foreign(name: str, start: bytes) -> ModelFileError:
    what = f"it begins with {start[:8]!r}"
    # First: its length may begin like a pickle.
    if start[8:9] == b"{" and _header_length(start) <= _LONGEST_HEADER:
        what = "it is a safetensors file without the metadata of certsvm"
    else:
        what = next((hint for first, hint in _FOREIGN if start.startswith(first)), what)
    return ModelFileError(f"{name} is not a file of certsvm: {what}")


def _metadata(header: bytes) -> dict[str, Any]:
    """The JSON text in the header, if it is strictly what the format says."""
    entries = from_json(header)["__metadata__"]
    if entries.keys() != {"certsvm"}:
        raise ValueError("its metadata has other keys beside 'certsvm'")
    metadata = from_json(entries["certsvm"].encode())
    types = {"format": int, "digest": str, "kind": str, "content": dict}
    if not isinstance(metadata, dict) or metadata.keys() != types.keys():
        raise ValueError(f"it needs {', '.join(types)}, and nothing else")
    for key, required in types.items():
        if not isinstance(metadata[key], required):
            raise ValueError(f"{key} is no {required.__name__}")
    return metadata


def _array(tensor: Mapping[str, Any]) -> NDArray[Any]:
    if tensor["dtype"] not in _DTYPES:
        raise ValueError(f"it is of type {tensor['dtype']}")
    dtype = _DTYPES[tensor["dtype"]]
    values = np.frombuffer(tensor["data"], dtype=np.uint8)
    if dtype == np.bool_ and (values > 1).any():
        raise ValueError("a boolean is neither 0 nor 1")
    # Fails where one length is zero and the others are absurd.
    array = values.view(dtype).reshape(tensor["shape"])
    return array.astype(dtype.newbyteorder("="), copy=False)
