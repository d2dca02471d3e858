"""Telling that kernels are compiled, which takes longer than most training."""

from __future__ import annotations

import functools
import time
from typing import Any

from certsvm.cli.app import say

UNKEPT = (
    "there is no folder for compiled kernels that can be written to: set NUMBA_CACHE_DIR to one. "
    "`certsvm compile` fills it"
)


class _Clock:
    """Adds up the seconds of compilation; a kernel may need others, which count once."""

    seconds = 0.0

    def __init__(self) -> None:
        self._depth, self._began, self._said = 0, 0.0, False
        self.quiet = False

    def begin(self, event: Any) -> None:
        """A function is being compiled."""
        if self._depth == 0:
            self._began = time.perf_counter()
            if not (self.quiet or self._said):
                folder = event.data["dispatcher"].stats.cache_path
                again = f"in every run: {UNKEPT}" if folder is None else "once: they are kept"
                say(f"compiling kernels, {again}")
                self._said = True
        self._depth += 1

    def end(self, event: Any) -> None:
        """It is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began


@functools.cache
def _clock() -> _Clock:
    from numba.core import event

    clock = _Clock()

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            clock.begin(event)

        def on_end(self, event: Any) -> None:
            clock.end(event)

    event.register("numba:compile", Listener())
    return clock


def watch_compilation(*, quiet: bool) -> None:
    """Say it once when kernels are compiled from now on, unless ``quiet``."""
    _clock().quiet = quiet


def seconds_compiled() -> float:
    """How long this process has compiled, since it is watched."""
    return _clock().seconds
