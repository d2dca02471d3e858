"""The file format of models, witnesses and checkpoints: safetensors with checked metadata.

The arrays are the file's tensors, so any reader of safetensors opens them. Everything else is one
JSON text, the value of the metadata's only key, "certsvm" (docs/model-format.md).

A file either reads back as it was written, or is refused with the reason. Nothing in it is
executed, and no stated size is allocated before it is compared with the size of the file.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from certsvm.files.atomic import atomic_write

FORMAT_VERSION = 1

_BEGINNING = rb'{"__metadata__":{"certsvm":"{\"crc32\":\"'
_DIGITS = slice(8 + len(_BEGINNING), 8 + len(_BEGINNING) + 8)
_KIND = re.compile(rb'\\",\\"format\\":\d+,\\"kind\\":\\"(\w+)\\"')
# What readers of safetensors accept.
_LONGEST_HEADER = 100_000_000

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}


class ModelFileError(ValueError):
    """A file is foreign, damaged, of another kind, or made by a newer version."""


class Container(NamedTuple):
    """The content of a file: JSON values, and writeable arrays in native byte order."""

    content: dict[str, Any]
    arrays: dict[str, Any]


def kind_of_container(first_bytes: bytes) -> str | None:
    """The kind that the first bytes, 128 or more, of a certsvm file claim; None for others."""
    claimed = _KIND.match(first_bytes, _DIGITS.stop)
    ours = first_bytes.startswith(_BEGINNING, 8)
    return claimed.group(1).decode() if claimed and ours else None


def write_container(
    path: str | os.PathLike[str], kind: str, content: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write a file atomically; the same content gives the same bytes.

    The reader has to ask for the same ``kind``. The content is for ``to_json``; arrays are of types
    that safetensors holds.

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
    parts = container_parts(kind, content, arrays)
    with atomic_write(path) as file:
        file.writelines(parts)


def container_parts(
    kind: str, content: Mapping[str, Any], arrays: Arrays
) -> list[bytes | memoryview]:
    """What ``write_container`` writes, in consecutive parts."""
    document = {"crc32": "0" * 8, "format": FORMAT_VERSION, "kind": kind, "content": content}
    stored = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        data = memoryview(save(stored, {"certsvm": to_json(document)}))
    except SafetensorError as error:
        raise ValueError(f"safetensors cannot hold this: {error}") from None
    # safetensors before 0.7 writes headers that it does not read.
    if (length := int.from_bytes(data[:8], "little")) > _LONGEST_HEADER:
        raise ValueError(f"names and parameters are too long for safetensors: {length} bytes")
    return [data[: _DIGITS.start], _checksum(data), data[_DIGITS.stop :]]


def _checksum(data: bytes | memoryview) -> bytes:
    """The checksum of a file: of all bytes after the place of its digits."""
    return b"%08x" % zlib.crc32(memoryview(data)[_DIGITS.stop :])


def read_container(path: str | os.PathLike[str], kind: str) -> Container:
    """Read a regular file and check all of it.

    A file that is foreign, damaged, of another kind or made by a newer version raises a
    ``ModelFileError``.
    """
    name = os.fspath(path)
    # A pipe would block until another process writes to it.
    if os.path.exists(name) and not os.path.isfile(name):
        raise ModelFileError(f"{name} is not a regular file")
    with open(name, "rb") as file:
        start = file.read(64)
        if not start.startswith(_BEGINNING, 8):
            shown = start[:12].decode("ascii", "backslashreplace")
            raise ModelFileError(f"{name} is not a file of certsvm: it begins with {shown!r}")
        try:
            length = int.from_bytes(start[:8], "little")
            file.seek(8)
            header = json.loads(file.read(min(length, _LONGEST_HEADER)))
            document = from_json(header.pop("__metadata__")["certsvm"].encode())
            ends = [entry["data_offsets"][1] for entry in header.values()]
            stated = 8 + length + max(ends, default=0)
            # The rest is read if the file is as long as the header says.
            if stated != (size := os.fstat(file.fileno()).st_size):
                raise ValueError(f"it has {size} bytes, and its header speaks of {stated}")
            file.seek(0)
            data = file.read()
            if _checksum(data) != data[_DIGITS]:
                raise ValueError("its checksum is not that of its content")
            if list(document) != ["crc32", "format", "kind", "content"]:
                raise ValueError(f"its metadata has {', '.join(document)}")
            _, version, kind_there, content = document.values()
            container = Container({**content}, load(data))
        except (SafetensorError, ArithmeticError, AttributeError, LookupError, RecursionError,
                TypeError, ValueError) as error:  # fmt: skip
            raise ModelFileError(f"{name} is truncated or damaged: {error}") from None
    if (version, kind_there) != (FORMAT_VERSION, kind):
        holds = f"{name} holds a {kind_there!r:.20} of format {version!r:.20}"
        newer = "Upgrade certsvm if a newer one wrote it."
        raise ModelFileError(f"{holds}, not a {kind} of format {FORMAT_VERSION}. {newer}")
    return container


def to_json(value: Any) -> str:
    """A value as compact JSON. Infinite numbers are ``Infinity``, as Python has them.

    Examples
    --------
    >>> to_json({"C": 0.1, "limit": float("inf")})
    '{"C":0.1,"limit":Infinity}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except TypeError as error:
        raise ValueError(str(error)) from None


def from_json(text: bytes) -> Any:
    """The value of a text that ``to_json`` has written; raises a ValueError for any other text.

    So no key is there twice, no number loses digits, and every string can be printed.

    Examples
    --------
    >>> from_json(b'{"C":0.1,"limit":Infinity}')
    {'C': 0.1, 'limit': inf}
    >>> from_json(b'{"a":1,"a":2}')
    Traceback (most recent call last):
    ...
    ValueError: certsvm would write it as {"a":2}
    """
    try:
        value = json.loads(text, parse_constant=_INFINITIES.get)
        again = to_json(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if again.encode() != text:
        raise ValueError(f"certsvm would write it as {again:.60}")
    return value
