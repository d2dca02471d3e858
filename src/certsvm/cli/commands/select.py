"""certsvm select."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import percentage_points
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, facts, put_json
from certsvm.cli.interrupts import stop_before_first
from certsvm.cli.models import certificates_as_json
from certsvm.cli.outputs import require_outputs
from certsvm.cli.sources import cross_validated, opened_source

if TYPE_CHECKING:
    from certsvm.fitting.cross_validation import CrossValidation


@click.command()
@o.file_argument("file")
@o.shared(
    "C_range", *o.FIT,
    click.option("--certify", type=o.FiniteFloat(min=0, min_open=True, max=1), metavar="EPS",
                 help="Prove that no C in the range, fitted or not, has a cross-validation error "
                      "lower by more than EPS (0.01 is one percentage point)."),
    click.option("--values", type=click.IntRange(min=2), metavar="N",
                 help="Number of values of C to fit; 20 by default. With --certify, to begin with; "
                      "one for each power of ten by default."),
    click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
                 help="Number of folds."),
    click.option("--max-fits", type=click.IntRange(min=2), metavar="N",
                 help="With --certify: limit on the number of values of C."),
    click.option("-o", "--output", metavar="MODEL", type=o.OUTPUT_FILE,
                 help="Train on all rows with the chosen C, and write the model there."),
    click.option("--plot", metavar="PICTURE", type=o.OUTPUT_FILE,
                 help="Draw the error against C, with what is proved for every C (png, svg or "
                      "pdf)."),
    *o.TRAINING_DATA, *o.OUTPUT,
)  # fmt: skip
def command(
    options: o.Options, file: str, certify: float | None, values: int | None, folds: int,
    max_fits: int | None, output: str | None, plot: str | None,
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

    o.check_together({"certify": ["free_intercept"]}, {"max_fits": "certify"})
    require_outputs([file], model=output, picture=plot)
    began, fitted = time.perf_counter(), None
    settings = options.settings(options.C_range[0])
    with opened_source(file, options, settings) as (source, settings):
        search = cross_validated(
            source, settings, values_in(options.C_range, values, certify=certify is not None),
            folds, certify=certify, max_fits=max_fits, quiet=options.silent,
        )  # fmt: skip
        if output is not None:
            # A signal ended the search; the model takes another one.
            assert settings.stop is not None
            settings.stop.clear()
            fitted = fit_model(source, replace(settings.at(search.best.C), max_time=None))
            stop_before_first(fitted.results)
            fitted.model.save(output)
        if plot is not None:
            search.curve.plot(plot)
    seconds = time.perf_counter() - began
    if options.as_json:
        result = _as_json(search, certify) | {"seconds": seconds}
        if fitted is not None:
            result |= {"model": output, "met": fitted.met}
            result |= {"certificates": certificates_as_json(fitted.model)}
        put_json(result)
    elif not options.quiet:
        _summarise(search, certify, seconds)
        for certificate in fitted.model.certificates if fitted is not None else ():
            click.echo(f"{output}: {certificate}")
    proved = certify is None or search.certified
    if not (proved and (fitted is None or fitted.met)):
        raise SystemExit(NOT_MET)


def _as_json(search: CrossValidation, certify: float | None) -> dict[str, Any]:
    values = [facts(search.values[C], "C error scores") for C in sorted(search.values)]
    result = facts(search.best, "C error") | {"values": values}
    if certify is None:
        return result
    curve = facts(search.curve, "edges lower upper").items()
    return result | facts(search, "certified reason") | {
        "certify": certify,
        "error_bound": search.bound,
        "curve": {name: array.tolist() for name, array in curve},
    }  # fmt: skip


def _summarise(search: CrossValidation, certify: float | None, seconds: float) -> None:
    # As many digits as tell different errors apart.
    best, errors = search.best, {round(value.error, 9) for value in search.values.values()}
    forms = (f"{{:.{digits}%}}" for digits in range(2, 8))
    shown = next(form for form in forms if len(set(map(form.format, errors))) == len(errors))
    click.echo(f"{'C':>12}  error of cross-validation")
    for C in sorted(search.values):
        star = "  *" if best.C == C else ""
        click.echo(f"{C:12.6g}  {shown.format(search.values[C].error)}{star}")
    click.echo(f"C = {best.C:g}, error {shown.format(best.error)}; {seconds:.1f} s")
    if certify is None:
        return
    bound = f"no C in the range has an error below {100 * search.bound:.4g} %"
    points = percentage_points(certify)
    if search.certified:
        click.echo(f"{bound}: C is within {points} of the best, proved")
    else:
        click.echo(f"{bound}, proved; {points} are not proved: {search.reason}")
