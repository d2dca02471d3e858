"""Progress as lines of text."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from typing import TextIO

from certsvm.certificates.certificate import percent
from certsvm.training.result import Progress


class PrintProgress:
    """A callback that prints a line at intervals.

    Parameters
    ----------
    interval : float, default=1.0
        Seconds between lines. The first pass is always printed.
    label : str, default=""
        Text before each line.
    stream : file, default=None
        Output file; None means standard error.

    Examples
    --------
    >>> from certsvm.training.history import Record
    >>> record = Record(seconds=0.5, passes=3, epochs=3, margin_errors=40, primal=10.0,
    ...                 dual=9.5, gap=0.5, relative_gap=0.5 / 9.5)
    >>> PrintProgress(stream=sys.stdout)(Progress(record, w=lambda: None))
    pass     3   0.5 s   primal 10           dual 9.5          gap 5.27 %
    """

    def __init__(
        self, interval: float = 1.0, label: str = "", stream: TextIO | None = None
    ) -> None:
        self._interval = interval
        self._label = label
        self._stream = stream
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        """Print a line if the interval has passed."""
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + self._interval
        r = progress.record
        # The gap is infinite before J is first computed.
        primal = "none yet" if math.isinf(r.gap) else f"{r.dual + r.gap:.8g}"
        gap = "none yet" if math.isinf(r.relative_gap) else percent(r.relative_gap)
        # Training continues if the output is closed.
        with contextlib.suppress(OSError, ValueError):
            # With its end, since threads write at the same time.
            print(
                f"{self._label}pass {r.passes:5d} {r.seconds:5.1f} s   primal {primal:<12} "
                f"dual {r.dual:<12.8g} gap {gap}\n",
                file=self._stream or sys.stderr,
                end="",
                flush=True,
            )
