"""SIGINT and SIGTERM: what they end, and how.

A command that has written nothing ends at once. Inside ``stoppable``, a signal sets an event that
training looks at, so that the best model so far is written, and that others ask with
``stop_if_asked`` between two batches, so that no temporary file stays behind. A second signal ends
the process at once in any case. No exception is raised in code that does not expect it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""The exit code, as shells have it for Ctrl-C."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Now:
    """What a signal does now: it sets the event, if there is one, and may end a read that waits."""

    stop: threading.Event | None = None
    reading = False


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
    if _Now.stop is not None and not _Now.stop.is_set():
        _Now.stop.set()
        if _Now.reading:
            raise KeyboardInterrupt
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):
        # A live line on a terminal hides the cursor.
        os.write(2, b"\x1b[?25h\n" * sys.stderr.isatty() + b"interrupted\n")
    os._exit(INTERRUPTED)


@contextlib.contextmanager
def stoppable() -> Iterator[threading.Event]:
    """The first signal inside sets the event."""
    _Now.stop = threading.Event()
    try:
        yield _Now.stop
    finally:
        _Now.stop = None


def stop_if_asked() -> None:
    """Raise KeyboardInterrupt after a signal inside ``stoppable``."""
    if _Now.stop is not None and _Now.stop.is_set():
        raise KeyboardInterrupt


class StandardInput:
    """Standard input, whose reads end by KeyboardInterrupt: they may wait for ever."""

    name = "<stdin>"

    def read(self, size: int = -1) -> Any:
        """Bytes."""
        stop_if_asked()
        _Now.reading = True
        try:
            return sys.stdin.buffer.read(size)
        finally:
            _Now.reading = False


def stop_before_first(results: Iterable[Any]) -> None:
    """Raise KeyboardInterrupt if a signal came before anything completed a first pass."""
    if not any(result.passes for result in results):
        stop_if_asked()
