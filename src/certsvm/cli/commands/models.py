"""certsvm predict, evaluate, report, verify, bound, info, export and import: models and data."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import sys
from base64 import b64encode
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certsvm import files
from certsvm.certificates.certificate import DEFAULT_TOL, tidy
from certsvm.cli import NOT_MET, REFUTED, UNDECIDED, facts, say
from certsvm.cli import files as f
from certsvm.cli import options as o

if TYPE_CHECKING:
    from certsvm.report import Evaluation

# Of a model and its witness in a page.
_MOST_BYTES = 1 << 26
_CODES = {"confirmed": 0, "half confirmed": NOT_MET, "undecided": UNDECIDED, "refuted": REFUTED}
_MEANINGS = {
    "confirmed": "confirmed: both halves were recomputed from the data",
    "half confirmed": "half confirmed: J was recomputed; L is a claim: there is no MODEL.witness",
    "undecided": "undecided: double precision neither confirms nor refutes the certificate",
    "refuted": "REFUTED: the certificate is not true of these data",
}


@o.command("MODEL", "FILE", "out", "scores", *o.DATA, "quiet")
def predict_command(options: o.Options, model: str, file: str) -> None:
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
    trained = f.load_model(model)
    f.require_outputs([model, file], predictions=options.out or "-")
    rows, right, labelled = f.ModelRows(trained, file, options), 0, True
    with _opened(options.out) as out:
        for X, y, _ in rows:
            values = trained.decision_function(X)
            predicted = trained.labels_of(values)
            columns = values.reshape(len(y), -1).tolist()
            for label, row in zip(predicted.tolist(), columns, strict=True):
                out.write(" ".join([tidy(label), *map(repr, row if options.scores else ())]) + "\n")
            labelled = labelled and not (y == "").any()
            right += int((predicted == y).sum())
        out.flush()
    if not options.quiet and labelled:
        where = f"; labels are in column {rows.labels_in}" if rows.labels_in else ""
        say(f"accuracy {right / rows.n_rows:.4%} ({right} of {rows.n_rows}){where}")


def _opened(output: str | None) -> Any:
    from certsvm.files.atomic import atomic_write

    if output in (None, "-"):
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
    from certsvm.report import confusion_sums

    rows, evaluation = _evaluated(f.load_model(model), file, options)
    stability, top_5 = evaluation.stability, evaluation.top_5
    true, guessed, hits = confusion_sums(evaluation.confusion or {})
    recalls = {name: hits[name] / true[name] for name in true if true[name]}
    accuracy = hits.total() / true.total() if recalls else 0.0
    balanced = sum(recalls.values()) / len(recalls) if recalls else 0.0
    near = "" if top_5 is None else f"top 5 {top_5:.4%}, "
    lines = [f"accuracy {accuracy:.4%}, {near}balanced {balanced:.4%}, {rows.n_rows} rows"]
    if stability is not None:
        # Rounded down: it is a claim.
        share = f"{math.floor(stability * 1e6) / 1e6:.4%}"
        lines.append(f"more training could not flip {share} of the predictions, by its certificate")
    unit = "in weight" if rows.columns is not None and rows.columns.weight else "rows"
    classes = {}
    for name in sorted({*true, *guessed}):
        precision = hits[name] / guessed[name] if guessed[name] else None
        shares = {"precision": precision, "recall": recalls.get(name)}
        shown = ", ".join(f"{k} {'none' if v is None else f'{v:.4%}'}" for k, v in shares.items())
        lines.append(f"class {name}: {shown}, {true[name]:g} {unit}")
        classes[name] = shares | {"weight": true[name]}
    answer = {"accuracy": accuracy, "balanced_accuracy": balanced, "classes": classes}
    answer |= {"rows": rows.n_rows, "stability": stability, "data": rows.as_json()}
    options.answer(answer | {"top_5_accuracy": top_5}, "\n".join([*lines, str(rows)]))


def _evaluated(model: files.Model, file: str, options: o.Options) -> tuple[f.ModelRows, Evaluation]:
    """Let a model predict the labels of a file, block by block."""
    import numpy as np

    from certsvm.files.model import listing
    from certsvm.report import Evaluation
    from certsvm.verification.optimum_intervals import unflippable

    rows, pairs = f.ModelRows(model, file, options, complete=True), Counter[tuple[Any, Any]]()
    confusion, stable, near = Counter[tuple[str, str]](), 0.0, 0.0
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
    known, given = {*map(tidy, model.classes.tolist())}, {true for true, _ in confusion}
    if given.isdisjoint(known):
        raise ValueError(
            f"none of the labels in {file} ({listing(sorted(given))}) is one of the model's "
            f"({listing(sorted(known))}). Is it the right file, and the right column (--label)?"
        )
    total = confusion.total()
    top_5 = near / total if model.n_problems > 5 and total else None
    stability = stable / total if proves and total else None
    return rows, Evaluation(rows.n_rows, stability, confusion, top_5=top_5)


@o.command(
    "MODEL", click.Argument(["file"], type=click.Path(True, dir_okay=False), required=False),
    "out", *o.DATA, "ignore",
)  # fmt: skip
def report_command(options: o.Options, model: str, file: str | None) -> None:
    """Write a page about MODEL, to be opened in a browser: what is proved, and what it says.

    The page needs nothing else, and fetches nothing. With FILE, it also has the accuracy of the
    predictions there, a confusion matrix, and the share that more training could not flip.

    The page contains MODEL and its witness, and a checker in JavaScript: whoever drops the training
    data on it sees whether the certificates are true.

    \b
    certsvm report a9a.model a9a.t
    """  # noqa: D301
    from certsvm.report import fit_parts, fit_report, write_page

    page = options.out or f"{model}.html"
    f.require_outputs([model, file], page=page)
    trained, evaluation = f.load_model(model), None
    if file is not None:
        rows, evaluation = _evaluated(trained, file, options)
        say(str(rows))
    kept = [path for path in (Path(model), Path(files.witness_path(model))) if path.exists()]
    small = sum(path.stat().st_size for path in kept) <= _MOST_BYTES
    fit = fit_parts(
        trained, shlex.join(["certsvm", "verify", model, "TRAINING-DATA"]), claimed=True,
        dual_kept=len(kept) > 1, evaluation=evaluation,
        files=[b64encode(path.read_bytes()).decode() for path in kept] if small else (),
    )  # fmt: skip
    write_page(page, fit_report(fit))
    click.echo(page)


@o.command("MODEL", "FILE", "exact", *o.DATA, "ignore", "as_json")
def verify_command(options: o.Options, model: str, file: str) -> None:
    """Recompute MODEL's certificate from FILE, the data it was trained on.

    J is recomputed from the weights by other code than in training, with bounds on its own rounding
    errors. If there is a witness beside the model (`certsvm train --witness`), L is recomputed from
    it; without one, the dual bound remains a claim. The first line says which problem the
    certificate is about: whoever wrote the file has chosen it. The second says which columns of
    FILE it is about, which the model does not choose: it must use all of them, except for the
    labels, the weights, and those to --ignore.

    FILE needs the same options as in training (--zero-based, --label, --weight, ...).

    Exit codes: 0 confirmed: J and L are proved to be as the certificate says; 3 half confirmed: J
    is, and L could not be checked; 1 refuted: the certificate is proved to be false; 4 undecided:
    double precision is not enough to tell; 2 bad usage or input.
    """
    from certsvm.verification.verify import verify_model

    trained = f.load_model(model, with_witness=True)
    rows = f.ModelRows(trained, file, options, complete=True, exact=True)
    report = verify_model(trained, rows, exact=options.exact)
    problem = f.problem_of(trained)
    answer = facts(report, "verdict ok dual_verified same_data")
    answer |= {"problem": problem, "data": rows.as_json(), "problems": [*map(_as_json, report)]}
    text = f"{problem}\n{rows}\n{report}\n{_MEANINGS[report.verdict]}"
    options.answer(answer, text, _CODES[report.verdict])


def _as_json(verification: Any) -> dict[str, Any]:
    from certsvm.verification.exact import upwards

    v = verification
    row = {"class": tidy(v.label), **facts(v, "verdict ok primal dual relative_gap box_violation")}
    row |= {"primal_interval": list(v.J), "dual_interval": None if v.L is None else list(v.L)}
    row |= {"claimed_primal": v.claimed.primal, "claimed_dual": v.claimed.dual}
    if v.exact is not None:
        # How far the claims are off, rounded up.
        for key, name in (("primal_excess", "J - primal"), ("dual_excess", "dual - L")):
            row[key] = None if v.exact[name] is None else upwards(v.exact[name])
    return row


@o.command(
    "MODEL", "FILE", "C", *o.PROBLEM, *o.DATA, "ignore", "as_json", C=None, loss=None, max_iter=100
)
def bound_command(options: o.Options, model: str, file: str) -> None:
    """Prove how close to the optimum MODEL is on FILE, the data it was trained on.

    MODEL needs no certificate: it may come from liblinear (`certsvm import`). The weights stay as
    they are; a lower bound on the optimum is computed for them. The objective is the model's own,
    unless options say otherwise. Labels and columns of FILE are taken as by `certsvm verify`.

    \b
    certsvm bound liblinear.model a9a -c 1
    certsvm bound a9a.model a9a --tol 1e-6

    Exit codes: 0 the accuracy is proved; 3 it is not (what is proved is printed); 2 bad usage or
    input.
    """  # noqa: D301
    from certsvm.files.batch import joined
    from certsvm.fitting.bound import bound

    trained = f.load_model(model)
    rows = f.ModelRows(trained, file, options, complete=True, exact=True)
    X, y, weights = joined(list(rows))
    proved = bound(
        trained, X, y, intercept_scaling=options.bias if options.bias > 0.0 else None,
        penalize_intercept=False if options.free_intercept else None, sample_weight=weights,
        tol=DEFAULT_TOL if options.tol is None else options.tol, random_state=options.seed,
        **facts(options, "C loss max_iter"),
    )  # fmt: skip
    certificates = tuple(proved) if isinstance(proved, list) else (proved,)
    judged = replace(trained, certificates=certificates)
    problem, met = f.problem_of(judged), all(c.met for c in certificates)
    answer = {"problem": problem, "data": rows.as_json(), "met": met}
    answer["certificates"] = f.certificates_as_json(judged)
    lines = [f"class {tidy(label)}: {certificate}" for label, certificate in f.certified(judged)]
    options.answer(answer, "\n".join([problem, str(rows), *lines]), 0 if met else NOT_MET)


@o.command("FILE", *o.TRAINING_DATA, "as_json")
def info_command(options: o.Options, file: str) -> None:
    """Describe FILE: a model, or a data file, of which every row is read and checked."""
    if f.is_model(file):
        options.reading("model")
        model = f.load_model(file)
        answer = facts(model, "parameters") | {
            "classes": model.classes.tolist(), "features": model.n_features,
            "certificates": f.certificates_as_json(model),
            "fingerprint": None if model.fingerprint is None else asdict(model.fingerprint),
            "certsvm": model.certsvm_version,
        }  # fmt: skip
        claimed = "\nso says the file; `certsvm verify` recomputes it from the data"
        options.answer(answer, f"{model}{claimed if model.certificates else ''}")
    options.answer(*_about_data(file, options))


def _about_data(file: str, options: o.Options) -> tuple[dict[str, Any], str]:
    rows = columns = values = 0
    labels: Counter[Any] = Counter()
    kind = f.kind_of(file)
    reader, batches = f.opened(file, options, **{"labelled": False} if kind == "embeddings" else {})
    for batch in batches:
        rows += len(batch.y)
        columns = max(columns, batch.X.shape[1])
        values += batch.n_values
        labels.update(batch.y.tolist())
    # Embeddings may have none.
    classes = {tidy(label): labels[label] for label in sorted(labels) if label != ""}
    kind = {"text": "libsvm text", "blocks": "converted data"}.get(kind, kind)
    kind += ", zero-based" if getattr(reader, "zero_based", False) else ""
    columns = getattr(reader, "n_columns", columns)
    answer = {"kind": kind, "rows": rows, "columns": columns, "values": values, "classes": classes}
    share = f"{100 * values / max(1, rows * columns):.3g} % of all"
    lines = [f"{kind}: {rows:,} rows, {columns:,} columns, {values:,} values ({share})"]
    lines += [f"class {name}: {count:,} rows" for name, count in classes.items()]
    return answer, "\n".join(lines)


@o.command("MODEL", "OUTPUT")
def export_command(options: o.Options, model: str, output: str) -> None:
    """Write MODEL as liblinear's text to OUTPUT, for liblinear's `predict`.

    Labels must be integers. The certificates are lost.
    """
    f.require_outputs([model], text_model=output)
    files.save_liblinear(f.load_model(model), output)
    click.echo(f"{output}: a text model for liblinear")


@o.command("MODEL", "OUTPUT")
def import_command(options: o.Options, model: str, output: str) -> None:
    """Write MODEL, which is liblinear's text, as a certsvm model to OUTPUT.

    It predicts the same labels. It has no certificate.
    """
    f.require_outputs([model], model=output)
    imported = files.load_liblinear(model)
    imported.save(output)
    click.echo(str(imported))
