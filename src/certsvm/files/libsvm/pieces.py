"""Whole lines of text for one thread to parse.

Line feeds and colons, counted beforehand, bound the numbers of rows and values in a piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels import libsvm as kernels

_PIECE_BYTES = 1 << 19


@dataclass
class Piece:
    """Whole lines of text.

    Attributes
    ----------
    fetch : callable
        Returns an array that begins with the text, and the length of the text.
    lines, colons : int
        Numbers of line feeds and colons.
    unterminated : bool
        Whether the last line may end without a line feed.
    """

    fetch: Callable[[], tuple[NDArray[np.uint8], int]]
    lines: int
    colons: int
    unterminated: bool = False

    @property
    def most_rows(self) -> int:
        """A bound on the number of rows."""
        return self.lines + self.unterminated


def step_between(size: int, n_jobs: int) -> int:
    """Distance between the positions at which line ends are looked for."""
    share = size // (2 * n_jobs) + 1
    return max(1, _PIECE_BYTES // 8, min(_PIECE_BYTES, share))


def needs_threads(size: int) -> bool:
    """Whether a file of this size is worth starting threads for: it has several pieces."""
    return size > _PIECE_BYTES


def cut(text: NDArray[np.uint8], end: int, n_jobs: int) -> list[Piece]:
    """Cut ``text[:end]`` at line ends."""
    count = max(1, min(n_jobs, end // _PIECE_BYTES))
    cuts = [0]
    for i in range(1, count):
        nominal = max(cuts[-1], end * i // count)
        line_end = kernels.first_line_end(text[nominal:end])
        cuts.append(nominal + line_end if line_end else end)
    cuts.append(end)
    return [
        Piece(
            lambda a=a, b=b: (text[a:], b - a),  # type: ignore[misc]
            *kernels.survey(text[a:b]),
        )
        for a, b in itertools.pairwise(cuts)
        if a < b
    ]
