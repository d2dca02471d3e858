"""certsvm import."""

from __future__ import annotations

import click

from certsvm.cli.outputs import require_outputs


@click.command()
@click.argument("text", type=click.Path(exists=True, dir_okay=False))
@click.argument("output", type=click.Path(dir_okay=False))
def command(text: str, output: str) -> None:
    """Write liblinear's text model TEXT as a certsvm model to OUTPUT.

    It predicts the same labels. It has no certificate.
    """
    from certsvm.files import load_liblinear

    require_outputs([text], model=output)
    model = load_liblinear(text)
    model.save(output)
    click.echo(str(model))
