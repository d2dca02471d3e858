"""Sources of text: a path, or a binary file object."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TextSource = Any
"""A path, or a binary file object."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Skipped at the beginning of a text."""


@contextmanager
def opened(source: TextSource) -> Iterator[Any]:
    """The binary file to read; it is closed at the end if it was opened here."""
    if is_path(source):
        with open(source, "rb", buffering=0) as file:
            yield file
    elif hasattr(source, "read"):
        yield source
    else:
        raise TypeError(f"expected a path or a binary file, got {type(source).__name__}")


def name_of(source: TextSource) -> str:
    """The name of a source in messages."""
    if is_path(source):
        return os.fsdecode(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<input>"


def is_path(source: TextSource) -> bool:
    """Whether the source is a path."""
    return isinstance(source, str | bytes | os.PathLike)
