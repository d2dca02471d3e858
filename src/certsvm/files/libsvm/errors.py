"""Errors in a text, with their place.

Kernels report a code and a position; ``Diagnosis`` turns them into a message with line and column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.files.labels import WOULD_BE_MERGED
from certsvm.files.libsvm.lines import LONGEST_LINE
from certsvm.files.libsvm.options import ParseOptions
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.libsvm import LARGEST_INDEX, IndexRules

_LONGEST_SHOWN = 40


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


@dataclass(frozen=True)
class Diagnosis:
    """Describes errors in a piece of text; ``lines`` is the number of lines before the piece."""

    text: NDArray[np.uint8]
    end: int
    lines: int
    options: ParseOptions
    rules: IndexRules

    def error(self, code: int, position: int) -> LibsvmError:
        """The error that a kernel reported as ``code`` at ``position``."""
        before = self.text[:position]
        line = self.lines + 1 + int(kernels.survey(before)[0])
        line_start = int(kernels.last_line_end(before))
        if code == kernels.BAD_COMMENT:
            token = bytes(self.text[position : position + 1])
        else:
            # The first 200 bytes of a long token are enough for the message.
            token = token_at(self.text, position, min(self.end, position + 200))
        what = self._what(code, token, bytes(self.text[line_start:position]))
        return LibsvmError(
            what, self.options.file, line, position - line_start + 1, _printable(token)
        )

    def _what(self, code: int, token: bytes, before: bytes) -> str:
        quoted = f'"{_printable(token)}"'
        if b"\0" in token:
            advice = "If it is text in UTF-16, convert it: iconv -f UTF-16 -t UTF-8."
            return f"found a NUL byte in {quoted}; is this a text file? {advice}"
        if b"\r" in token:
            return f"found a carriage return that does not end a line in {quoted}"
        if code == kernels.LABEL_TOO_LARGE:
            return f"the label {quoted} is too large for float64"
        if code == kernels.INEXACT_LABEL:
            return f"the label {quoted} {WOULD_BE_MERGED}"
        if code == kernels.VALUE_TOO_LARGE:
            return f"the value {quoted} is too large for {self.options.dtype.name}"
        if code == kernels.BAD_LABEL:
            return _label_problem(token, quoted)
        if code == kernels.BAD_ITEM:
            return _item_problem(token, quoted)
        if code == kernels.BAD_VALUE:
            return f"expected a number after the colon, found {quoted if token else 'nothing'}"
        index = _index_of(token)
        if code == kernels.NOT_ASCENDING:
            previous = _index_of(before.split()[-1])
            if previous == index:
                return f"index {index.decode()} is there twice in this line"
            return (
                f"indices must ascend within a line, but {_printable(index)} follows "
                f"{_printable(previous)}"
            )
        return self._index_problem(index)

    def _index_problem(self, index: bytes) -> str:
        if len(index) > 19 or int(index) > LARGEST_INDEX:
            return f"the index {_printable(index)} is beyond the largest allowed, 2**63 - 2"
        if index == b"0" and self.rules.low == 1:
            return "index 0, although indices count from one (zero_based=False)"
        n, from_zero = self.options.n_features, self.options.zero_based
        # Without zero_based, the index n is out of range only if the file counts from zero.
        start = "zero" if from_zero or (from_zero is None and int(index) == n) else "one"
        return f"index {index.decode()} is out of range: n_features={n}, counted from {start}"


def _label_problem(token: bytes, quoted: str) -> str:
    if b":" in token:
        return f"expected a label before the first index, found {quoted}"
    if b"," in token:
        return f"several labels, {quoted}: multi-label data is not supported"
    return f"expected a decimal number as label, found {quoted}"


def _item_problem(token: bytes, quoted: str) -> str:
    if token.startswith(b"qid"):
        return f"qid and a whole number may stand right after the label, once; found {quoted}"
    if token.startswith((b"+", b"-")):
        return f"an index has no sign, found {quoted}"
    if token.startswith(b":"):
        return f"expected an index before the colon, found {quoted}"
    return f"expected index:value, found {quoted}"


def _index_of(item: bytes) -> bytes:
    """The index of ``index:value``, without leading zeros."""
    return item.partition(b":")[0].lstrip(b"0") or b"0"


def _printable(text: bytes) -> str:
    """Text for a message: printable, and not too long."""
    more = "..." if len(text) > _LONGEST_SHOWN else ""
    decoded = text[:_LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in decoded)
    return "".join(escaped) + more


def token_at(text: NDArray[np.uint8], position: int, end: int) -> bytes:
    """The bytes from ``position`` to the next blank, comment or line end."""
    for length in (64, end - position):
        window = bytes(text[position : min(position + length, end)])
        token = window
        for stop in (b"\n", b" ", b"\t", b"#"):
            token = token.partition(stop)[0]
        if len(token) < len(window):
            break
    # A carriage return belongs to the line end only together with the line feed.
    ends_line = window[len(token) : len(token) + 1] == b"\n"
    return token[:-1] if ends_line and token.endswith(b"\r") else token
