"""Progress of several problems as lines of text."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from certsvm.certificates.certificate import percent, tidy
from certsvm.fitting.fit_classes import Observer
from certsvm.problem.base import BaseProblem
from certsvm.training.history import shown_passes
from certsvm.training.result import Callback, Progress, Result


class PrintedProgress(Observer):
    """Prints a line now and then to standard error, and what came of each problem at its end.

    Parameters
    ----------
    n_problems : int
        With several, lines begin with the class.
    interval : float, default=1.0
        Seconds between lines of a problem; zero prints one for each pass.
    summary : bool, default=True
        Whether to print what came of each problem.
    """

    def __init__(self, n_problems: int, interval: float = 1.0, *, summary: bool = True) -> None:
        self._several, self._interval, self._summary = n_problems > 1, interval, summary

    def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
        """A callback that prints."""
        prefix, last = f"class {tidy(label)}: " if self._several else "", -math.inf

        def after_pass(progress: Progress) -> None:
            nonlocal last
            if time.perf_counter() - last < self._interval:
                return
            last = time.perf_counter()
            r = progress.record
            # The gap is infinite before J is first computed.
            primal = "none yet" if math.isinf(r.gap) else f"{r.dual + r.gap:.8g}"
            gap = "none yet" if math.isinf(r.relative_gap) else percent(r.relative_gap)
            _print(
                f"{prefix}pass {r.passes:5d} {r.seconds:5.1f} s   primal {primal:<12} "
                f"dual {r.dual:<12.8g} gap {gap}"
            )

        return [after_pass]

    def end(self, i: int, label: Any, result: Result) -> None:
        """Print the certificate."""
        if self._summary:
            _print(f"class {tidy(label)}: {shown_passes(result.passes)}, {result.certificate}")


def _print(line: str) -> None:
    # Training does not end because nobody reads about it any more.
    with contextlib.suppress(OSError, ValueError):
        # With its end, since threads write at the same time.
        print(f"{line}\n", file=sys.stderr, end="", flush=True)
