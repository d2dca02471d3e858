"""certsvm predict, evaluate and report: models and other rows."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import sys
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli import say
from certsvm.cli.app import BadInput
from certsvm.cli.inputs import ModelRows, load_model, rows_for
from certsvm.cli.outputs import require_outputs

if TYPE_CHECKING:
    from certsvm.files import Model
    from certsvm.report import Evaluation

# Of a model and its witness in a page.
_MOST_BYTES = 1 << 26


@o.command(
    "MODEL", "FILE",
    click.option("-o", "--output", type=click.Path(dir_okay=False, allow_dash=True), default="-",
                 help="File for the labels; standard output by default."),
    click.option("--scores", is_flag=True,
                 help="Print scores, too: of the second class, or one for each class."),
    *o.DATA, "quiet",
)  # fmt: skip
def predict_command(options: o.Options, model: str, file: str, output: str, scores: bool) -> None:
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
    trained = load_model(model)
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
        where = f"; labels are in column {rows.labels_in}" if rows.labels_in else ""
        say(f"accuracy {right / rows.n_rows:.4%} ({right} of {rows.n_rows}){where}")


def _opened(output: str) -> Any:
    from certsvm.files.atomic import atomic_write

    if output == "-":
        return contextlib.nullcontext(sys.stdout)
    if os.path.exists(output) and not os.path.isfile(output):
        # A device or a pipe.
        return open(output, "w")
    return atomic_write(output, "w")


@o.command("MODEL", "FILE", *o.DATA, "ignore", "as_json")
def evaluate_command(options: o.Options, model: str, file: str) -> None:
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
    rows, evaluation = _evaluated(load_model(model), file, options)
    result, stability = _measures(evaluation.confusion), evaluation.stability
    accuracy, balanced = result["accuracy"], result["balanced_accuracy"]
    top_5 = "" if evaluation.top_5 is None else f"top 5 {evaluation.top_5:.4%}, "
    lines = [f"accuracy {accuracy:.4%}, {top_5}balanced {balanced:.4%}, {rows.n_rows} rows"]
    if stability is not None:
        # Rounded down: it is a claim.
        share = f"{math.floor(stability * 1e6) / 1e6:.4%}"
        more = "" if stability > 0.0 else " (a tighter --tol, or scaled columns, would prove more)"
        lines.append(
            f"more training could not flip {share} of the predictions, by its certificate{more}"
        )
    width = max(len(name) for name in result["classes"])
    unit = "in weight" if rows.columns is not None and rows.columns.weight else "rows"
    for name, of_class in result["classes"].items():
        shares = (of_class["precision"], of_class["recall"])
        precision, recall = ("none" if share is None else f"{share:.4%}" for share in shares)
        measured = f"precision {precision}, recall {recall}, {of_class['weight']:g} {unit}"
        lines.append(f"class {name:>{width}}: {measured}")
    told = result | {"rows": rows.n_rows, "stability": stability, "data": rows.as_json()}
    told["top_5_accuracy"] = evaluation.top_5
    options.answer(told, "\n".join([*lines, str(rows)]))


def _evaluated(model: Model, file: str, options: o.Options) -> tuple[ModelRows, Evaluation]:
    """Let a model predict the labels of a file, block by block."""
    import numpy as np

    from certsvm.files.model import listing
    from certsvm.report import Evaluation
    from certsvm.verification.optimum_intervals import unflippable

    rows = rows_for(model, file, options, complete=True)
    pairs: Counter[tuple[Any, Any]] = Counter()
    confusion: Counter[tuple[str, str]] = Counter()
    stable = near = 0.0
    # About free intercepts, and so about scores, nothing is proved.
    proves = bool(model.certificates) and not any(c.free_intercept for c in model.certificates)
    for X, y, weights in rows:
        weights = np.ones(len(y)) if weights is None else weights
        scores, labels = model.decision_function(X), y.tolist()
        answers = zip(labels, model.labels_of(scores).tolist(), weights.tolist(), strict=True)
        for true, guess, weight in answers:
            pairs[true, guess] += weight
        if model.n_problems > 5:
            best = model.classes[np.argpartition(scores, -5, axis=1)[:, -5:]].tolist()
            among = [label in of_row for label, of_row in zip(labels, best, strict=True)]
            near += float(weights[among].sum())
        if proves:
            stable += float(weights[unflippable(*model.decision_interval(X))].sum())
    for (true, guess), weight in pairs.items():
        confusion[tidy(true), tidy(guess)] += weight
    known, found = {*map(tidy, model.classes.tolist())}, {true for true, _ in confusion}
    if found.isdisjoint(known):
        raise BadInput(
            f"none of the labels in {file} ({listing(sorted(found))}) is one of the model's "
            f"({listing(sorted(known))}). Is it the right file, and the right column (--label)?"
        )
    total = confusion.total()
    top_5 = near / total if model.n_problems > 5 and total else None
    stability = stable / total if proves and total else None
    return rows, Evaluation(rows.n_rows, stability, confusion, top_5=top_5)


def _measures(confusion: Any) -> dict[str, Any]:
    """Accuracy, and precision and recall of each class; those without rows are None."""
    true, guessed, hits = Counter[str](), Counter[str](), Counter[str]()
    for (label, guess), weight in confusion.items():
        true[label] += weight
        guessed[guess] += weight
        hits[label] += weight * (label == guess)
    classes: dict[str, dict[str, Any]] = {}
    for name in sorted({*true, *guessed}):
        shares = (hits[name] / n if n else None for n in (guessed[name], true[name]))
        classes[name] = dict(zip(("precision", "recall"), shares, strict=True))
        classes[name]["weight"] = true[name]
    recalls = [c["recall"] for c in classes.values() if c["recall"] is not None]
    return {
        "accuracy": hits.total() / true.total() if recalls else 0.0,
        "balanced_accuracy": sum(recalls) / len(recalls) if recalls else 0.0,
        "classes": classes,
    }


@o.command(
    "MODEL", click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False),
    click.option("-o", "--output", metavar="PAGE", help="The page; MODEL.html by default."),
    *o.DATA, "ignore",
)  # fmt: skip
def report_command(options: o.Options, model: str, file: str | None, output: str | None) -> None:
    """Write a page about MODEL, to be opened in a browser: what is proved, and what it says.

    The page needs nothing else, and fetches nothing. With FILE, it also has the accuracy of the
    predictions there, a confusion matrix, and the share that more training could not flip.

    The page contains MODEL and its witness, and a checker in JavaScript: whoever drops the training
    data on it sees whether the certificates are true.

    \b
    certsvm report a9a.model a9a.t
    """  # noqa: D301
    from certsvm.files import witness_path
    from certsvm.report import Fit, fit_report, write_page

    page = output or f"{model}.html"
    require_outputs([model, file], page=page)
    trained, evaluation = load_model(model), None
    if file is not None:
        rows, evaluation = _evaluated(trained, file, options)
        say(str(rows))
    check = shlex.join(["certsvm", "verify", model, "TRAINING-DATA"])
    files = [path for path in (Path(model), Path(witness_path(model))) if path.exists()]
    small = sum(path.stat().st_size for path in files) <= _MOST_BYTES
    fit = Fit(
        trained, check, dual_kept=len(files) > 1, claimed=True, evaluation=evaluation,
        files=[b64encode(path.read_bytes()).decode() for path in files] if small else (),
    )  # fmt: skip
    write_page(page, fit_report(fit))
    click.echo(page)
