"""A regular file on disk, read twice: once to count what is in it, and once to parse it.

Text is always in memory of our own: a file that somebody truncates while it is read is an error,
whereas reading it through a memory map would end the process.
"""

from __future__ import annotations

import itertools
import os
import stat
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.data.compressed import compression_of
from certsvm.data.libsvm.errors import changed
from certsvm.data.libsvm.pieces import Piece, step_between
from certsvm.data.libsvm.settings import Settings
from certsvm.data.libsvm.sources import BYTE_ORDER_MARK, Source, is_path
from certsvm.data.libsvm.workers import Workers
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import PADDING


class PlainFile:
    """A file read a part at a time, by several threads at once."""

    def __init__(self, file: Any, settings: Settings) -> None:
        self._file = file
        self._settings = settings
        self._lock = threading.Lock()
        self._buffers = threading.local()
        self._status = os.fstat(file.fileno())
        self.size = self._status.st_size

    def pieces(self, workers: Workers, first: int) -> list[Piece]:
        """Cut the text from position ``first`` on at line ends, and count what is in the pieces."""
        step = step_between(self.size, self._settings.n_jobs)
        begins = range(first, self.size, step)
        found = workers.map(lambda begin: self._survey(begin, begin + step), begins)
        cuts, counts = [first], [[0, 0]]
        for begin, (line_end, head, tail) in zip(begins, found, strict=True):
            counts[-1][0] += head[0]
            counts[-1][1] += head[1]
            if line_end:
                cuts.append(begin + line_end)
                counts.append(list(tail))
        cuts.append(self.size)
        return [
            Piece(lambda a=a, b=b: self._read(a, b), count[0], count[1])  # type: ignore[misc]
            for (a, b), count in zip(itertools.pairwise(cuts), counts, strict=True)
            if a < b
        ]

    def refuse_changed(self) -> None:
        """Raise if somebody wrote to the file meanwhile."""
        now = os.fstat(self._file.fileno())
        before = self._status
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise changed(self._settings.file)

    def _survey(self, begin: int, end: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
        text, length = self._read(begin, min(end, self.size))
        line_end = kernels.first_line_end(text[:length])
        head = text[: line_end or length]
        return line_end, kernels.survey(head), kernels.survey(text[head.size : length])

    def _read(self, begin: int, end: int) -> tuple[NDArray[np.uint8], int]:
        """Bytes of the file, in a buffer of this thread."""
        length = end - begin
        buffer: NDArray[np.uint8] | None = getattr(self._buffers, "buffer", None)
        if buffer is None or buffer.size < length + PADDING:
            buffer = np.empty(length + length // 4 + PADDING, dtype=np.uint8)
            self._buffers.buffer = buffer
        view, done = buffer.data, 0
        while done < length:
            count = self._read_at(view[done:length], begin + done)
            if count == 0:
                raise changed(self._settings.file)
            done += count
        buffer[length : length + PADDING] = ord("\n")
        return buffer, length

    def _read_at(self, view: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [view], position)
        with self._lock:
            self._file.seek(position)
            return int(self._file.readinto(view))


def first_of_plain_file(file: Any, source: Source) -> int | None:
    """Where the text of a plain file begins; None if it has to be read from front to back."""
    if not is_path(source):
        return None
    status = os.fstat(file.fileno())
    # Files that the system makes up as they are read have no size.
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return None
    first = file.read(8)
    file.seek(0)
    if not first or compression_of(first) is not None:
        return None
    return len(BYTE_ORDER_MARK) if first.startswith(BYTE_ORDER_MARK) else 0
