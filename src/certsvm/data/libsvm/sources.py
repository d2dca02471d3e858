"""What text is read from: a path, or a binary file object."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Source = Any
"""A path, or a binary file object."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""May stand before the text, and is skipped."""


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The file to read; what was opened here is closed again."""
    if is_path(source):
        with open(source, "rb", buffering=0) as file:
            yield file
    elif hasattr(source, "read"):
        yield source
    else:
        raise TypeError(f"expected a path or a binary file, got {type(source).__name__}")


def name_of(source: Source) -> str:
    """What messages call it."""
    if is_path(source):
        return os.fsdecode(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<input>"


def is_path(source: Source) -> bool:
    """Whether this names a file."""
    return isinstance(source, str | bytes | os.PathLike)
