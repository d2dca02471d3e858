"""certsvm import."""

from __future__ import annotations

import click


@click.command()
@click.argument("text", type=click.Path(exists=True, dir_okay=False))
@click.argument("output", type=click.Path(dir_okay=False))
def command(text: str, output: str) -> None:
    """Write liblinear's text model TEXT as a model of ours to OUTPUT.

    It predicts the same. Nothing is proved about it.
    """
    from certsvm.models import load_liblinear

    model = load_liblinear(text)
    model.save(output)
    click.echo(str(model))
