"""Telling that kernels are compiled, which may take longer than training."""

from __future__ import annotations

import functools
import time
from typing import Any

from certsvm.cli.app import say

UNKEPT = (
    "there is no folder for compiled kernels that can be written to: set NUMBA_CACHE_DIR to one "
    "(`certsvm compile` fills it)"
)


@functools.cache
def _clock() -> Any:
    from numba.core import event

    class Clock(event.Listener):  # type: ignore[misc]
        quiet, said = False, False
        depth, began, seconds = 0, 0.0, 0.0

        def on_start(self, event: Any) -> None:
            # One kernel may need others.
            if self.depth == 0:
                self.began = time.perf_counter()
                kept = event.data["dispatcher"].stats.cache_path is not None
                if not (self.quiet or self.said):
                    say(f"compiling kernels, {'once' if kept else f'in every run: {UNKEPT}'}")
                    self.said = True
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.began

    clock = Clock()
    event.register("numba:compile", clock)
    return clock


def watch_compilation(*, quiet: bool) -> None:
    """From now on, say it once when kernels are compiled, unless ``quiet``."""
    _clock().quiet = quiet


def seconds_compiled() -> float:
    """How long this process has compiled since it is watched."""
    return float(_clock().seconds)
