"""certsvm import."""

from __future__ import annotations

import click

from certsvm.cli.options import OUTPUT_FILE, file_argument
from certsvm.cli.outputs import require_outputs


@click.command()
@file_argument("text", stdin=False)
@click.argument("output", type=OUTPUT_FILE)
def command(text: str, output: str) -> None:
    """Write liblinear's text model TEXT as a certsvm model to OUTPUT.

    It predicts the same labels. It has no certificate.
    """
    from certsvm.files import load_liblinear

    require_outputs([text], model=output)
    model = load_liblinear(text)
    model.save(output)
    click.echo(str(model))
