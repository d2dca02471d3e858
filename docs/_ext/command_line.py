"""The page of the command line: what ``--help`` prints, for every command."""

from __future__ import annotations

from typing import Any

import click
from sphinx.application import Sphinx

PAGE = "command-line"
WIDTH = 88


def help_of(command: click.Command, name: str) -> str:
    """The help of a command, as in a wide terminal."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    return command.get_help(context)


def sections() -> str:
    """Markdown, with a section for each command."""
    from certsvm.cli.app import app

    context = click.Context(app, info_name="certsvm")
    parts = [f"```text\n{help_of(app, 'certsvm')}\n```\n"]
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        parts.append(f"## {name}\n\n```text\n{help_of(command, f'certsvm {name}')}\n```\n")
    return "\n".join(parts)


def read(app: Sphinx, name: str, content: list[str]) -> None:
    """Add the commands to the page, which Sphinx has just read."""
    if name == PAGE:
        content[0] = f"{content[0]}\n{sections()}"
        # The options are in many files.
        app.env.note_reread()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
