"""The command line: one file per command.

The command ``certsvm`` runs ``certsvm.cli.main``. Commands are imported when they are used, so that
``certsvm --help`` starts at once.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        import click  # noqa: F401

        from certsvm.cli.app import app
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except MemoryError:
        print("certsvm: there is not enough memory to start", file=sys.stderr)
        raise SystemExit(2) from None
    except ImportError:
        print(
            "certsvm: the command line needs more packages: pip install 'certsvm[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    app(prog_name="certsvm")
