"""certsvm path."""

from __future__ import annotations

import glob
import os
import time
from typing import TYPE_CHECKING

import click

from certsvm.certificates.certificate import COARSE_TOL, percent
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, facts, put_json
from certsvm.cli.interrupts import stop_before_first
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import live_line
from certsvm.cli.sources import opened_source

if TYPE_CHECKING:
    from certsvm.fitting.path import PathProgress, Trace


@click.command()
@o.file_argument("file")
@o.shared(
    "C_range", *o.FIT,
    click.option("-o", "--output", metavar="FOLDER", type=click.Path(file_okay=False),
                 help="Folder for the models at the fitted values, which is made if needed: "
                      "C=0.1.model, ..."),
    click.option("--at", "asked", multiple=True, type=o.POSITIVE, metavar="C",
                 help="Also write the model at this C, interpolated and certified. May be "
                      "repeated."),
    click.option("--max-fits", type=click.IntRange(min=2), default=200, show_default=True,
                 help="Limit on the number of fits."),
    *o.STREAM, *o.TRAINING_DATA, *o.OUTPUT, tol=COARSE_TOL,
)  # fmt: skip
def command(
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
    for C in asked:
        if not low <= C <= high:
            raise click.UsageError(f"--at {C} is outside the range")
    if output is not None:
        os.makedirs(output, exist_ok=True)
        # At which C there will be models is not known yet.
        old = glob.glob(os.path.join(glob.escape(output), "C=*.model*"))
        for model in [os.path.join(output, "C=.model"), *old]:
            require_outputs([file], model=model.removesuffix(".witness"))
    began, written = time.perf_counter(), []
    settings = options.settings(low, keep_alpha=bool(options.witness))
    with opened_source(file, options, settings) as (source, settings):
        with live_line("path", quiet=options.silent, elsewhere=True) as show:
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
    if options.as_json:
        put_json({
            **facts(trace, "met tol proved_up_to worst_gap"),
            "range": list(trace.C_range),
            "fits": [
                {
                    "C": knot.C,
                    "proved_gap": knot.gap,
                    "gap_up_to_next": gap,
                    "passes": max(result.passes for result in knot.results),
                }
                for knot, gap in zip(trace.knots, [*trace.gaps, None], strict=True)
            ],
            "models": written,
            "seconds": seconds,
        })  # fmt: skip
    elif not options.quiet:
        _summarise(trace, seconds)
        if written:
            click.echo(f"{len(written)} models in {output}")
    if not trace.met:
        raise SystemExit(NOT_MET)


def _described(progress: PathProgress) -> str:
    gap = percent(progress.worst_gap) if progress.n_fits > 1 else "..."
    end = progress.proved_up_to
    proved = f"proved up to C = {end:.4g}" if end > 0.0 else "nothing proved"
    return f"fit {progress.n_fits}, at C = {progress.C:.4g}; {proved}, largest gap {gap}"


def _summarise(trace: Trace, seconds: float) -> None:
    click.echo(f"{'C':>12}  {'primal':>12}  {'dual':>12}  {'gap':>10}  gap up to the next C")
    for knot, between in zip(trace.knots, [*map(percent, trace.gaps), ""], strict=True):
        worst = max((r.certificate for r in knot.results), key=lambda c: c.proved_gap)
        click.echo(
            f"{knot.C:12.6g}  {worst.primal:12.6g}  {worst.dual:12.6g}  "
            f"{percent(worst.proved_gap):>10}  {between}"
        )
    (low, high), end = trace.C_range, trace.proved_up_to
    proved = (
        f"{percent(trace.tol)} is proved from C = {low:g} up to C = {end:g}, not up to {high:g}"
    )
    if trace.met:
        proved = (
            f"every C from {low:g} to {high:g} has a model within {percent(trace.worst_gap)} of "
        )
        proved += "its optimum, proved"
    elif end < low:
        proved = f"{percent(trace.tol)} is not proved for every C from {low:g} to {high:g}, nor at "
        proved += f"C = {low:g}"
    click.echo(f"{proved}; {len(trace.knots)} fits in {seconds:.1f} s")
