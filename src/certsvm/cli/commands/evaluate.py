"""certsvm evaluate."""

from __future__ import annotations

import math
from typing import Any

import click

from certsvm.cli.app import put_json
from certsvm.cli.evaluation import Answers, answers_on
from certsvm.cli.models import load_model
from certsvm.cli.options import DataOptions, as_json_option, data_options, ignore_option


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@data_options
@ignore_option
@as_json_option
def command(model: str, file: str, options: DataOptions, as_json: bool) -> None:
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
    trained = load_model(model, file)
    answers = answers_on(trained, file, options)
    rows, stability = answers.reading.n_rows, answers.stability
    result = _measures(answers) | {
        "rows": rows, "stability": stability, "data": answers.reading.as_json(),
    }  # fmt: skip
    if as_json:
        put_json(result)
        return
    click.echo(f"accuracy {result['accuracy']:.4%}, balanced {result['balanced_accuracy']:.4%}, "
               f"{rows} rows")  # fmt: skip
    if stability is not None:
        # Rounded down: it is a claim.
        share = math.floor(stability * 1e6) / 1e6
        click.echo(
            f"more training could not flip {share:.4%} of the predictions, by its certificate"
        )
    width = max(len(name) for name in result["classes"])
    unit = "in weight" if answers.weighted else "rows"
    for name, scores in result["classes"].items():
        click.echo(
            f"class {name:>{width}}: precision {_percentage(scores['precision'])}, recall "
            f"{_percentage(scores['recall'])}, {scores['weight']:g} {unit}"
        )
    click.echo(str(answers.reading))


def _measures(answers: Answers) -> dict[str, Any]:
    confusion = answers.confusion
    classes: dict[str, Any] = {}
    for name in sorted({name for pair in confusion for name in pair}):
        true = sum(weight for pair, weight in confusion.items() if pair[0] == name)
        guessed = sum(weight for pair, weight in confusion.items() if pair[1] == name)
        hits = confusion.get((name, name), 0.0)
        classes[name] = {
            "weight": true,
            "precision": hits / guessed if guessed else None,
            "recall": hits / true if true else None,
        }
    recalls = [c["recall"] for c in classes.values() if c["recall"] is not None]
    return {
        "accuracy": answers.accuracy,
        "balanced_accuracy": sum(recalls) / len(recalls) if recalls else 0.0,
        "classes": classes,
    }


def _percentage(value: float | None) -> str:
    return "none" if value is None else f"{value:.4%}"
