"""A regular file on disk, read twice: once to count lines and values, once to parse them.

It is read into buffers, not mapped: truncating the file meanwhile is then an error, whereas with a
memory map it would end the process.
"""

from __future__ import annotations

import itertools
import os
import stat
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.files.compressed import compression_of
from certsvm.files.libsvm.errors import changed, long_line
from certsvm.files.libsvm.lines import LONGEST_LINE
from certsvm.files.libsvm.options import ParseOptions
from certsvm.files.libsvm.pieces import Piece, step_between
from certsvm.files.libsvm.sources import BYTE_ORDER_MARK, TextSource, is_path
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import PADDING
from certsvm.parallel import Team


class PlainFile:
    """A file read a part at a time, by several threads at once."""

    def __init__(self, file: Any, options: ParseOptions) -> None:
        self._file = file
        self._options = options
        self._lock = threading.Lock()
        self._buffers = threading.local()
        self._status = os.fstat(file.fileno())
        self.size = self._status.st_size

    def pieces(self, team: Team, first: int) -> list[Piece]:
        """Cut the text from position ``first`` on at line ends, and count lines and colons."""
        step = step_between(self.size, self._options.n_jobs)
        begins = range(first, self.size, step)
        surveys = team.map(lambda begin: self._survey(begin, begin + step), begins)
        cuts, counts = [first], [[0, 0]]
        for begin, (line_end, head, tail) in zip(begins, surveys, strict=True):
            counts[-1][0] += head[0]
            counts[-1][1] += head[1]
            if line_end:
                cuts.append(begin + line_end)
                counts.append(list(tail))
        cuts.append(self.size)
        self._refuse_long_line(cuts, counts, step)
        return [
            Piece(lambda a=a, b=b: self._read(a, b), count[0], count[1])  # type: ignore[misc]
            for (a, b), count in zip(itertools.pairwise(cuts), counts, strict=True)
            if a < b
        ]

    def _refuse_long_line(self, cuts: list[int], counts: list[list[int]], step: int) -> None:
        """Raise if the lines between two cuts must be longer than a line may be."""
        before = 0
        for (a, b), (lines, _) in zip(itertools.pairwise(cuts), counts, strict=True):
            # The first step may hold many lines, and the last line ends at the second cut.
            if b - a > LONGEST_LINE + step:
                ends = self._read(b - 1, b)[0][0] == ord("\n")
                raise long_line(self._options.file, before + lines + (not ends), LONGEST_LINE)
            before += lines

    def refuse_changed(self) -> None:
        """Raise if the file was written to meanwhile."""
        now = os.fstat(self._file.fileno())
        before = self._status
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise changed(self._options.file)

    def _survey(self, begin: int, end: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
        text, length = self._read(begin, min(end, self.size))
        line_end = kernels.first_line_end(text[:length])
        head = text[: line_end or length]
        return line_end, kernels.survey(head), kernels.survey(text[head.size : length])

    def _read(self, begin: int, end: int) -> tuple[NDArray[np.uint8], int]:
        """Bytes of the file, in a buffer of the calling thread."""
        length = end - begin
        buffer: NDArray[np.uint8] | None = getattr(self._buffers, "buffer", None)
        if buffer is None or buffer.size < length + PADDING:
            buffer = np.empty(length + length // 4 + PADDING, dtype=np.uint8)
            self._buffers.buffer = buffer
        view, done = buffer.data, 0
        while done < length:
            count = self._read_at(view[done:length], begin + done)
            if count == 0:
                raise changed(self._options.file)
            done += count
        buffer[length : length + PADDING] = ord("\n")
        return buffer, length

    def _read_at(self, view: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [view], position)
        with self._lock:
            self._file.seek(position)
            return int(self._file.readinto(view))


def first_of_plain_file(file: Any, source: TextSource) -> int | None:
    """Where the text of a plain file begins; None if it has to be read from front to back."""
    if not is_path(source):
        return None
    status = os.fstat(file.fileno())
    # Files in /proc and the like have no size.
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return None
    first = file.read(8)
    file.seek(0)
    if not first or compression_of(first) is not None:
        return None
    return len(BYTE_ORDER_MARK) if first.startswith(BYTE_ORDER_MARK) else 0
