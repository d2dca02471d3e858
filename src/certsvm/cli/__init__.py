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
        _say("interrupted")
        # Python would end by SIGINT if the interrupt came in an ``exec``, which dataclasses use.
        os._exit(code)
    raise SystemExit(code)


def _run() -> int:
    """Run a command and return its exit code."""
    try:
        import click

        from certsvm.cli.app import app
    except ImportError:
        _say("certsvm: the command line needs more packages: pip install 'certsvm[cli]'")
        return 2
    except MemoryError:
        _say("certsvm: there is not enough memory to start")
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
        _say("certsvm: this is an error in certsvm itself, not in the data or the model")
        _say(traceback.format_exc())
        return FAULT


def _say(text: str) -> None:
    # Standard error may be closed.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(text, file=sys.stderr)
