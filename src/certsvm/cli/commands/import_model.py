"""certsvm import."""

from __future__ import annotations

import click

from certsvm.cli.inputs import require_other_file


@click.command()
@click.argument("text", type=click.Path(exists=True, dir_okay=False))
@click.argument("output", type=click.Path(dir_okay=False))
def command(text: str, output: str) -> None:
    """Write liblinear's text model TEXT as a certsvm model to OUTPUT.

    It predicts the same labels. It has no certificate.
    """
    from certsvm.models import load_liblinear, witness_path

    require_other_file(output, text)
    # Saving a model without a witness removes an old one.
    require_other_file(witness_path(output), text)
    model = load_liblinear(text)
    model.save(output)
    click.echo(str(model))
