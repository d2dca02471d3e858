"""The command line: commands in files of their own, alone or with those that they go with.

The command ``certsvm`` runs ``certsvm.cli.main``. Commands are imported when they are used, so that
``certsvm --help`` starts at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

from certsvm.cli.interrupts import INTERRUPTED, catch_signals, ignore_signals

FAULT = 70
"""The exit code of an error in the program itself. Python's own would be 1: refuted."""


def main() -> None:
    """Run the command line."""
    catch_signals()
    try:
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        # The interpreter would restore the system's handlers before it ends.
        ignore_signals()
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
        reason = str(error) or "there is not enough memory"
        say(f"certsvm cannot start: {reason}. (pip install 'certsvm[cli]' has all that it needs.)")
        return 2
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
