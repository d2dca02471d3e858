"""certsvm export."""

from __future__ import annotations

import click

from certsvm.cli.models import load_model
from certsvm.cli.options import OUTPUT_FILE, file_argument
from certsvm.cli.outputs import require_outputs


@click.command()
@file_argument("model", stdin=False)
@click.argument("output", type=OUTPUT_FILE)
def command(model: str, output: str) -> None:
    """Write MODEL as liblinear's text to OUTPUT, for liblinear's `predict`.

    Labels must be integers. The certificates are lost.
    """
    from certsvm.files import save_liblinear

    require_outputs([model], text_model=output)
    save_liblinear(load_model(model), output)
    click.echo(f"{output}: a text model for liblinear")
