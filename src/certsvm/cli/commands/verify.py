"""certsvm verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, REFUTED, UNDECIDED, facts, put_json
from certsvm.cli.models import load_model, rows_for

if TYPE_CHECKING:
    from certsvm.verification.verify import VerificationReport


@click.command()
@o.file_argument("model", stdin=False)
@o.file_argument("file")
@click.option(
    "--exact",
    is_flag=True,
    help="Compute with integers of any length, which leaves nothing undecided and takes "
    "some microseconds for each value and class.",
)
@o.shared(*o.DATA, "ignore", "as_json")
def command(options: o.Options, model: str, file: str, exact: bool) -> None:
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

    trained = load_model(model, file, with_witness=True)
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
    problem = str(trained.certificates[0].problem)
    if not (trained.class_weight == 1.0).all():
        # Whoever wrote the file has chosen these.
        weights = ", ".join(f"{weight:g}" for weight in trained.class_weight)
        problem += f", weights of classes {weights}"
    if options.as_json:
        put_json({"problem": problem, "data": rows.as_json(), **_as_json(report)})
    else:
        click.echo(f"{problem}\n{rows}\n{report}\n{meaning}")
    raise SystemExit(code)


def _as_json(report: VerificationReport) -> dict[str, Any]:
    return facts(report, "verdict ok dual_verified same_data") | {
        "problems": [
            {
                "class": tidy(v.label),
                **facts(v, "verdict ok primal dual relative_gap box_violation"),
                "primal_interval": list(v.J),
                "dual_interval": None if v.L is None else list(v.L),
                "claimed_primal": v.claimed.primal,
                "claimed_dual": v.claimed.dual,
                **_exactly(v.exact),
            }
            for v in report
        ]
    }


def _exactly(found: dict[str, Any] | None) -> dict[str, Any]:
    """What exact verification adds: how far the claims are off, rounded up."""
    from certsvm.verification.exact import upwards

    if found is None:
        return {}
    names = {"primal_excess": "J - primal", "dual_excess": "dual - L"}
    return {key: None if found[n] is None else upwards(found[n]) for key, n in names.items()}
