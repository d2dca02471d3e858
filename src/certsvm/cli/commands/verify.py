"""certsvm verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from certsvm.cli.app import NOT_MET, REFUTED, UNDECIDED, put_json
from certsvm.cli.matching import FittedRows
from certsvm.cli.models import load_model
from certsvm.cli.options import DataOptions, as_json_option, data_options, ignore_option

if TYPE_CHECKING:
    from certsvm.files import Model
    from certsvm.verification.verify import VerificationReport


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@data_options
@ignore_option
@as_json_option
def command(model: str, file: str, options: DataOptions, as_json: bool) -> None:
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
    rows = FittedRows(trained, file, options, complete=True, exact=True)
    report = v.verify_model(trained, rows)
    meanings = {
        v.CONFIRMED: (0, "confirmed: both halves were recomputed from the data"),
        v.HALF_CONFIRMED: (
            NOT_MET,
            f"half confirmed: J was recomputed; L is a claim, as there is no {witness_path(model)}",
        ),
        v.UNDECIDED: (
            UNDECIDED, "undecided: double precision neither confirms nor refutes the certificate"
        ),
        v.REFUTED: (REFUTED, "REFUTED: the certificate is not true of these data"),
    }  # fmt: skip
    code, meaning = meanings[report.verdict]
    if as_json:
        put_json({"problem": _problem(trained), "data": rows.reading.as_json(), **_as_json(report)})
    else:
        click.echo(f"{_problem(trained)}\n{rows.reading}\n{report}\n{meaning}")
    raise SystemExit(code)


def _problem(model: Model) -> str:
    """What the certificates are about, which whoever wrote the file has chosen."""
    weights = "" if (model.class_weight == 1.0).all() else ", weights of classes "
    if weights:
        weights += ", ".join(f"{weight:g}" for weight in model.class_weight)
    return f"{model.certificates[0].problem}{weights}"


def _as_json(report: VerificationReport) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "ok": report.ok,
        "dual_verified": report.dual_verified,
        "same_data": report.same_data,
        "problems": [
            {
                "class": str(v.label),
                "verdict": v.verdict,
                "ok": v.ok,
                "primal": v.primal,
                "dual": v.dual,
                "primal_interval": list(v.J),
                "dual_interval": None if v.L is None else list(v.L),
                "claimed_primal": v.claimed.primal,
                "claimed_dual": v.claimed.dual,
                "relative_gap": v.relative_gap,
                "box_violation": v.box_violation,
            }
            for v in report
        ],
    }
