"""The file format of models, witnesses and checkpoints: safetensors with checked metadata.

The arrays are the file's tensors, so any reader of safetensors opens them. Everything else is one
JSON text, the value of the metadata's only key, "certsvm": the format version, the kind of the
file, its content, and a digest of all this and of the arrays, which detects damage
(docs/model-format.md).

A file either reads back as it was written, or is refused with the reason. Nothing in it is
executed, and no stated size is allocated before it is compared with the size of the file.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import xxhash
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from certsvm.files.atomic import atomic_write
from certsvm.files.strict_json import from_json, to_json

FORMAT_VERSION = 2

_BEGINNING = b'{"__metadata__":{"certsvm":"'
# What readers of safetensors accept.
_LONGEST_HEADER = 100_000_000
_DTYPES = {np.dtype(f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)}
_DTYPES |= {np.dtype("<f4"), np.dtype("<f8"), np.dtype(np.bool_)}

_FOREIGN = (
    (b"solver_type", "it looks like a liblinear model: certsvm.files.load_liblinear reads it"),
    (b"svm_type", "it looks like a libsvm model, which is not linear in general"),
    (b"\x80", "it looks like a pickle, which certsvm neither writes nor opens"),
    (b"PK\x03\x04", "it looks like a zip archive (an .npz file is one)"),
    (b"\x89HDF\r\n\x1a\n", "it looks like HDF5"),
    (b"\x93NUMPY", "it looks like a NumPy array (.npy)"),
    (b"\x1f\x8b", "it looks compressed with gzip; decompress it first"),
)


class ModelFileError(ValueError):
    """A file is foreign, damaged, of another kind, or made by a newer version."""


@dataclass(frozen=True, eq=False)
class Container:
    """The content of a file: JSON values, and writeable arrays in native byte order."""

    content: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def require_only(self, *, content: set[str], arrays: set[str]) -> None:
        """Raise a ValueError unless it holds exactly these values and arrays."""
        for what, names, expected in (
            ("value", self.content.keys(), content),
            ("array", self.arrays.keys(), arrays),
        ):
            for name in sorted(names ^ expected):
                raise ValueError(
                    f"it has an unknown {what} {name!r}"
                    if name in names
                    else f"it lacks the {what} {name!r}"
                )


def is_container(first_bytes: bytes) -> bool:
    """Whether these are the first bytes, 64 or more, of a certsvm file."""
    return first_bytes.startswith(_BEGINNING, 8)


def kind_of_container(first_bytes: bytes) -> str | None:
    """The kind that the first bytes, 128 or more, of a certsvm file claim; None for others."""
    claimed = re.match(
        rb'\{\\"format\\":\d+,\\"kind\\":\\"(\w+)\\"', first_bytes[8 + len(_BEGINNING) :]
    )
    return claimed.group(1).decode() if claimed and is_container(first_bytes) else None


def write_container(
    path: str | os.PathLike[str],
    kind: str,
    content: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file atomically; the same content gives the same bytes.

    The reader has to ask for the same ``kind``. The content is JSON (``strict_json``); arrays are
    of type float32, float64, int8 to int64, uint8 to uint64 or bool.

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
    data = container_bytes(kind, content, arrays)
    with atomic_write(path) as file:
        file.write(data)


def container_bytes(
    kind: str,
    content: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> bytes:
    """What ``write_container`` writes."""
    stored = {name: _stored(name, array) for name, array in arrays.items()}
    document = {"format": FORMAT_VERSION, "kind": kind, "content": dict(content)}
    text = to_json({**document, "digest": _digest(document, stored)}, "content")
    try:
        data: bytes = save(stored, {"certsvm": text.decode()})
    except SafetensorError as error:
        raise _header_too_long(text, str(error)) from None
    # safetensors before 0.7 writes headers that it does not read.
    if (length := int.from_bytes(data[:8], "little")) > _LONGEST_HEADER:
        raise _header_too_long(text, f"{length} bytes")
    return data


def _header_too_long(text: bytes, why: str) -> ValueError:
    return ValueError(
        f"names and parameters take {len(text)} bytes, more than the header of a safetensors file "
        f"has room for ({why})"
    )


def _stored(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """The array in the layout of the file: contiguous and little-endian."""
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _DTYPES:
        raise ValueError(f"array {name!r} is of type {array.dtype}, which files do not hold")
    if name in ("__metadata__", "$float"):
        raise ValueError(f"no array can be called {name!r}: the format uses the name")
    return np.asarray(array, dtype=dtype, order="C")


def _digest(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """XXH3-128 of the document and the arrays with their types and shapes."""
    whole = xxhash.xxh3_128()
    whole.update(to_json(dict(document), "content"))
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(to_json([name, array.dtype.str, list(array.shape)], "array"))
        whole.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return whole.hexdigest()


def read_container(path: str | os.PathLike[str], kind: str) -> Container:
    """Read a regular file and check all of it.

    A file that is foreign, damaged, of another kind or made by a newer version raises a
    ``ModelFileError``.
    """
    name = os.fspath(path)
    data = _read(name)
    try:
        document = _document(data)
        if document["format"] > FORMAT_VERSION:
            raise ModelFileError(
                f"{name} was written by a newer certsvm (format {document['format']}; this one "
                f"reads formats up to {FORMAT_VERSION}). Upgrade certsvm."
            )
        arrays = load(data)
        for label, array in arrays.items():
            if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
                raise ValueError(f"a boolean of array {label!r} is neither 0 nor 1")
    except ModelFileError:
        raise
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise ModelFileError(f"{name} is truncated or damaged: {error}") from None
    claimed = document.pop("digest")
    little = {
        label: array.astype(array.dtype.newbyteorder("<"), copy=False)
        for label, array in arrays.items()
    }
    if _digest(document, little) != claimed:
        raise ModelFileError(
            f"{name} is damaged: its digest is not that of its content. Take another copy."
        )
    if document["kind"] != kind:
        raise ModelFileError(f"{name} holds a {document['kind']}, not a {kind}")
    return Container(document["content"], arrays)


def _read(name: str) -> bytes:
    """All bytes of a file, if it begins like a certsvm file."""
    with _open_regular(name) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise ModelFileError(f"{name} is empty")
        start = file.read(64)
        if not is_container(start):
            raise _foreign(name, start)
        file.seek(0)
        try:
            _require_stated_size(file, size)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ModelFileError(f"{name} is truncated or damaged: {error}") from None
        file.seek(0)
        data = file.read(size)
        if len(data) != size or file.read(1):
            raise ModelFileError(f"{name} changed while it was read; read it again")
    return data


def _require_stated_size(file: IO[bytes], size: int) -> None:
    """Raise unless header and arrays make up the file, of which only the header is read."""
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise ValueError(f"it has {size} bytes, its header alone {length + 8}")
    tensors = from_json(file.read(length))
    ends = [tensor["data_offsets"][1] for key, tensor in tensors.items() if key != "__metadata__"]
    stated = 8 + length + max(ends, default=0)
    if stated != size:
        raise ValueError(f"it has {size} bytes, and its header speaks of {stated}")


def _open_regular(name: str) -> IO[bytes]:
    # Opening a pipe would otherwise block until another process writes to it.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    what = "a folder"
    # Windows does not open folders.
    if not os.path.isdir(name):
        descriptor = os.open(name, flags)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return open(descriptor, "rb")
        os.close(descriptor)
        what = "a pipe, a device or a socket"
    raise ModelFileError(f"{name} is {what}; certsvm reads regular files only")


def _foreign(name: str, start: bytes) -> ModelFileError:
    hint = f"it begins with {start[:8]!r}"
    if start[8:9] == b"{":
        hint = "it is a safetensors file without the metadata of certsvm, or a damaged one"
    else:
        hint = next((text for first, text in _FOREIGN if start.startswith(first)), hint)
    return ModelFileError(f"{name} is not a file of certsvm: {hint}")


def _document(data: bytes) -> dict[str, Any]:
    """The JSON document in the header, checked against the format."""
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8:
        raise ValueError(f"it has {len(data)} bytes, its header alone {length + 8}")
    metadata = from_json(data[8 : 8 + length])["__metadata__"]
    if not isinstance(metadata, dict) or metadata.keys() != {"certsvm"}:
        raise ValueError("its metadata has other keys beside 'certsvm'")
    document = from_json(str(metadata["certsvm"]).encode())
    types = {"format": int, "kind": str, "content": dict, "digest": str}
    if not isinstance(document, dict) or document.keys() != types.keys():
        raise ValueError(f"its metadata needs {', '.join(types)}, and nothing else")
    for key, required in types.items():
        if not isinstance(document[key], required) or isinstance(document[key], bool):
            raise ValueError(f"{key} is no {required.__name__}")
    if document["format"] < 1:
        raise ValueError(f"there is no format {document['format']}")
    return document
