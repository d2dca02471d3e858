"""certsvm predict."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import say
from certsvm.cli.models import load_model, rows_for
from certsvm.cli.options import DATA, Options, file_argument, shared
from certsvm.cli.outputs import require_outputs


@click.command()
@file_argument("model", stdin=False)
@file_argument("file")
@shared(
    click.option("-o", "--output", type=click.Path(dir_okay=False, allow_dash=True), default="-",
                 help="File for the labels; standard output by default."),
    click.option("--scores", is_flag=True,
                 help="Print scores after each label: of the second class, or one for each "
                      "class."),
    *DATA, "quiet",
)  # fmt: skip
def command(options: Options, model: str, file: str, output: str, scores: bool) -> None:
    """Predict a label for each row of FILE ("-" is standard input).

    MODEL was written by `certsvm train` or by liblinear. libsvm text must have labels; write 0 if
    they are unknown. Columns of a table are matched by name; if the model has no names, their
    number must be right. Features of the model that are missing in text are zero, and features that
    the model has not seen are left out. Text is zero- or one-based as in training. With --quiet,
    the accuracy is not printed.

    \b
    certsvm predict a9a.model a9a.t -o predictions.txt
    zcat new.gz | certsvm predict a9a.model - --scores
    """  # noqa: D301
    trained = load_model(model, file)
    require_outputs([model, file], predictions=output)
    rows, right, labelled = rows_for(trained, file, options), 0, True
    with _opened(output) as out:
        for X, y, _ in rows:
            values = trained.decision_function(X)
            predicted = trained.labels_of(values)
            columns = values.reshape(len(y), -1)
            for label, row in zip(predicted.tolist(), columns.tolist(), strict=True):
                out.write(" ".join([tidy(label), *map(repr, row if scores else ())]) + "\n")
            labelled = labelled and not (y == "").any()
            # Labels of different types are never equal.
            same: Any = predicted == y
            right += int(same.sum()) if hasattr(same, "sum") else 0
        out.flush()
    if not options.quiet and labelled:
        where = "" if rows.label is None else f"; labels are in column {rows.labels_in}"
        say(f"accuracy {right / rows.n_rows:.4%} ({right} of {rows.n_rows}){where}")


def _opened(output: str) -> Any:
    from certsvm.files.atomic import atomic_write

    if output == "-":
        return contextlib.nullcontext(sys.stdout)
    if os.path.exists(output) and not os.path.isfile(output):
        # A device or a pipe.
        return open(output, "w")
    return atomic_write(output, "w")
