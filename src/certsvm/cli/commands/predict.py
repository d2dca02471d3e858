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
from certsvm.cli.inputs import blocks, kind_of, require_other_file
from certsvm.cli.models import load_model, options_like_training
from certsvm.cli.options import DataOptions, data_options


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="Where the labels go; standard output otherwise.",
)
@click.option(
    "--scores",
    is_flag=True,
    help="After each label, the scores: of the second class, or one for each class.",
)
@data_options
@click.option("-q", "--quiet", is_flag=True, help="Do not say how many labels agree.")
def command(
    model: str, file: str, output: str, scores: bool, options: DataOptions, quiet: bool,
) -> None:  # fmt: skip
    """Predict a label for each row of FILE ("-" is standard input).

    MODEL is what `certsvm train` wrote, or a text model of liblinear. Text has labels, too, as in
    liblinear's format; put 0 if they are not known. Of a table, the columns are found by name.
    Features that the model has and the text has not are zero. Whether text counts indices from
    zero or one is taken to be as in training.

    \b
    certsvm predict a9a.model a9a.t -o predictions.txt
    zcat new.gz | certsvm predict a9a.model - --scores
    """  # noqa: D301
    import numpy as np

    trained = load_model(model)
    require_other_file(output, model, file)
    if kind_of(file) == "text":
        options = options_like_training(options, trained)
    right = rows = 0
    labelled = True
    with _opened(output) as out:
        for X, y, _ in blocks(file, options, trained.n_features, trained.feature_names):
            values = trained.decision_function(X, allow_fewer=True)
            columns = values if values.ndim == 2 else values[:, np.newaxis]
            predicted = trained.labels_of(values)
            for label_, row in zip(predicted.tolist(), columns.tolist(), strict=True):
                text = " ".join([tidy(label_), *map(repr, row)]) if scores else tidy(label_)
                out.write(text + "\n")
            rows += len(y)
            labelled = labelled and not (y == "").any()
            right += _agreeing(predicted, y)
    if not quiet and labelled:
        say(f"accuracy {right / rows:.4%} ({right} of {rows})")


def _agreeing(predicted: Any, y: Any) -> int:
    """How many labels agree; labels of another kind agree with none."""
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
        with open(output, "w") as straight:
            yield straight
        return
    from certsvm.storage.atomic import atomic_write

    with atomic_write(output, "w") as file:
        yield file
