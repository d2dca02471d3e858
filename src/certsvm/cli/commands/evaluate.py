"""certsvm evaluate."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli.app import BadInput, put_json
from certsvm.cli.models import ModelRows, load_model, rows_for

if TYPE_CHECKING:
    from certsvm.files import Model


@click.command()
@o.file_argument("model", stdin=False)
@o.file_argument("file")
@o.shared(*o.DATA, "ignore", "as_json")
def command(options: o.Options, model: str, file: str) -> None:
    """Measure how well MODEL predicts the labels of FILE ("-" is standard input).

    Rows are counted; with --weight, their weights are summed. Columns are matched by name, as by
    `certsvm predict`, but the model must use all of them, except for those to --ignore. The labels
    are in the column of --label, else in that of training. The last line says what was read.

    Of a model with certificates it also tells how many of the predictions are proved to be those of
    the exact optimum: more training could not flip them. If the intercept was left out of the
    penalty, nothing is proved about that.

    \b
    certsvm evaluate a9a.model a9a.t
    """  # noqa: D301
    answers = answers_on(load_model(model, file), file, options)
    rows, result = answers.rows, _measures(answers.confusion)
    if options.as_json:
        more = {"rows": rows.n_rows, "stability": answers.stability, "data": rows.as_json()}
        put_json(result | more | {"top_5_accuracy": answers.top_5})
        return
    top_5 = "" if answers.top_5 is None else f"top 5 {answers.top_5:.4%}, "
    click.echo(f"accuracy {result['accuracy']:.4%}, {top_5}balanced "
               f"{result['balanced_accuracy']:.4%}, {rows.n_rows} rows")  # fmt: skip
    if answers.stability is not None:
        # Rounded down: it is a claim.
        share = math.floor(answers.stability * 1e6) / 1e6
        told = f"more training could not flip {share:.4%} of the predictions, by its certificate"
        if share == 0.0:
            told = "more training could flip any prediction, as far as its certificate tells: a "
            told += "tighter --tol would prove more, or scaled columns (certsvm scale)"
        click.echo(told)
    width = max(len(name) for name in result["classes"])
    for name, of_class in result["classes"].items():
        precision, recall = (
            "none" if of_class[what] is None else f"{of_class[what]:.4%}"
            for what in ("precision", "recall")
        )
        click.echo(
            f"class {name:>{width}}: precision {precision}, recall {recall}, "
            f"{of_class['weight']:g} {'in weight' if answers.weighted else 'rows'}"
        )
    click.echo(str(rows))


@dataclass
class Answers:
    """Predictions beside the truth.

    Attributes
    ----------
    rows : ModelRows
        What was read.
    confusion : Counter
        The weight of the rows of each pair of a true and a predicted label.
    weighted : bool
        Whether rows have weights.
    stability : float or None
        The share of predictions that more training could not flip; None if nothing is proved.
    top_5 : float or None
        The share of rows whose label is among the five classes of the highest scores; None of five
        classes or fewer.
    """

    rows: ModelRows
    confusion: Counter[tuple[str, str]]
    weighted: bool
    stability: float | None
    top_5: float | None


def answers_on(model: Model, file: str, options: o.Options) -> Answers:
    """Let a model predict the labels of a file, block by block."""
    import numpy as np

    from certsvm.files.model import listing
    from certsvm.verification.optimum_intervals import unflippable

    rows = rows_for(model, file, options, complete=True)
    pairs: Counter[tuple[Any, Any]] = Counter()
    stable, near, weighted = 0.0, 0.0, False
    # About free intercepts, and so about scores, nothing is proved.
    proves = bool(model.certificates) and not any(c.free_intercept for c in model.certificates)
    for X, y, weights in rows:
        weighted |= weights is not None
        weights = np.ones(len(y)) if weights is None else weights
        scores, labels = model.decision_function(X), y.tolist()
        answers = zip(labels, model.labels_of(scores).tolist(), strict=True)
        for pair, weight in zip(answers, weights.tolist(), strict=True):
            pairs[pair] += weight
        if model.n_problems > 5:
            best = model.classes[np.argpartition(scores, -5, axis=1)[:, -5:]].tolist()
            among = [label in of_row for label, of_row in zip(labels, best, strict=True)]
            near += float(weights[among].sum())
        if proves:
            stable += float(weights[unflippable(*model.decision_interval(X))].sum())
    confusion: Counter[tuple[str, str]] = Counter()
    for (true, guess), weight in pairs.items():
        confusion[tidy(true), tidy(guess)] += weight
    known, found = {*map(tidy, model.classes.tolist())}, {true for true, _ in confusion}
    if found.isdisjoint(known):
        raise BadInput(
            f"none of the labels in {file} ({listing(sorted(found))}) is one of the model's "
            f"({listing(sorted(known))}). Is it the right file, and the right column (--label)?"
        )
    total = confusion.total()
    stability = stable / total if proves and total else None
    top_5 = near / total if model.n_problems > 5 and total else None
    return Answers(rows, confusion, weighted, stability, top_5)


def _measures(confusion: Counter[tuple[str, str]]) -> dict[str, Any]:
    """Accuracy, and precision and recall of each class; those without rows are None."""
    true, guessed, hits = Counter[str](), Counter[str](), Counter[str]()
    for (label, guess), weight in confusion.items():
        true[label] += weight
        guessed[guess] += weight
        hits[label] += weight * (label == guess)
    classes = {
        name: {
            "weight": true[name],
            "precision": hits[name] / guessed[name] if guessed[name] else None,
            "recall": hits[name] / true[name] if true[name] else None,
        }
        for name in sorted({*true, *guessed})
    }
    recalls = [c["recall"] for c in classes.values() if c["recall"] is not None]
    return {
        "accuracy": hits.total() / confusion.total() if recalls else 0.0,
        "balanced_accuracy": sum(recalls) / len(recalls) if recalls else 0.0,
        "classes": classes,
    }
