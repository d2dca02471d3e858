"""Progress of training: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import tidy

if TYPE_CHECKING:
    from certsvm.problem.base import BaseProblem
    from certsvm.training.result import Callback, Observer, Progress

_SECONDS_BETWEEN_LINES = 5.0


class TimeEstimate:
    """Estimates the remaining time from the decrease of the gap.

    Parameters
    ----------
    target : float
        Relative gap to be reached.
    max_time : float or None
        Limit in seconds.

    Examples
    --------
    >>> estimate = TimeEstimate(0.01, None)
    >>> [estimate.seconds_left(s, gap) for s, gap in ((1.0, 0.4), (2.0, 0.2), (3.0, 0.1))]
    [None, None, 3.3]
    """

    def __init__(self, target: float, max_time: float | None) -> None:
        self._target = target
        self._max_time = max_time
        self._seen: list[tuple[float, float]] = []

    def seconds_left(self, seconds: float, gap: float) -> float | None:
        """Estimated time until the target or the limit; None if it is unknown."""
        limit = None if self._max_time is None else max(0.0, self._max_time - seconds)
        if not (0.0 < gap < math.inf and self._target > 0.0):
            return limit
        self._seen.append((seconds, gap))
        if gap <= self._target:
            return 0.0
        # The rate is measured over the last half of the time, and over several passes.
        earlier = [s for s in self._seen if s[0] <= 0.5 * seconds and s[1] > gap]
        if not earlier or len(self._seen) < 3:
            return limit
        then, before = earlier[-1]
        rate = math.log(before / gap) / (seconds - then)
        left = round(math.log(gap / self._target) / rate, 1)
        return left if limit is None else min(left, limit)


@contextmanager
def training_progress(
    target: float, max_time: float | None, n_problems: int, *, quiet: bool
) -> Iterator[Observer]:
    """An observer that shows the progress of each class."""
    from certsvm.fitting.fit_classes import PrintedProgress
    from certsvm.training.result import Observer

    if quiet:
        yield Observer()
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.progress import SpinnerColumn, TextColumn

        columns = (
            SpinnerColumn(), TextColumn("{task.description}"),
            TextColumn("pass {task.completed:.0f}"), TextColumn("primal {task.fields[primal]}"),
            TextColumn("dual {task.fields[dual]}"), TextColumn("gap [bold]{task.fields[gap]}"),
            TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[left]}"),
        )  # fmt: skip
        with _bar(*columns) as bar:

            class LiveProgress(Observer):
                def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
                    title = f"class {tidy(label)}" if n_problems > 1 else "training"
                    return [_LiveLine(bar, title, TimeEstimate(target, max_time))]

            yield LiveProgress()
    else:
        yield PrintedProgress(n_problems, _SECONDS_BETWEEN_LINES, summary=False)


def _bar(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)


class _LiveLine:
    """A callback that updates one line on the terminal."""

    def __init__(self, bar: Any, title: str, estimate: TimeEstimate) -> None:
        unknown = dict.fromkeys(("primal", "dual", "gap"), "...")
        self._bar = bar
        self._estimate = estimate
        self._task = bar.add_task(title, total=None, rate="", left="", **unknown)

    def __call__(self, progress: Progress) -> None:
        """Show a pass."""
        from certsvm.certificates.certificate import percent

        r = progress.record
        left = self._estimate.seconds_left(r.seconds, r.relative_gap)
        self._bar.update(
            self._task,
            completed=r.passes,
            primal=f"{r.dual + r.gap:.6g}" if math.isfinite(r.gap) else "...",
            dual=f"{r.dual:.6g}",
            gap=percent(r.relative_gap) if math.isfinite(r.relative_gap) else "...",
            rate=f"{r.passes / max(r.seconds, 1e-9):.3g} passes/s",
            left="" if left is None else f"about {left:.0f} s left",
        )


@contextmanager
def lines_of(title: str, *, quiet: bool) -> Iterator[Any]:
    """A function that shows a text: a live line on a terminal, a line now and then elsewhere."""
    if quiet or sys.stderr is None:
        yield lambda text: None
    elif sys.stderr.isatty():
        from rich.progress import SpinnerColumn, TextColumn

        with _bar(SpinnerColumn(), TextColumn("{task.description}")) as bar:
            task = bar.add_task(title, total=None)
            yield lambda text: bar.update(task, description=f"{title}: {text}")
    else:
        last = time.perf_counter()

        def show(text: str) -> None:
            nonlocal last
            if time.perf_counter() - last >= _SECONDS_BETWEEN_LINES:
                last = time.perf_counter()
                print(f"{title}: {text}", file=sys.stderr, flush=True)

        yield show


@contextmanager
def counting(title: str, *, quiet: bool) -> Iterator[Any]:
    """A function ``(what, rows)`` that shows a number of rows on a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda what, rows: None
        return
    from rich.progress import SpinnerColumn, TextColumn

    with _bar(SpinnerColumn(), TextColumn("{task.description}")) as bar:
        task = bar.add_task(title, total=None)
        yield lambda what, rows: bar.update(task, description=f"{title}: {rows:,} rows {what}")
