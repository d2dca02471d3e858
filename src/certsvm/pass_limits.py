"""Limits that a pass looks at on its way, so that a long one does not overrun them by much."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class PassCutError(Exception):
    """A pass was cut short: it proves nothing, and counts as not made."""


_limits: ContextVar[tuple[float, threading.Event | None] | None] = ContextVar(
    "certsvm_pass_limits", default=None
)


@contextmanager
def pass_limits(seconds: float = math.inf, stop: threading.Event | None = None) -> Iterator[None]:
    """End what this thread does inside after so many seconds, or when ``stop`` is set.

    Examples
    --------
    >>> with pass_limits(0.0):
    ...     require_time()
    Traceback (most recent call last):
    ...
    certsvm.pass_limits.PassCutError: out of time
    """
    before, limits = _limits.get(), (time.perf_counter() + seconds, stop)
    # An interrupt between setting the limits and the try would leave them in force for good.
    try:
        _limits.set(limits)
        yield
    finally:
        _limits.set(before)


def require_time() -> None:
    """Raise ``PassCutError`` beyond the limits; loops over blocks of rows call it."""
    limits = _limits.get()
    if limits is None:
        return
    until, stop = limits
    if time.perf_counter() >= until:
        raise PassCutError("out of time")
    if stop is not None and stop.is_set():
        raise PassCutError("stopped")
