"""certsvm bound."""

from __future__ import annotations

from dataclasses import replace

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, put_json
from certsvm.cli.compilation import watch_compilation
from certsvm.cli.models import certificates_as_json, load_model, positive_classes, rows_for


@click.command()
@o.file_argument("model", stdin=False)
@o.file_argument("file")
@o.shared(
    click.option("-c", "--C", "asked_C", type=o.POSITIVE,
                 help="Weight of the loss; by default the model's. liblinear's text has none."),
    click.option("-s", "--loss", "asked_loss", type=o.LOSSES, callback=o.loss,
                 help="The loss, also by liblinear's number; by default the model's."),
    click.option("-B", "--bias", "asked_bias", type=o.POSITIVE, metavar="HEIGHT",
                 help="Height of the constant column of the intercept; by default the model's."),
    click.option("-R", "--free-intercept", "free", is_flag=True,
                 help="Leave the intercept out of the penalty, also if the model does not."),
    "tol", click.option("--max-iter", "passes", type=click.IntRange(min=1), default=100,
                        show_default=True, help="Limit on passes over the data, for each class."),
    "seed", *o.DATA, "ignore", "as_json",
)  # fmt: skip
def command(
    options: o.Options, model: str, file: str, asked_C: float | None, asked_loss: str | None,
    asked_bias: float | None, free: bool, passes: int,
) -> None:  # fmt: skip
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

    watch_compilation(quiet=options.silent)
    trained = load_model(model, file)
    rows = rows_for(trained, file, options, complete=True, exact=True)
    X, y, weights = joined(list(rows))
    proved = bound(
        trained, X, y, C=asked_C, loss=asked_loss, intercept_scaling=asked_bias,
        penalize_intercept=False if free else None, sample_weight=weights, tol=options.tol,
        max_iter=passes, random_state=options.seed,
    )  # fmt: skip
    certificates = tuple(proved) if isinstance(proved, list) else (proved,)
    problem, met = str(certificates[0].problem), all(c.met for c in certificates)
    if options.as_json:
        told = certificates_as_json(replace(trained, certificates=certificates))
        put_json({"problem": problem, "data": rows.as_json(), "met": met, "certificates": told})
    else:
        click.echo(f"{problem}\n{rows}")
        for label, certificate in zip(positive_classes(trained), certificates, strict=True):
            click.echo(f"class {tidy(label)}: {certificate}")
    if not met:
        raise SystemExit(NOT_MET)
