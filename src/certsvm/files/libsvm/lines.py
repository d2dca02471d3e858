"""Whole lines from a source that can only be read from front to back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certsvm.files.compressed import ByteSource, DamagedFileError
from certsvm.files.libsvm.sources import BYTE_ORDER_MARK
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import PADDING

LONGEST_LINE = 1 << 28
"""The most bytes of a line: enough for ten million values. A compressed file of some kilobytes may
hold a line without an end."""


class LongLineError(Exception):
    """The line after the last one that was given is longer than allowed."""


def whole_lines(
    source: ByteSource, block_bytes: int, longest_line: int = LONGEST_LINE
) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Cut text at line ends, every ``block_bytes`` or a little less.

    A line longer than that makes the buffer grow until the line fits. If it is longer than
    ``longest_line`` too, a ``LongLineError`` is raised.

    Yields
    ------
    buffer : ndarray
        Overwritten when the next one is asked for.
    end : int
        Where the last whole line in the buffer ends.
    """
    # The buffer must hold at least a byte order mark.
    least = max(block_bytes, len(BYTE_ORDER_MARK)) + PADDING
    most = max(longest_line + 1 + PADDING, least)
    buffer = np.empty(least, dtype=np.uint8)
    filled, at_end, damage = _skip_mark(source, buffer)
    while True:
        if not at_end:
            filled, at_end, damage = _fill(source, buffer, filled, buffer.size - PADDING)
        whole = at_end and damage is None
        cut = filled if whole else kernels.last_line_end(buffer[:filled])
        if cut:
            buffer[filled : filled + PADDING] = ord("\n")
            yield buffer, cut
        if damage is not None:
            # Errors in the text before the damage come first, whatever the block size.
            raise damage
        if at_end:
            return
        rest = buffer[cut:filled]
        # A line longer than the buffer doubles it until the line fits.
        size = 2 * buffer.size if cut == 0 else max(least, rest.size + PADDING + 1)
        if rest.size + PADDING >= most:
            raise LongLineError
        size = min(size, most)
        buffer = np.empty(size, dtype=np.uint8) if size != buffer.size else buffer
        buffer[: rest.size] = rest.copy()
        filled = rest.size


def _skip_mark(
    source: ByteSource, buffer: NDArray[np.uint8]
) -> tuple[int, bool, DamagedFileError | None]:
    """Read the first bytes, and drop them if they are a byte order mark."""
    filled, at_end, damage = _fill(source, buffer, 0, len(BYTE_ORDER_MARK))
    if bytes(buffer[:filled]) == BYTE_ORDER_MARK:
        filled = 0
    return filled, at_end, damage


def _fill(
    source: ByteSource, buffer: NDArray[np.uint8], filled: int, size: int
) -> tuple[int, bool, DamagedFileError | None]:
    """Read until the buffer holds ``size`` bytes.

    Returns how many it holds, whether the text has ended, and the damage that ended it, if any.
    """
    while filled < size:
        try:
            data = source.read(size - filled)
        except DamagedFileError as error:
            return filled, True, error
        if not data:
            return filled, True, None
        buffer[filled : filled + len(data)] = np.frombuffer(data, dtype=np.uint8)
        filled += len(data)
    return filled, False, None
