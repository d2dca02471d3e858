"""certsvm evaluate."""

from __future__ import annotations

import math

import click

from certsvm.cli.app import put_json
from certsvm.cli.evaluation import answers_on
from certsvm.cli.models import load_model
from certsvm.cli.options import DATA, IGNORE, JSON, Options, file_argument, shared


@click.command()
@file_argument("model", stdin=False)
@file_argument("file")
@shared(*DATA, IGNORE, JSON)
def command(options: Options, model: str, file: str) -> None:
    """Measure how well MODEL predicts the labels of FILE ("-" is standard input).

    Rows are counted; with --weight, their weights are summed. Columns are matched by name, as by
    `certsvm predict`, but the model must use all of them, except for those to --ignore, and has no
    say in which has the labels (--label). The last line says what was read.

    Of a model with certificates it also tells how many of the predictions are proved to be those of
    the exact optimum: more training could not flip them. If the intercept was left out of the
    penalty, nothing is proved about that.

    \b
    certsvm evaluate a9a.model a9a.t
    """  # noqa: D301
    answers = answers_on(load_model(model, file), file, options)
    rows, stability, result = answers.rows, answers.stability, answers.measures
    if options.as_json:
        put_json(result | {"rows": rows.n_rows, "stability": stability, "data": rows.as_json()})
        return
    click.echo(f"accuracy {result['accuracy']:.4%}, balanced {result['balanced_accuracy']:.4%}, "
               f"{rows.n_rows} rows")  # fmt: skip
    if stability is not None:
        # Rounded down: it is a claim.
        share = math.floor(stability * 1e6) / 1e6
        click.echo(
            f"more training could not flip {share:.4%} of the predictions, by its certificate"
        )
    width = max(len(name) for name in result["classes"])
    unit = "in weight" if answers.weighted else "rows"
    for name, of_class in result["classes"].items():
        precision, recall = (
            "none" if of_class[what] is None else f"{of_class[what]:.4%}"
            for what in ("precision", "recall")
        )
        click.echo(
            f"class {name:>{width}}: precision {precision}, recall {recall}, "
            f"{of_class['weight']:g} {unit}"
        )
    click.echo(str(rows))
