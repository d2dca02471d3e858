"""certsvm select."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import percent, percentage_points
from certsvm.cli.app import NOT_MET, put_json
from certsvm.cli.class_weights import parse_class_weights
from certsvm.cli.cross_validation import cross_validated
from certsvm.cli.models import certificates_as_json
from certsvm.cli.options import (
    DataOptions,
    FiniteFloat,
    ObjectiveOptions,
    as_json_option,
    categorical_option,
    data_options,
    range_options,
)
from certsvm.cli.outputs import require_outputs
from certsvm.cli.training_data import opened_source

if TYPE_CHECKING:
    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.fit_model import Fit


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@range_options("Limit in seconds, for the whole search.")
@click.option(
    "--certify",
    type=FiniteFloat(min=0, min_open=True, max=1),
    metavar="EPS",
    help="Prove that no C in the range, fitted or not, has a cross-validation error lower by more "
    "than EPS (0.01 is one percentage point).",
)
@click.option(
    "--values",
    type=click.IntRange(min=2),
    metavar="N",
    help="Number of values of C to fit; 20 by default. With --certify, to begin with; one for each "
    "power of ten by default.",
)
@click.option(
    "--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Number of folds."
)
@click.option(
    "--max-fits",
    type=click.IntRange(min=2),
    metavar="N",
    help="With --certify: limit on the number of values of C.",
)
@click.option(
    "-o",
    "--output",
    metavar="MODEL",
    type=click.Path(dir_okay=False),
    help="Train on all rows with the chosen C, and write the model there.",
)
@click.option(
    "--plot",
    metavar="PICTURE",
    type=click.Path(dir_okay=False),
    help="Draw the error against C, with what is proved for every C (png, svg or pdf).",
)
@data_options
@categorical_option
@as_json_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
@click.pass_context
def command(
    ctx: click.Context, file: str, C_range: tuple[float, float], tol: float,
    objective: ObjectiveOptions, weights: tuple[str, ...], solver: str, max_iter: int,
    max_time: float | None, seed: int, n_jobs: int | None, certify: float | None,
    values: int | None, folds: int, max_fits: int | None, output: str | None, plot: str | None,
    options: DataOptions, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Choose C for FILE by cross-validation, if asked to with a proof over a whole range.

    \b
    certsvm select a9a --range 1e-3 1e2
    certsvm select a9a --range 1e-3 1e2 --certify 0.02 -o a9a.model --plot a9a.png

    Exit codes: 0 C is chosen, and proved if --certify asks for it; 3 the proof was not reached, or
    the accuracy of the model was not (both are written all the same); 2 bad usage or input.
    """  # noqa: D301
    from certsvm.fitting.cross_validation import values_in
    from certsvm.fitting.fit_model import fit_model
    from certsvm.fitting.path import require_proofs
    from certsvm.parallel import available_processors
    from certsvm.solvers import make_solver
    from certsvm.training.settings import Settings

    chosen = make_solver(solver)
    if certify is not None:
        require_proofs(chosen, tol)
        if objective.free_intercept:
            raise click.UsageError(
                "--certify needs the intercept in the penalty: leave out --free-intercept", ctx
            )
    elif max_fits is not None:
        raise click.UsageError("--max-fits goes with --certify only", ctx)
    require_outputs([file], model=output, picture=plot)
    if plot is not None:
        import matplotlib  # noqa: F401  missing packages are found before training
    began = time.perf_counter()
    settings = Settings(
        objective.at(C_range[0]), tol=tol, solver=solver, max_iter=max_iter, max_time=max_time,
        seed=seed, n_jobs=n_jobs or available_processors(),
    )  # fmt: skip
    silent = quiet or as_json
    with opened_source(
        file, options, settings, objective.intercept_scaling,
        memory=None, stream=False, witness=False, quiet=silent,
    ) as source:  # fmt: skip
        source.set_class_weight(parse_class_weights(weights, source.classes))
        search = cross_validated(
            source, settings, values_in(C_range, values, certify=certify is not None), folds,
            certify=certify, max_fits=max_fits, quiet=silent,
        )  # fmt: skip
        fitted = None
        if output is not None:
            fitted = fit_model(source, replace(settings.at(search.best.C), max_time=None))
            fitted.model.save(output)
    if plot is not None:
        search.curve.plot(plot)
    seconds = time.perf_counter() - began
    proved = certify is None or search.certified
    if as_json:
        _put_json(search, certify, fitted, output, seconds)
    elif not quiet:
        _summarise(search, certify, fitted, output, seconds)
    if not (proved and (fitted is None or fitted.met)):
        raise SystemExit(NOT_MET)


def _summarise(
    search: CrossValidation, certify: float | None, fitted: Fit | None, output: str | None,
    seconds: float,
) -> None:  # fmt: skip
    best = search.best
    click.echo(f"{'C':>12}  error of cross-validation")
    for C in sorted(search.values):
        star = "  *" if best.C == C else ""
        click.echo(f"{C:12.6g}  {percent(search.values[C].error)}{star}")
    click.echo(f"C = {best.C:g}, error {percent(best.error)}; {seconds:.1f} s")
    if certify is not None:
        bound = f"no C in the range has an error below {100 * search.bound:.4g} %"
        if search.certified:
            click.echo(f"{bound}: C is within {percentage_points(certify)} of the best, proved")
        else:
            click.echo(
                f"{bound}, proved; {percentage_points(certify)} are not proved: {search.reason}"
            )
    if fitted is not None:
        for certificate in fitted.model.certificates:
            click.echo(f"{output}: {certificate}")


def _put_json(
    search: CrossValidation, certify: float | None, fitted: Fit | None, output: str | None,
    seconds: float,
) -> None:  # fmt: skip
    best = search.best
    result: dict[str, Any] = {
        "C": best.C,
        "error": best.error,
        "values": [
            {"C": C, "error": search.values[C].error, "scores": search.values[C].scores}
            for C in sorted(search.values)
        ],
        "seconds": seconds,
    }
    if certify is not None:
        curve = search.curve
        result |= {
            "certified": search.certified,
            "certify": certify,
            "error_bound": search.bound,
            "reason": search.reason,
            "curve": {
                "edges": curve.edges.tolist(),
                "lower": curve.lower.tolist(),
                "upper": curve.upper.tolist(),
            },
        }
    if fitted is not None and output is not None:
        result |= {
            "model": os.fspath(output),
            "met": fitted.met,
            "certificates": certificates_as_json(fitted.model),
        }
    put_json(result)
