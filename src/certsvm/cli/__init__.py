"""The command line: commands in files of their own, alone or with those that they go with.

The command ``certsvm`` runs ``certsvm.cli.main``. Commands are imported when they are used, so that
``certsvm --help`` starts at once.

Ctrl-C and SIGTERM both raise KeyboardInterrupt, as Ctrl-C does in any Python program. Inside
``stoppable``, the first one sets an event instead, at which training looks, so that the best model
so far is written.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

REFUTED, BAD_INPUT, NOT_MET, UNDECIDED, FAULT, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 4, 70, 130, 141
"""Exit codes. Python's own for an error in the program would be 1: refuted."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_stop = threading.Event()
_training = False


def main() -> None:
    """Run the command line."""
    for number in _SIGNALS:
        # Shells let background jobs ignore Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)
    try:
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        # The command has ended, and its exit code is known. The interpreter would restore the
        # system's handlers before it ends.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    if code == INTERRUPTED:
        say("interrupted")
        # Python would end by SIGINT if the interrupt came in an ``exec``, which dataclasses use.
        os._exit(code)
    raise SystemExit(code)


def _run() -> int:
    """Run a command and return its exit code."""
    try:
        import click

        from certsvm.cli.app import app
    except (ImportError, MemoryError) as error:
        reason = str(error) or "not enough memory"
        say(f"certsvm cannot start: {reason} (pip install 'certsvm[cli]' has all that it needs)")
        return BAD_INPUT
    try:
        return app.main(prog_name="certsvm", standalone_mode=False) or 0
    except click.ClickException as error:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            error.show()
        return error.exit_code
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception:
        say(f"certsvm: this is an error in certsvm itself\n{traceback.format_exc()}")
        return FAULT


def say(text: str) -> None:
    """Print to standard error, if it is open."""
    from certsvm.certificates.certificate import printable

    with contextlib.suppress(OSError, ValueError, AttributeError):
        # click would write past a live line, and into it.
        print(printable(text, keep="\n"), file=sys.stderr, flush=True)


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


def facts(instance: Any, names: str) -> dict[str, Any]:
    """Attributes of an object by their names, for JSON."""
    return {name: getattr(instance, name) for name in names.split()}
