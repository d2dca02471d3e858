"""Progress of training: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import percent, tidy

if TYPE_CHECKING:
    from certsvm.problem.base import BaseProblem
    from certsvm.training.result import Callback, Observer, Progress, Result

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
    [inf, inf, 3.3]
    """

    def __init__(self, target: float, max_time: float | None) -> None:
        self._target = target
        self._max_time = math.inf if max_time is None else max_time
        self._seen: list[tuple[float, float]] = []

    def seconds_left(self, seconds: float, gap: float) -> float:
        """Estimated time until the target or the limit; infinite if it is unknown."""
        limit = max(0.0, self._max_time - seconds)
        if not (0.0 < gap < math.inf and self._target > 0.0):
            return limit
        self._seen.append((seconds, gap))
        # The rate is measured over the last half of the time, and over several passes.
        earlier = [s for s in self._seen if s[0] <= 0.5 * seconds and s[1] > gap]
        if not earlier or len(self._seen) < 3:
            return limit
        then, before = earlier[-1]
        rate = math.log(before / gap) / (seconds - then)
        return min(limit, max(0.0, round(math.log(gap / self._target) / rate, 1)))


@contextmanager
def training_progress(
    target: float, max_time: float | None, n_problems: int, *, quiet: bool
) -> Iterator[Observer]:
    """An observer that shows the progress of each class."""
    from certsvm.fitting.fit_classes import PrintedProgress
    from certsvm.training.result import Observer

    lines: dict[int, Any] = {}
    n_proved = 0

    class LiveProgress(Observer):
        def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
            title = f"class {tidy(label)}" if n_problems > 1 else "training"
            line, estimate = bar.add_task(title), TimeEstimate(target, max_time)
            lines[i] = line

            def after_pass(progress: Progress) -> None:
                bar.update(line, description=f"{title}  {_described(progress, estimate)}")

            return [after_pass]

        def end(self, i: int, label: Any, result: Result) -> None:
            nonlocal n_proved
            n_proved += result.certificate.met
            if n_problems > 1 and i in lines:
                bar.remove_task(lines[i])
                bar.update(total, description=f"{n_proved} of {n_problems} classes proved")

    if quiet:
        yield Observer()
    elif _on_terminal():
        with _live_lines() as bar:
            total = bar.add_task(f"{n_problems} classes") if n_problems > 1 else None
            yield LiveProgress()
    else:
        yield PrintedProgress(n_problems, _SECONDS_BETWEEN_LINES, summary=False)


def _described(progress: Progress, estimate: TimeEstimate) -> str:
    """A pass in a few words."""
    r = progress.record
    primal = f"{r.dual + r.gap:.6g}" if math.isfinite(r.gap) else "..."
    gap = percent(r.relative_gap) if math.isfinite(r.relative_gap) else "..."
    left = estimate.seconds_left(r.seconds, r.relative_gap)
    return (
        f"pass {r.passes} primal {primal} dual {r.dual:.6g} gap [bold]{gap}[/bold] "
        f"{r.passes / max(r.seconds, 1e-9):.3g} passes/s"
        + ("" if math.isinf(left) else f" about {left:.0f} s left")
    )


@contextmanager
def live_line(
    title: str, *, quiet: bool, elsewhere: bool = False
) -> Iterator[Callable[[str], Any]]:
    """A function that shows a text on a terminal, or ``elsewhere`` as a line now and then."""
    last = time.perf_counter()

    def show(text: str) -> None:
        nonlocal last
        if time.perf_counter() - last >= _SECONDS_BETWEEN_LINES:
            last = time.perf_counter()
            print(f"{title}: {text}", file=sys.stderr, flush=True)

    if quiet or sys.stderr is None or not (elsewhere or _on_terminal()):
        yield lambda text: None
    elif _on_terminal():
        with _live_lines() as bar:
            line = bar.add_task(title)
            yield lambda text: bar.update(line, description=f"{title}: {text}")
    else:
        yield show


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _live_lines() -> Any:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    columns = SpinnerColumn(), TextColumn("{task.description}")
    return Progress(*columns, console=Console(stderr=True), transient=True)
