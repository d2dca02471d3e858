"""SIGINT and SIGTERM, from the first line of the command to the last.

Both raise KeyboardInterrupt, which training turns into the result so far. Some moments need more:

* While a module is imported or a kernel compiled, an exception could become another one, or be
  ignored, or leave half an object that ends the process when it is destroyed. The signal is
  delivered again when that is over. So it is while a file is put in its place, and a temporary
  folder made or removed.
* An exception in a destructor is printed and lost. An interrupt is delivered again, and what other
  libraries' objects say that were made by half is not printed.
* When everything is done, the interpreter restores the default, which ends the process by the
  signal. Signals are ignored from then on.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""The exit code, as shells have it for Ctrl-C."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Parts of the names of the files whose functions are not interrupted.
_COMPLETED_FIRST = (
    "<frozen importlib",
    *(f"{os.sep}{name}{os.sep}" for name in ("numba", "llvmlite")),
    *(f"{os.sep}{name}.py" for name in ("tempfile", "shutil")),
    os.path.join("certsvm", "storage", "atomic.py"),
)
_SECONDS_UNTIL_AGAIN = 0.002


class _Seen:
    """Whether there was a signal."""

    signal = False


def was_interrupted() -> bool:
    """Whether a signal has arrived, whatever came of it."""
    return _Seen.signal


def comes_from_interrupt(error: BaseException) -> bool:
    """Whether a library turned an interrupt into another error."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, KeyboardInterrupt):
            return True
        # An error may be the cause of its own cause.
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            waiting += [one.__cause__, one.__context__]
    return False


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for both signals inside the block, and ignore them after it."""
    for number in _SIGNALS:
        # Shells let background jobs ignore Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)
    sys.unraisablehook = _unraisable
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _raise(number: int, frame: FrameType | None) -> None:
    _Seen.signal = True
    while frame is not None:
        if any(place in frame.f_code.co_filename for place in _COMPLETED_FIRST):
            _again()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _unraisable(error: Any) -> None:
    if issubclass(error.exc_type, KeyboardInterrupt):
        _again()
    elif not _Seen.signal:
        sys.__unraisablehook__(error)


def _again() -> None:
    timer = threading.Timer(_SECONDS_UNTIL_AGAIN, signal.raise_signal, (signal.SIGINT,))
    timer.daemon = True
    timer.start()
