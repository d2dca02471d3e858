"""certsvm path."""

from __future__ import annotations

import glob
import os
import time
from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import percent
from certsvm.cli.app import NOT_MET, BadInput, put_json
from certsvm.cli.class_weights import parse_class_weights
from certsvm.cli.options import (
    DataOptions,
    FiniteFloat,
    ObjectiveOptions,
    as_json_option,
    categorical_option,
    data_options,
    range_options,
    size,
)
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import lines_of
from certsvm.cli.training_data import opened_source

if TYPE_CHECKING:
    from certsvm.files import Model
    from certsvm.fitting.path import PathProgress, Trace
    from certsvm.fitting.sources import Source
    from certsvm.training.settings import Settings


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@range_options("Limit in seconds, for each class of each fit.")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Folder for the models at the fitted values, which is made if needed: C=0.1.model, ...",
)
@click.option(
    "--at",
    "asked",
    multiple=True,
    type=FiniteFloat(min=0, min_open=True),
    metavar="C",
    help="Also write the model at this C, interpolated and certified. May be repeated.",
)
@click.option(
    "--max-fits",
    type=click.IntRange(min=2),
    default=200,
    show_default=True,
    help="Limit on the number of fits.",
)
@click.option(
    "--witness",
    is_flag=True,
    help="Write witnesses beside the models, from which `certsvm verify` recomputes dual bounds.",
)
@click.option(
    "--memory",
    callback=size,
    metavar="SIZE",
    help="Memory that this process may use, such as 500M; see `certsvm train --help`.",
)
@click.option("--stream", is_flag=True, help="Stream a converted file even if it fits in memory.")
@data_options
@categorical_option
@as_json_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
def command(
    file: str, C_range: tuple[float, float], tol: float, objective: ObjectiveOptions,
    weights: tuple[str, ...], solver: str, max_iter: int, max_time: float | None, seed: int,
    n_jobs: int | None, output: str | None, asked: tuple[float, ...], max_fits: int, witness: bool,
    memory: int | None, stream: bool, options: DataOptions, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Train on FILE for every C in a range, and prove how close to the optimum each model is.

    As few values of C are fitted as it takes. Between two of them the model is interpolated, and
    what is proved about it follows from its neighbours.

    \b
    certsvm path a9a --range 1e-3 1e2 --tol 0.01
    certsvm path a9a --range 1e-3 1e2 -o a9a.path --at 0.5 --at 2

    Exit codes: 0 the accuracy is proved for every C; 3 it is not (what is proved is written); 2 bad
    usage or input.
    """  # noqa: D301
    from certsvm.fitting.path import require_proofs, trace_path
    from certsvm.parallel import available_processors
    from certsvm.solvers import make_solver
    from certsvm.training.settings import Settings

    require_proofs(make_solver(solver), tol)
    if (asked or witness) and output is None:
        raise click.UsageError("--at and --witness need a folder for the models: -o FOLDER")
    for C in asked:
        if not C_range[0] <= C <= C_range[1]:
            raise click.UsageError(f"--at {C:g} is outside the range")
    if output is not None:
        _prepare(output, file)
    began = time.perf_counter()
    settings = Settings(
        objective.at(C_range[0]), tol=tol, solver=solver, max_iter=max_iter, max_time=max_time,
        seed=seed, n_jobs=n_jobs or available_processors(), keep_alpha=witness,
    )  # fmt: skip
    silent = quiet or as_json
    with opened_source(
        file, options, settings, objective.intercept_scaling,
        memory=memory, stream=stream, witness=witness, quiet=silent,
    ) as source:  # fmt: skip
        source.set_class_weight(parse_class_weights(weights, source.classes))
        with lines_of("path", quiet=silent) as show:
            trace = trace_path(
                source, settings, C_range,
                max_fits=max_fits, callback=lambda p: show(_described(p)),
            )  # fmt: skip
        written = []
        if output is not None:
            fitted = {C for C in asked if trace.Cs[0] <= C <= trace.Cs[-1]}
            for C in sorted({*trace.Cs, *fitted}):
                written.append(os.path.join(output, f"C={C!r}.model"))
                _model_at(trace, source, settings, C, witness=witness).save(written[-1])
    seconds = time.perf_counter() - began
    met = trace.worst_gap <= tol
    if as_json:
        put_json(_as_json(trace, written, seconds, met=met))
    elif not quiet:
        _summarise(trace, written, seconds, met=met)
    if not met:
        raise SystemExit(NOT_MET)


def _prepare(folder: str, file: str) -> None:
    """Make the folder; raise now rather than after an hour of training."""
    os.makedirs(folder, exist_ok=True)
    # At which C there will be models is not known yet.
    for old in glob.glob(os.path.join(glob.escape(folder), "C=*.model*")):
        require_outputs([file], model=old.removesuffix(".witness"))
    if not os.access(folder, os.W_OK):
        raise BadInput(f"the folder {folder} cannot be written to")


def _described(progress: PathProgress) -> str:
    gap = percent(progress.worst_gap) if progress.n_fits > 1 else "..."
    end = progress.proved_up_to
    proved = f"proved up to C = {end:.4g}" if end > 0.0 else "nothing proved"
    return f"fit {progress.n_fits}, at C = {progress.C:.4g}; {proved}, largest gap {gap}"


def _model_at(
    trace: Trace, source: Source, settings: Settings, C: float, *, witness: bool
) -> Model:

    from certsvm.fitting.fit_model import model_of, witnessed

    results = trace.at(C, source)
    if witness:
        objective = settings.objective.at(C)
        results = [
            witnessed(i, source.problem(i, objective), result) for i, result in enumerate(results)
        ]
    return model_of(source, settings.at(C), results)


def _summarise(trace: Trace, written: list[str], seconds: float, *, met: bool) -> None:
    click.echo(f"{'C':>12}  {'primal':>12}  {'dual':>12}  {'gap':>10}  gap up to the next C")
    for knot, between in zip(trace.knots, [*map(percent, trace.gaps), ""], strict=True):
        worst = max((r.certificate for r in knot.results), key=lambda c: c.proved_gap)
        click.echo(
            f"{knot.C:12.6g}  {worst.primal:12.6g}  {worst.dual:12.6g}  "
            f"{percent(worst.proved_gap):>10}  {between}"
        )
    low, high = trace.C_range
    if met:
        click.echo(
            f"every C from {low:g} to {high:g} has a model within {percent(trace.worst_gap)} of "
            f"its optimum, proved by {len(trace.knots)} fits in {seconds:.1f} s"
        )
    else:
        end = trace.proved_up_to
        proved = f"is proved from C = {low:g} up to C = {end:g}, not up to {high:g},"
        if end < low:
            proved = f"is not proved for every C from {low:g} to {high:g}, nor at C = {low:g},"
        click.echo(
            f"{percent(trace.tol)} {proved} after {len(trace.knots)} fits in {seconds:.1f} s"
        )
    if written:
        click.echo(f"{len(written)} models in {os.path.dirname(written[0])}")


def _as_json(trace: Trace, written: list[str], seconds: float, *, met: bool) -> dict[str, Any]:
    return {
        "met": met,
        "tol": trace.tol,
        "range": list(trace.C_range),
        "proved_up_to": trace.proved_up_to,
        "worst_gap": trace.worst_gap,
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
    }
