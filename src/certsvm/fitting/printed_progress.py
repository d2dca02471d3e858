"""Progress of several problems as lines of text."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from certsvm.certificates.certificate import tidy
from certsvm.fitting.fit_classes import Observer
from certsvm.problem.base import BaseProblem
from certsvm.training.history import shown_passes
from certsvm.training.progress import PrintProgress
from certsvm.training.result import Callback, Result


class PrintedProgress(Observer):
    """Prints a line now and then to standard error, and what came of each problem at its end.

    Parameters
    ----------
    n_problems : int
        With several, lines begin with the class.
    interval : float, default=1.0
        Seconds between lines; zero prints one for each pass.
    summary : bool, default=True
        Whether to print what came of each problem.
    """

    def __init__(self, n_problems: int, interval: float = 1.0, *, summary: bool = True) -> None:
        self._several, self._interval, self._summary = n_problems > 1, interval, summary

    def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
        """A callback that prints."""
        prefix = f"class {tidy(label)}: " if self._several else ""
        return [PrintProgress(interval=self._interval, label=prefix)]

    def end(self, i: int, label: Any, result: Result) -> None:
        """Print the certificate."""
        if self._summary:
            # Training does not end because nobody reads about it any more.
            with contextlib.suppress(OSError, ValueError):
                passes = shown_passes(result.passes)
                summary = f"class {tidy(label)}: {passes}, {result.certificate}\n"
                print(summary, file=sys.stderr, end="", flush=True)
