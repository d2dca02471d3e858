"""certsvm evaluate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli.app import BadInput, put_json
from certsvm.cli.matching import ModelRows, rows_for
from certsvm.cli.models import load_model

if TYPE_CHECKING:
    from certsvm.files import Model


@click.command()
@o.file_argument("model", stdin=False)
@o.file_argument("file")
@o.shared(*o.DATA, o.IGNORE, o.JSON)
def command(options: o.Options, model: str, file: str) -> None:
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


@dataclass
class Answers:
    """Predictions beside the truth.

    Attributes
    ----------
    rows : ModelRows
        What was read.
    confusion : dict
        The weight of the rows of each pair of a true and a predicted label.
    weighted : bool
        Whether rows have weights.
    stability : float or None
        The share of predictions that more training could not flip; None if nothing is proved.
    """

    rows: ModelRows
    confusion: dict[tuple[str, str], float] = field(default_factory=dict)
    weighted: bool = False
    stability: float | None = None

    @property
    def measures(self) -> dict[str, Any]:
        """Accuracy, and precision and recall of each class; those without rows are None."""
        right = sum(weight for (true, guess), weight in self.confusion.items() if true == guess)
        classes: dict[str, Any] = {}
        for name in sorted({name for pair in self.confusion for name in pair}):
            true, guessed = (
                sum(weight for pair, weight in self.confusion.items() if pair[side] == name)
                for side in (0, 1)
            )
            hits = self.confusion.get((name, name), 0.0)
            classes[name] = {
                "weight": true,
                "precision": hits / guessed if guessed else None,
                "recall": hits / true if true else None,
            }
        recalls = [c["recall"] for c in classes.values() if c["recall"] is not None]
        return {
            "accuracy": right / sum(self.confusion.values()) if right else 0.0,
            "balanced_accuracy": sum(recalls) / len(recalls) if recalls else 0.0,
            "classes": classes,
        }


def answers_on(model: Model, file: str, options: o.Options) -> Answers:
    """Let a model predict the labels of a file, block by block."""
    import numpy as np

    from certsvm.files.model import listing
    from certsvm.verification.optimum_intervals import unflippable

    rows = rows_for(model, file, options, complete=True)
    answers, stable = Answers(rows), 0.0
    # About free intercepts, and so about scores, nothing is proved.
    proves = bool(model.certificates) and not any(c.free_intercept for c in model.certificates)
    for X, y, weights in rows:
        predicted = model.predict(X)
        if proves:
            sure = unflippable(*model.decision_interval(X))
            stable += float(np.sum(sure if weights is None else weights[sure]))
        pairs = np.array([list(map(tidy, labels)) for labels in (y.tolist(), predicted.tolist())])
        cells, cell = np.unique(pairs, axis=1, return_inverse=True)
        totals = np.bincount(cell.ravel(), weights=weights, minlength=cells.shape[1])
        for (true, guess), weight in zip(cells.T.tolist(), totals.tolist(), strict=True):
            answers.confusion[true, guess] = answers.confusion.get((true, guess), 0.0) + weight
        answers.weighted = answers.weighted or weights is not None
    known = {tidy(label) for label in model.classes.tolist()}
    found = {true for true, _ in answers.confusion}
    if found and not found & known:
        raise BadInput(
            f"none of the labels in {file} ({listing(sorted(found))}) is one of the model's "
            f"({listing(sorted(known))}). Is it the right file, and the right column (--label)?"
        )
    total = sum(answers.confusion.values())
    if proves and total:
        answers.stability = stable / total
    return answers
