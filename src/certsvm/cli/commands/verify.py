"""certsvm verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from certsvm.cli.app import NOT_MET, REFUTED, put_json
from certsvm.cli.models import blocks_for, load_model
from certsvm.cli.options import DataOptions, as_json_option, data_options

if TYPE_CHECKING:
    from certsvm.certificates.verification import VerificationReport


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@data_options
@as_json_option
def command(model: str, file: str, options: DataOptions, as_json: bool) -> None:
    """Recompute MODEL's certificate from FILE, the data it was trained on.

    J is recomputed from the weights by other code than in training. If there is a witness beside
    the model (`certsvm train --witness`), L is recomputed from it; without one, the dual bound
    remains a claim.

    FILE needs the same options as in training (--zero-based, --weight, ...).

    Exit codes: 0 J and L were recomputed and agree; 3 J agrees, and L could not be checked; 1
    something disagrees; 2 bad usage or input.
    """
    from certsvm.certificates.verification import verify_model

    trained = load_model(model, with_witness=True)
    report = verify_model(trained, blocks_for(trained, file, options))
    if as_json:
        put_json(_as_json(report))
    else:
        _print(report)
    if not report.ok:
        raise SystemExit(REFUTED)
    if not report.dual_verified:
        raise SystemExit(NOT_MET)


def _print(report: VerificationReport) -> None:
    click.echo(str(report))
    if not report.ok:
        verdict = "REFUTED"
        if report.same_data is False:
            verdict += (
                ": these are not the data that the model was trained on (or not in their order, "
                "which a witness with a number for each row needs)"
            )
    elif report.dual_verified:
        verdict = "confirmed: both halves were recomputed from the data"
    else:
        verdict = "half confirmed: J was recomputed; L is a claim, as there is no witness"
    click.echo(verdict)


def _as_json(report: VerificationReport) -> dict[str, Any]:
    return {
        "ok": report.ok,
        "dual_verified": report.dual_verified,
        "same_data": report.same_data,
        "problems": [
            {
                "class": str(v.label),
                "ok": v.ok,
                "primal": v.primal,
                "dual": v.dual,
                "claimed_primal": v.claimed.primal,
                "claimed_dual": v.claimed.dual,
                "relative_gap": v.relative_gap,
                "box_violation": v.box_violation,
            }
            for v in report
        ],
    }
