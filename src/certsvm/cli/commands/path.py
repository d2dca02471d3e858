"""certsvm path and select: every C in a range, and the choice of one."""

from __future__ import annotations

import glob
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from certsvm.certificates.certificate import COARSE_TOL, percent, percentage_points
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, facts
from certsvm.cli.inputs import certificates_as_json
from certsvm.cli.interrupts import stop_before_first
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import live_lines
from certsvm.cli.sources import cross_validated, opened_source

if TYPE_CHECKING:
    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.path import PathProgress, Trace


@o.command(
    "FILE", "C_range", *o.FIT,
    click.option("-o", "--output", metavar="FOLDER", type=click.Path(file_okay=False),
                 help="Folder for the models at the fitted values: C=0.1.model, ..."),
    click.option("--at", "asked", multiple=True, type=o.POSITIVE, metavar="C",
                 help="Also write the model at this C, interpolated and certified (repeatable)."),
    click.option("--max-fits", type=click.IntRange(min=2), default=200, show_default=True,
                 help="Limit on the number of fits."),
    *o.STREAM, *o.TRAINING_DATA, *o.OUTPUT, tol=COARSE_TOL,
)  # fmt: skip
def path_command(
    options: o.Options, file: str, output: str | None, asked: tuple[float, ...], max_fits: int
) -> None:
    """Train on FILE for every C in a range, and prove how close to the optimum each model is.

    As few values of C are fitted as it takes. Between two of them the model is interpolated, and
    what is proved about it follows from its neighbours.

    \b
    certsvm path a9a --range 1e-3 1e2 --tol 0.001
    certsvm path a9a --range 1e-3 1e2 -o a9a.path --at 0.5 --at 2

    Exit codes: 0 the accuracy is proved for every C; 3 it is not (what is proved is written); 2 bad
    usage or input.
    """  # noqa: D301
    from certsvm.fitting.fit_model import model_of, witnessed
    from certsvm.fitting.path import trace_path

    o.check_together({}, {"asked": "output", "witness": "output"})
    low, high = options.C_range
    if outside := [C for C in asked if not low <= C <= high]:
        raise click.UsageError(f"--at {outside[0]} is outside the range")
    if output is not None:
        os.makedirs(output, exist_ok=True)
        # At which C there will be models is not known yet.
        old = glob.glob(os.path.join(glob.escape(output), "C=*.model*"))
        for model in [os.path.join(output, "C=.model"), *old]:
            require_outputs([file], model=model.removesuffix(".witness"))
    began, written = time.perf_counter(), []
    settings = options.settings(low, keep_alpha=bool(options.witness))
    with opened_source(file, options, settings) as (source, settings):
        with live_lines(quiet=options.silent) as begun:
            show = begun("path")
            trace = trace_path(
                source, settings, options.C_range, max_fits=max_fits,
                callback=lambda progress: show(_described(progress)),
            )  # fmt: skip
        stop_before_first([result for knot in trace.knots for result in knot.results])
        fitted = {C for C in asked if trace.Cs[0] <= C <= trace.Cs[-1]}
        for C in sorted({*trace.Cs, *fitted}) if output is not None else ():
            results, at_C = trace.at(C, source), settings.at(C)
            if options.witness:
                results = [
                    witnessed(i, source.problem(i, at_C.objective), result)
                    for i, result in enumerate(results)
                ]
            written.append(os.path.join(str(output), f"C={C!r}.model"))
            model_of(source, at_C, results).save(written[-1])
    seconds = time.perf_counter() - began
    text = _summary_of_path(trace, seconds)
    if written:
        text += f"\n{len(written)} models in {output}"
    fits = [
        {
            "C": knot.C, "proved_gap": knot.gap, "gap_up_to_next": gap,
            "passes": max(result.passes for result in knot.results),
        }
        for knot, gap in zip(trace.knots, [*trace.gaps, None], strict=True)
    ]  # fmt: skip
    told = facts(trace, "met tol proved_up_to worst_gap") | {"range": list(trace.C_range)}
    told |= {"fits": fits, "models": written, "seconds": seconds}
    options.answer(told, text, 0 if trace.met else NOT_MET)


def _described(progress: PathProgress) -> str:
    gap = percent(progress.worst_gap) if progress.n_fits > 1 else "..."
    end = progress.proved_up_to
    proved = f"proved up to C = {end:.4g}" if end > 0.0 else "nothing proved"
    return f"fit {progress.n_fits}, at C = {progress.C:.4g}; {proved}, largest gap {gap}"


def _summary_of_path(trace: Trace, seconds: float) -> str:
    lines = [f"{'C':>12}  {'primal':>12}  {'dual':>12}  {'gap':>10}  gap up to the next C"]
    for knot, between in zip(trace.knots, [*map(percent, trace.gaps), ""], strict=True):
        worst = max((r.certificate for r in knot.results), key=lambda c: c.proved_gap)
        numbers = f"{knot.C:12.6g}  {worst.primal:12.6g}  {worst.dual:12.6g}"
        lines.append(f"{numbers}  {percent(worst.proved_gap):>10}  {between}")
    (low, high), end, tol = trace.C_range, trace.proved_up_to, percent(trace.tol)
    if trace.met:
        gap = percent(trace.worst_gap)
        proved = f"every C from {low:g} to {high:g} has a model within {gap} of its optimum, proved"
    elif end < low:
        proved = f"{tol} is not proved for every C from {low:g} to {high:g}, nor at C = {low:g}"
    else:
        proved = f"{tol} is proved from C = {low:g} up to C = {end:g}, not up to {high:g}"
    return "\n".join([*lines, f"{proved}; {len(trace.knots)} fits in {seconds:.1f} s"])


@o.command(
    "FILE", "C_range", *o.FIT,
    click.option("--certify", type=o.FiniteFloat(min=0, min_open=True, max=1), metavar="EPS",
                 help="Prove that no C in the range, fitted or not, has a cross-validation error "
                      "lower by more than EPS (0.01 is one percentage point)."),
    click.option("--values", type=click.IntRange(min=2), metavar="N",
                 help="Number of values of C to fit; 20 by default, and with --certify, to begin "
                      "with, one for each power of ten."),
    click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
                 help="Number of folds."),
    click.option("--max-fits", type=click.IntRange(min=2), metavar="N",
                 help="With --certify: limit on the number of values of C."),
    click.option("-o", "--output", metavar="MODEL", type=o.OUTPUT_FILE,
                 help="Train on all rows with the chosen C, and write the model there."),
    click.option("--plot", metavar="PICTURE", type=o.OUTPUT_FILE,
                 help="Draw the error against C, with what is proved (png, svg or pdf)."),
    *o.TRAINING_DATA, *o.OUTPUT,
)  # fmt: skip
def select_command(
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
    tried = [facts(search.values[C], "C error scores") for C in sorted(search.values)]
    told = facts(search.best, "C error") | {"values": tried, "seconds": seconds}
    if certify is not None:
        curve = facts(search.curve, "edges lower upper").items()
        told |= {"certify": certify, "error_bound": search.bound}
        told |= facts(search, "certified reason")
        told["curve"] = {name: array.tolist() for name, array in curve}
    text, met = _summary_of_choice(search, certify, seconds), certify is None or search.certified
    if fitted is not None:
        met &= fitted.met
        certificates = certificates_as_json(fitted.model)
        told |= {"model": output, "met": fitted.met, "certificates": certificates}
        text = "\n".join([text, *(f"{output}: {c}" for c in fitted.model.certificates)])
    options.answer(told, text, 0 if met else NOT_MET)


def _summary_of_choice(search: CrossValidation, certify: float | None, seconds: float) -> str:
    best, lines = search.best, [f"{'C':>12}  error of cross-validation"]
    # As many digits as tell different errors apart.
    errors = {round(value.error, 9) for value in search.values.values()}
    forms = (f"{{:.{digits}%}}" for digits in range(2, 8))
    shown = next(form for form in forms if len({*map(form.format, errors)}) == len(errors))
    for C in sorted(search.values):
        error = shown.format(search.values[C].error)
        lines.append(f"{C:12.6g}  {error}{'  *' if best.C == C else ''}")
    lines.append(f"C = {best.C:g}, error {shown.format(best.error)}; {seconds:.1f} s")
    if certify is not None:
        points = percentage_points(certify)
        verdict = f": C is within {points} of the best, proved"
        if not search.certified:
            verdict = f", proved; {points} are not proved: {search.reason}"
        lines.append(f"no C in the range has an error below {100 * search.bound:.4g} %{verdict}")
    return "\n".join(lines)
