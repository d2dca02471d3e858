"""Ctrl-C and SIGTERM.

Both raise KeyboardInterrupt, as Ctrl-C does in any Python program. Inside ``stoppable``, the first
one sets an event instead, at which training looks, so that the best model so far is written.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""The exit code, as shells have it for Ctrl-C."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_stop = threading.Event()
_training = False


def catch_signals() -> None:
    """Handle both signals from now on."""
    for number in _SIGNALS:
        # Shells let background jobs ignore Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)


def ignore_signals() -> None:
    """Ignore both signals: the command has ended, and its exit code is known."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _on_signal(number: int, frame: FrameType | None) -> None:
    at_once = _stop.is_set() or not _training
    _stop.set()
    if at_once:
        raise KeyboardInterrupt


@contextlib.contextmanager
def stoppable() -> Iterator[threading.Event]:
    """The first signal inside sets the event."""
    global _training
    # An interrupt in a callback or a destructor is lost.
    stop_before_first(())
    _training = True
    try:
        yield _stop
    finally:
        _training = False
        _stop.clear()


def stop_before_first(results: Iterable[Any]) -> None:
    """Raise KeyboardInterrupt if a signal came before anything completed a first pass."""
    if _stop.is_set() and not any(result.passes for result in results):
        raise KeyboardInterrupt
