"""certsvm report."""

from __future__ import annotations

import shlex
from base64 import b64encode
from pathlib import Path

import click

from certsvm.cli.app import say
from certsvm.cli.commands.evaluate import answers_on
from certsvm.cli.models import load_model
from certsvm.cli.options import DATA, Options, file_argument, shared
from certsvm.cli.outputs import require_outputs

# Of a model and its witness in a page.
_MOST_BYTES = 1 << 26


@click.command()
@file_argument("model", stdin=False)
@file_argument("file", required=False)
@click.option("-o", "--output", metavar="PAGE", help="The page to write [default: MODEL.html].")
@shared(*DATA, "ignore")
def command(options: Options, model: str, file: str | None, output: str | None) -> None:
    """Write a page about MODEL, to be opened in a browser: what is proved, and what it says.

    The page needs nothing else, and fetches nothing. With FILE, it also has the accuracy of the
    predictions there, a confusion matrix, and the share that more training could not flip.

    The page contains MODEL and its witness, and a checker in JavaScript: whoever drops the training
    data on it sees whether the certificates are true.

    \b
    certsvm report a9a.model a9a.t
    """  # noqa: D301
    from certsvm.files import witness_path
    from certsvm.report.fit import Evaluation, Fit, fit_report
    from certsvm.report.page import write_page

    page = output or f"{model}.html"
    require_outputs([model, file], page=page)
    trained, evaluation = load_model(model, file), None
    if file is not None:
        answers = answers_on(trained, file, options)
        say(str(answers.rows))
        evaluation = Evaluation(answers.rows.n_rows, answers.stability, answers.confusion)
    check = shlex.join(["certsvm", "verify", model, "TRAINING-DATA"])
    files = [path for path in (Path(model), Path(witness_path(model))) if path.exists()]
    too_large = sum(path.stat().st_size for path in files) > _MOST_BYTES
    fit = Fit(
        trained, check, dual_kept=len(files) > 1, claimed=True, evaluation=evaluation,
        files=() if too_large else [b64encode(path.read_bytes()).decode() for path in files],
        too_large=too_large,
    )  # fmt: skip
    write_page(page, fit_report(fit))
    click.echo(page)
