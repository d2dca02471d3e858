"""certsvm verify and bound: judging models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from certsvm.certificates.certificate import DEFAULT_TOL, tidy
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, REFUTED, UNDECIDED, facts
from certsvm.cli.inputs import certificates_as_json, certified, load_model, problem_of, rows_for
from certsvm.cli.progress import watch_compilation


@o.command(
    "MODEL", "FILE",
    click.option("--exact", is_flag=True,
                 help="Compute with integers of any length, which leaves nothing undecided and "
                      "takes some microseconds for each value and class."),
    *o.DATA, "ignore", "as_json",
)  # fmt: skip
def verify_command(options: o.Options, model: str, file: str, exact: bool) -> None:
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
    from certsvm.files import witness_path
    from certsvm.verification import verify as v

    trained = load_model(model, with_witness=True)
    rows = rows_for(trained, file, options, complete=True, exact=True)
    report = v.verify_model(trained, rows, exact=exact)
    code, meaning = {
        v.CONFIRMED: (0, "confirmed: both halves were recomputed from the data"),
        v.HALF_CONFIRMED: (
            NOT_MET,
            f"half confirmed: J was recomputed; L is a claim, as there is no {witness_path(model)}",
        ),
        v.UNDECIDED: (
            UNDECIDED, "undecided: double precision neither confirms nor refutes the certificate"
        ),
        v.REFUTED: (REFUTED, "REFUTED: the certificate is not true of these data"),
    }[report.verdict]  # fmt: skip
    problem = problem_of(trained)
    told = facts(report, "verdict ok dual_verified same_data")
    told |= {"problem": problem, "data": rows.as_json(), "problems": [*map(_as_json, report)]}
    options.answer(told, f"{problem}\n{rows}\n{report}\n{meaning}", code)


def _as_json(verification: Any) -> dict[str, Any]:
    from certsvm.verification.exact import upwards

    v = verification
    told = {"class": tidy(v.label), **facts(v, "verdict ok primal dual relative_gap box_violation")}
    told |= {"primal_interval": list(v.J), "dual_interval": None if v.L is None else list(v.L)}
    told |= {"claimed_primal": v.claimed.primal, "claimed_dual": v.claimed.dual}
    if v.exact is not None:
        # How far the claims are off, rounded up.
        for key, name in (("primal_excess", "J - primal"), ("dual_excess", "dual - L")):
            told[key] = None if v.exact[name] is None else upwards(v.exact[name])
    return told


@o.command(
    "MODEL", "FILE",
    click.option("-c", "--C", "asked_C", type=o.POSITIVE,
                 help="Weight of the loss; by default the model's. liblinear's text has none."),
    click.option("-s", "--loss", "asked_loss", type=o.loss, metavar="NAME",
                 help="The loss, also by liblinear's number; by default the model's."),
    click.option("-B", "--bias", "asked_bias", type=o.POSITIVE, metavar="HEIGHT",
                 help="Height of the constant column of the intercept; by default the model's."),
    click.option("-R", "--free-intercept", "free", is_flag=True,
                 help="Leave the intercept out of the penalty, also if the model does not."),
    "tol", click.option("--max-iter", "passes", type=click.IntRange(min=1), default=100,
                        show_default=True, help="Limit on passes over the data, for each class."),
    "seed", *o.DATA, "ignore", "as_json",
)  # fmt: skip
def bound_command(
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
    trained = load_model(model)
    rows = rows_for(trained, file, options, complete=True, exact=True)
    X, y, weights = joined(list(rows))
    proved = bound(
        trained, X, y, C=asked_C, loss=asked_loss, intercept_scaling=asked_bias,
        penalize_intercept=False if free else None, sample_weight=weights,
        tol=DEFAULT_TOL if options.tol is None else options.tol,
        max_iter=passes, random_state=options.seed,
    )  # fmt: skip
    certificates = tuple(proved) if isinstance(proved, list) else (proved,)
    judged = replace(trained, certificates=certificates)
    problem, met = problem_of(judged), all(c.met for c in certificates)
    told = {"problem": problem, "data": rows.as_json(), "met": met}
    told["certificates"] = certificates_as_json(judged)
    lines = [f"class {tidy(label)}: {certificate}" for label, certificate in certified(judged)]
    options.answer(told, "\n".join([problem, str(rows), *lines]), 0 if met else NOT_MET)
