"""Errors in a text, with their place."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.files.labels import WOULD_BE_MERGED
from certsvm.kernels import libsvm as kernels

LONGEST_LINE = 1 << 28
"""The most bytes of a line: enough for ten million values. A compressed file of some kilobytes may
hold a line without an end."""

_LONGEST_SHOWN = 40
_TOKEN = re.compile(rb"[^ \t\n#]*")


class LibsvmError(ValueError):
    """A text that is not in the format, and where.

    Attributes
    ----------
    file : str
        Name of the file.
    line, column : int or None
        Both count from 1; columns are bytes. None if the error concerns the whole file.
    text : str
        The offending text, shortened if it is long.
    """

    def __init__(
        self, what: str, file: str, line: int | None = None, column: int | None = None,
        text: str = "",
    ) -> None:  # fmt: skip
        where = file if line is None else f"{file}, line {line}, column {column}"
        super().__init__(f"{where}: {what}")
        self.what, self.file, self.line, self.column, self.text = what, file, line, column, text

    def __reduce__(self) -> tuple[Any, ...]:
        return LibsvmError, (self.what, self.file, self.line, self.column, self.text)


def changed(file: str) -> LibsvmError:
    """The error for a file that was written to while it was read."""
    return LibsvmError("the file was changed while it was read; read it again", file)


def long_line(file: str, line: int, limit: int) -> LibsvmError:
    """The error for a line of more than ``limit`` bytes."""
    why = "the most that the memory allows. Give more memory."
    if limit >= LONGEST_LINE:
        why = "the longest that is read. Is it a file of lines, and not damaged?"
    return LibsvmError(f"this line is longer than {limit / 1e6:.1f} MB, {why}", file, line, 1)


def token_at(text: NDArray[np.uint8], position: int, end: int) -> bytes:
    """The bytes from ``position`` to the next blank, comment or line end."""
    match = _TOKEN.match(text.data, position, end)
    assert match is not None
    token, behind = match[0], match.end()
    # A carriage return belongs to the line end only together with the line feed.
    ends_line = behind < end and text[behind] == ord("\n")
    return token[:-1] if ends_line and token.endswith(b"\r") else token


def error_at(
    code: int, position: int, text: NDArray[np.uint8], end: int, lines: int, options: Any
) -> LibsvmError:
    """The error that a kernel reported as ``code`` at ``position``.

    ``lines`` is the number of lines before the text, and ``options`` are the ``ParseOptions``.
    """
    before = bytes(text[:position])
    line, line_start = lines + 1 + before.count(b"\n"), before.rfind(b"\n") + 1
    if code == kernels.BAD_COMMENT:
        token = bytes(text[position : position + 1])
    else:
        # The first 200 bytes of a long token are enough for the message.
        token = token_at(text, position, min(end, position + 200))
    what = _problem(code, token, before[line_start:], options)
    return LibsvmError(what, options.file, line, position - line_start + 1, _printable(token))


def _problem(code: int, token: bytes, before: bytes, options: Any) -> str:
    quoted = f'"{_printable(token)}"'
    if b"\0" in token:
        advice = "If it is text in UTF-16, convert it: iconv -f UTF-16 -t UTF-8."
        return f"found a NUL byte in {quoted}; is this a text file? {advice}"
    if b"\r" in token:
        return f"found a carriage return that does not end a line in {quoted}"
    if code == kernels.BAD_LABEL:
        if b":" in token:
            return f"expected a label before the first index, found {quoted}"
        if b"," in token:
            return f"several labels, {quoted}: multi-label data is not supported"
        return f"expected a decimal number as label, found {quoted}"
    if code == kernels.BAD_ITEM:
        if token.startswith(b"qid"):
            return f"qid and a whole number may stand right after the label, once; found {quoted}"
        return f"expected index:value, found {quoted}"
    index = _index_of(token)
    if code == kernels.NOT_ASCENDING:
        previous = _index_of(before.split()[-1])
        if previous == index:
            return f"index {index} is there twice in this line"
        return f"indices must ascend within a line, but {index} follows {previous}"
    if code == kernels.BAD_INDEX:
        if len(index) > 19 or int(index) > kernels.LARGEST_INDEX:
            return f"the index {index} is beyond the largest allowed, 2**63 - 2"
        n, from_zero = options.n_features, options.zero_based
        if index == "0" and from_zero is False:
            return "index 0, although indices count from one (zero_based=False)"
        # Without zero_based, the index n is out of range only if the file counts from zero.
        start = "zero" if from_zero or (from_zero is None and int(index) == n) else "one"
        return f"index {index} is out of range: n_features={n}, counted from {start}"
    return {
        kernels.LABEL_TOO_LARGE: f"the label {quoted} is too large for float64",
        kernels.INEXACT_LABEL: f"the label {quoted} {WOULD_BE_MERGED}",
        kernels.VALUE_TOO_LARGE: f"the value {quoted} is too large for {options.dtype.name}",
        kernels.BAD_VALUE: "expected a number after the colon, found "
        + (quoted if token else "nothing"),
    }[code]


def _index_of(item: bytes) -> str:
    """The index of ``index:value``, without leading zeros."""
    return _printable(item.partition(b":")[0].lstrip(b"0") or b"0")


def _printable(text: bytes) -> str:
    """Text for a message: printable, and not too long."""
    more = "..." if len(text) > _LONGEST_SHOWN else ""
    decoded = text[:_LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in decoded)
    return "".join(escaped) + more
