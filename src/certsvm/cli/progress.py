"""What a command shows while it runs: a live line on a terminal, a line now and then elsewhere.

Kernels that are compiled are told of, too, since that may take longer than training.
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import tidy
from certsvm.cli import say

if TYPE_CHECKING:
    from certsvm.training.settings import Callback, Observer

_SECONDS_BETWEEN_LINES = 5.0

UNKEPT = "no folder for compiled kernels can be written to: set NUMBA_CACHE_DIR to one"


@contextmanager
def live_lines(*, quiet: bool) -> Iterator[Callable[[str, str | None], None]]:
    """A function that shows a text behind a title; None ends the line of the title."""
    if not quiet and sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn

        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            lines = functools.cache(bar.add_task)
            yield lambda title, text: bar.update(
                lines(title), description=f"{title}: {text}", visible=text is not None
            )
        return
    last = math.inf if quiet else time.perf_counter()

    def show(title: str, text: str | None) -> None:
        nonlocal last
        if text is not None and time.perf_counter() - last >= _SECONDS_BETWEEN_LINES:
            last = time.perf_counter()
            say(f"{title}: {text}")

    yield show


@contextmanager
def training_progress(*, n_classes: int = 0, quiet: bool) -> Iterator[Observer]:
    """An observer that shows the passes of each class, or without a number of each solver.

    Of several classes, it counts those that are proved.
    """
    from certsvm.training.history import shown_record
    from certsvm.training.settings import Observer

    title = {0: "{}", 1: "training"}.get(n_classes, "class {}")

    class Shown(Observer):
        n_proved = 0

        def begin(self, i: int, label: Any, problem: Any) -> Sequence[Callback]:
            line = title.format(tidy(label))
            return [lambda progress: show(line, shown_record(progress.record))]

        def end(self, i: int, label: Any, result: Any) -> None:
            self.n_proved += result.certificate.met
            if n_classes > 1:
                show("classes", f"{self.n_proved} of {n_classes} proved")
            show(title.format(tidy(label)), None)

    with live_lines(quiet=quiet) as show:
        if n_classes > 1:
            show("classes", f"0 of {n_classes} proved")
        yield Shown()


@functools.cache
def _clock() -> Any:
    from numba.core import event

    class Clock(event.TimingListener):  # type: ignore[misc]
        quiet, said = False, False

        def on_start(self, event: Any) -> None:
            super().on_start(event)
            if not (self.quiet or self.said):
                kept = event.data["dispatcher"].stats.cache_path is not None
                say(f"compiling kernels, {'once' if kept else f'in every run: {UNKEPT}'}")
                self.said = True

    clock = Clock()
    event.register("numba:compile", clock)
    return clock


def watch_compilation(*, quiet: bool) -> None:
    """From now on, say it once when kernels are compiled, unless ``quiet``."""
    _clock().quiet = quiet


def seconds_compiled() -> float:
    """How long this process has compiled since it is watched."""
    clock = _clock()
    return float(clock.duration) if clock.done else 0.0
