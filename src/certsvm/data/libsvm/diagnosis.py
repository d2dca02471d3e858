"""Words for what a kernel found wrong, with the place in the file.

Kernels say no more than a code and a position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certsvm.data.libsvm.errors import LibsvmError
from certsvm.data.libsvm.settings import Settings
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.libsvm import LARGEST_INDEX, IndexRules

_LONGEST_SHOWN = 40


@dataclass(frozen=True)
class Complaint:
    """Puts in words what is wrong with a piece of text."""

    text: NDArray[np.uint8]
    end: int
    lines: int
    settings: Settings
    rules: IndexRules

    def error(self, code: int, position: int) -> LibsvmError:
        """What ``code`` at ``position`` means, with the place in the file."""
        before = self.text[:position]
        line = self.lines + 1 + kernels.survey(before)[0]
        line_start = kernels.last_line_end(before)
        # Enough to tell what is wrong with it, however long it is.
        token = token_at(self.text, position, min(self.end, position + 200))
        shown = _shown(token)
        if code == kernels.BAD_COMMENT:
            token = bytes(self.text[position : position + 1])
            shown = _shown(token)
        what = self._what(code, token, bytes(self.text[line_start:position]))
        return LibsvmError(what, self.settings.file, int(line), position - int(line_start) + 1,
                           shown)  # fmt: skip

    def _what(self, code: int, token: bytes, before: bytes) -> str:
        found = f'"{_shown(token)}"'
        if b"\0" in token:
            return f"found a NUL byte in {found}; is this a text file?"
        if b"\r" in token:
            return f"found a carriage return that does not end a line in {found}"
        if code in (kernels.LABEL_TOO_LARGE, kernels.VALUE_TOO_LARGE):
            label = code == kernels.LABEL_TOO_LARGE
            dtype = "float64" if label else self.settings.dtype.name
            return f"the {'label' if label else 'value'} {found} is too large for {dtype}"
        if code == kernels.BAD_LABEL:
            return _label_problem(token, found)
        if code == kernels.BAD_ITEM:
            return _item_problem(token, found)
        if code == kernels.BAD_VALUE:
            found = found if token else "nothing"
            return f"expected a number after the colon, found {found}"
        index = token.partition(b":")[0].lstrip(b"0") or b"0"
        if code == kernels.NOT_ASCENDING:
            previous = before.split()[-1].partition(b":")[0].lstrip(b"0") or b"0"
            if previous == index:
                return f"index {index.decode()} is there twice in this line"
            return (
                f"indices must ascend within a line, but {_shown(index)} follows {_shown(previous)}"
            )
        return self._index_problem(index)

    def _index_problem(self, index: bytes) -> str:
        if len(index) > 19 or int(index) > LARGEST_INDEX:
            return f"the index {_shown(index)} is beyond the largest allowed, 2**63 - 2"
        if index == b"0" and self.rules.low == 1:
            return "index 0, although indices count from one (zero_based=False)"
        n, from_zero = self.settings.n_features, self.settings.zero_based
        # Where nothing was said, n itself is wrong only if the file counts from zero.
        start = "zero" if from_zero or (from_zero is None and int(index) == n) else "one"
        return f"index {index.decode()} is out of range: n_features={n}, counted from {start}"


def _label_problem(token: bytes, found: str) -> str:
    if b":" in token:
        return f"expected a label before the first index, found {found}"
    if b"," in token:
        return f"several labels, {found}: multi-label data is not supported"
    return f"expected a decimal number as label, found {found}"


def _item_problem(token: bytes, found: str) -> str:
    if token.startswith(b"qid"):
        return f"qid and a whole number may stand right after the label, once; found {found}"
    if token.startswith((b"+", b"-")):
        return f"an index has no sign, found {found}"
    if token.startswith(b":"):
        return f"expected an index before the colon, found {found}"
    return f"expected index:value, found {found}"


def _shown(text: bytes) -> str:
    """Text for a message: printable, and not too long."""
    more = "..." if len(text) > _LONGEST_SHOWN else ""
    decoded = text[:_LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in decoded)
    return "".join(escaped) + more


def token_at(text: NDArray[np.uint8], position: int, end: int) -> bytes:
    """The bytes from ``position`` to the next blank, comment or line end."""
    for length in (64, end - position):
        some = bytes(text[position : min(position + length, end)])
        token = some
        for stop in (b"\n", b" ", b"\t", b"#"):
            token = token.partition(stop)[0]
        if len(token) < len(some):
            break
    # A carriage return belongs to the line end only together with the line feed.
    ends_line = some[len(token) : len(token) + 1] == b"\n"
    return token[:-1] if ends_line and token.endswith(b"\r") else token
