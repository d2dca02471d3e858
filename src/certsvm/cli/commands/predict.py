"""certsvm predict."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import say
from certsvm.cli.matching import FittedRows
from certsvm.cli.models import load_model
from certsvm.cli.options import DataOptions, data_options
from certsvm.cli.outputs import require_outputs


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="File for the labels; standard output by default.",
)
@click.option(
    "--scores",
    is_flag=True,
    help="Print scores after each label: of the second class, or one for each class.",
)
@data_options
@click.option("-q", "--quiet", is_flag=True, help="Do not print the accuracy.")
def command(
    model: str, file: str, output: str, scores: bool, options: DataOptions, quiet: bool
) -> None:
    """Predict a label for each row of FILE ("-" is standard input).

    MODEL was written by `certsvm train` or by liblinear. libsvm text must have labels; write 0 if
    they are unknown. Columns of a table are matched by name; if the model has no names, their
    number must be right. Features of the model that are missing in text are zero, and features that
    the model has not seen are left out. Text is zero- or one-based as in training.

    \b
    certsvm predict a9a.model a9a.t -o predictions.txt
    zcat new.gz | certsvm predict a9a.model - --scores
    """  # noqa: D301
    import numpy as np

    trained = load_model(model, file)
    require_outputs([model, file], predictions=output)
    right = rows = 0
    labelled = True
    read = FittedRows(trained, file, options)
    with _opened(output) as out:
        for X, y, _ in read:
            values = trained.decision_function(X)
            columns = values if values.ndim == 2 else values[:, np.newaxis]
            predicted = trained.labels_of(values)
            for label, row in zip(predicted.tolist(), columns.tolist(), strict=True):
                out.write(" ".join([tidy(label), *map(repr, row if scores else ())]) + "\n")
            rows += len(y)
            labelled = labelled and not (y == "").any()
            right += _agreeing(predicted, y)
    if not quiet and labelled:
        label = read.reading.label
        where = "" if label is None else f"; labels are in column {label!r}"
        say(f"accuracy {right / rows:.4%} ({right} of {rows}){where}")


def _agreeing(predicted: Any, y: Any) -> int:
    """Number of equal labels; labels of different types are never equal."""
    same = predicted == y
    return int(same.sum()) if hasattr(same, "sum") else 0


@contextmanager
def _opened(output: str) -> Iterator[Any]:
    if output == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    if os.path.exists(output) and not os.path.isfile(output):
        # A device or a pipe.
        with open(output, "w") as special:
            yield special
        return
    from certsvm.storage.atomic import atomic_write

    with atomic_write(output, "w") as file:
        yield file
