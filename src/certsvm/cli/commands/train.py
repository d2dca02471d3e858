"""certsvm train."""

from __future__ import annotations

import glob
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import NOT_MET, BadInput, put_json, say
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
    problem_options,
    size,
)
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import training_progress
from certsvm.cli.training_data import opened_source

if TYPE_CHECKING:
    from certsvm.fitting.fit_model import Fit
    from certsvm.fitting.sources import Source
    from certsvm.training.settings import Settings

_MANY_CLASSES = 100

_REFUSED = {
    "-p": "certsvm has no regression.",
    "-m": "the number of threads is --n-jobs N.",
    "-n": "certsvm has no one-class SVM; the number of threads is --n-jobs N.",
}

# liblinear's types of solver: those that minimise what certsvm does, with the loss, and the others.
_LOSSES = {1: "squared_hinge", 2: "squared_hinge", 3: "hinge"}
_OTHER_TYPES = {
    0: "logistic regression",
    4: "the multi-class SVM of Crammer and Singer",
    5: "the squared hinge with an L1 penalty",
    6: "logistic regression with an L1 penalty",
    7: "logistic regression",
    11: "regression",
    12: "regression",
    13: "regression",
    21: "a one-class SVM",
}


def _loss_of_type(
    context: click.Context, parameter: click.Parameter, value: int | None
) -> str | None:
    """The loss of a type of liblinear."""
    if value is None or value in _LOSSES:
        return None if value is None else _LOSSES[value]
    what = _OTHER_TYPES.get(value)
    kind = f"{value} is {what} in liblinear" if what else f"liblinear has no type {value}"
    hint = f", which certsvm has not: use liblinear's train -s {value}" if what else ""
    raise click.BadParameter(
        f"{kind}{hint}. 3 is the hinge loss, 1 and 2 its square. (--solver selects an algorithm.)",
        context, parameter,
    )  # fmt: skip


class TrainCommand(click.Command):
    """A command that accepts liblinear's letters."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn ``-w1 5`` into ``-w 1=5``; explain letters that are not accepted."""
        translated: list[str] = []
        rest = iter(args)
        for word in rest:
            weight = re.fullmatch(r"-w(-?[0-9.]+)", word)
            if weight:
                value = next(rest, "-")
                if value.startswith("-"):
                    raise click.UsageError(f"{word} needs a weight after it", ctx)
                translated += ["-w", f"{weight.group(1)}={value}"]
            elif word in _REFUSED:
                raise click.UsageError(f"{word} is not an option here: {_REFUSED[word]}", ctx)
            else:
                translated.append(word)
        return super().parse_args(ctx, translated)


@click.command(cls=TrainCommand)
@click.argument("file", type=click.Path(exists=True, allow_dash=True))
@click.argument("model", type=click.Path(dir_okay=False), required=False)
@click.option(
    "-o",
    "--output",
    metavar="MODEL",
    type=click.Path(dir_okay=False),
    help="File for the model; by default FILE.model in this folder.",
)
@problem_options
@click.option(
    "-s",
    "loss_of_type",
    type=click.IntRange(min=0),
    callback=_loss_of_type,
    metavar="TYPE",
    help="The loss, as in liblinear: 3 is --loss hinge, 1 and 2 are --loss squared_hinge. "
    "liblinear's algorithms for 1 and 2 have the same optimum, and --solver chooses ours.",
)
@click.option(
    "--class-weight",
    "weights",
    multiple=True,
    metavar="LABEL=W",
    help='Multiply the weights of a class (also "-wLABEL W", as in liblinear); '
    '"balanced" gives all classes the same total weight.',
)
@click.option("-w", "liblinear_weights", multiple=True, hidden=True)
@click.option(
    "-v",
    "--folds",
    type=click.IntRange(min=2),
    metavar="N",
    help="Do not write a model, but print the accuracy of cross-validation with N folds.",
)
@click.option(
    "-C",
    "--find-C",
    "find_C",
    is_flag=True,
    help="Do not write a model, but print which of the C from 2^-10 to 2^10 has the best accuracy "
    "of cross-validation (-v N: with N folds; 5 by default). `certsvm select` can prove it.",
)
@click.option(
    "--solver",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="auto, working-set, newton, dcd, sgd-s, sgd-m, ... (certsvm compare runs several).",
)
@click.option(
    "--max-time",
    type=FiniteFloat(min=0),
    metavar="SECONDS",
    help="Limit in seconds, for each class.",
)
@click.option("--n-jobs", type=click.IntRange(min=1), help="Threads; by default one per processor.")
@click.option(
    "--witness",
    is_flag=True,
    help="Write MODEL.witness, from which `certsvm verify` recomputes the dual bound.",
)
@click.option(
    "--memory",
    callback=size,
    metavar="SIZE",
    help="Memory that this process may use, such as 500M. Larger data are streamed from disk in "
    "each pass (needs a file made by `certsvm convert`).",
)
@click.option("--stream", is_flag=True, help="Stream a converted file even if it fits in memory.")
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Save the state of training there, and resume from it after a crash.",
)
@click.option(
    "--checkpoint-every",
    type=FiniteFloat(min=0),
    metavar="SECONDS",
    help="With --checkpoint: least time between checkpoints; 10 by default.",
)
@click.option(
    "--dask",
    "cluster",
    metavar="ADDRESS",
    help="Train on a Dask cluster: its scheduler's address, or local:N for N processes here. FILE "
    "is then a file made by `certsvm convert`, or a folder of such files, that all workers can "
    "read.",
)
@click.option(
    "--deadline",
    type=FiniteFloat(min=0, min_open=True),
    metavar="SECONDS",
    help="With --dask: the cluster counts as lost if no task finishes for this long; 60 by "
    "default.",
)
@data_options
@categorical_option
@as_json_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
@click.pass_context
def command(
    ctx: click.Context, file: str, model: str | None, output: str | None, C: float, tol: float,
    objective: ObjectiveOptions, loss_of_type: str | None, weights: tuple[str, ...],
    liblinear_weights: tuple[str, ...], folds: int | None, find_C: bool, solver: str,
    max_iter: int, max_time: float | None, seed: int, n_jobs: int | None, witness: bool,
    memory: int | None, stream: bool, checkpoint: str | None,
    checkpoint_every: float | None, cluster: str | None, deadline: float | None,
    options: DataOptions, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Train a linear SVM on FILE, write it to MODEL, and prove how close to the optimum it is.

    FILE is libsvm text (plain, gz, bz2, xz, zst; "-" is standard input), CSV, TSV, Parquet, or a
    file made by `certsvm convert`. As in liblinear, there is no intercept without -B, whereas
    LinearSVC in Python learns one by default: -B 1 solves its problem, and fit_intercept=False
    this one. The loss is the hinge, as in Python; liblinear's train has its square by default (-s
    1 here).

    \b
    certsvm train heart_scale -c 10 -o heart.model
    certsvm train a9a.xz --tol 1e-6 --witness
    certsvm train a9a --loss squared_hinge -B 1 --free-intercept
    zcat big.gz | certsvm train - -o big.model --json
    certsvm train huge.arrow --memory 2G --checkpoint huge.state
    certsvm train folder --dask tcp://scheduler:8786 -o folder.model

    Exit codes: 0 the accuracy is proved; 3 training ended before that (the model is written, with
    the gap that is proved); 2 bad usage or input.
    """  # noqa: D301
    from certsvm.fitting.fit_model import fit_model
    from certsvm.parallel import available_processors
    from certsvm.solvers import make_solver
    from certsvm.training.settings import Settings

    if checkpoint_every is None:
        checkpoint_every = Settings.checkpoint_every
    elif checkpoint is None:
        raise click.UsageError("--checkpoint-every goes with --checkpoint only", ctx)
    validating = folds is not None or find_C
    if validating:
        _refuse(
            ctx, "cross-validation (-v, -C)",
            {"MODEL": model or output, "--witness": witness, "--checkpoint": checkpoint,
             "--dask": cluster, "--memory": memory, "--stream": stream},
        )  # fmt: skip
    output = "" if validating else _output(ctx, file, model, output)
    began = time.perf_counter()
    if loss_of_type is not None:
        if ctx.get_parameter_source("loss") is ParameterSource.COMMANDLINE:
            raise click.UsageError("-s and --loss both name the loss: leave one out", ctx)
        objective = replace(objective, loss=loss_of_type)
    settings = Settings(
        objective.at(C), tol=tol, solver=solver, max_iter=max_iter, max_time=max_time, seed=seed,
        n_jobs=n_jobs or available_processors(), checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )  # fmt: skip
    if cluster is not None:
        _refuse(
            ctx, "--dask",
            {"--n-jobs": n_jobs, "--memory": memory, "--stream": stream, "--witness": witness},
        )  # fmt: skip
    elif deadline is not None:
        raise click.UsageError("--deadline goes with --dask only", ctx)
    elif os.path.isdir(file):
        raise BadInput(f"{file} is a folder; only --dask trains on one")
    else:
        # Unknown names are refused before the data are read.
        make_solver(solver)
    if checkpoint is not None:
        _require_apart(checkpoint, file, output)
        if os.path.exists(os.path.join(checkpoint, "class-0.checkpoint")):
            say(f"resuming from {checkpoint}")
    silent = quiet or as_json
    rho = objective.intercept_scaling
    with opened_source(
        file, options, settings, rho, memory=memory, stream=stream, witness=witness, quiet=silent,
        cluster=cluster, deadline=deadline or 60.0,
    ) as source:  # fmt: skip
        source.set_class_weight(parse_class_weights(weights, source.classes, liblinear_weights))
        read_seconds = time.perf_counter() - began
        _note_many_classes(source)
        if validating:
            _cross_validate(
                source, settings, folds or 5, find_C=find_C, as_json=as_json, quiet=silent
            )
            return
        with training_progress(tol, max_time, len(source.labels), quiet=silent) as observer:
            fitted = fit_model(source, replace(settings, observers=[observer]), witness=witness)
    fitted.model.save(output)
    if witness and fitted.model.witness is None and not as_json:
        say("no witness was written: not every class has a dual point")
    _report(fitted, output, read_seconds, began, as_json=as_json, quiet=quiet)


def _refuse(ctx: click.Context, what: str, given: dict[str, Any]) -> None:
    """Raise if an option was given that does not go with something else."""
    for name, value in given.items():
        if value:
            raise click.UsageError(f"{name} does not go with {what}", ctx)


def _note_many_classes(source: Source) -> None:
    n_problems = len(source.labels)
    if _MANY_CLASSES < n_problems < source.n_rows:
        say(
            f"there are {n_problems} classes, each of which is a problem. Is this the right column "
            "of labels (--label)?"
        )


def _cross_validate(
    source: Source, settings: Settings, folds: int, *, find_C: bool, as_json: bool, quiet: bool
) -> None:
    """Print what liblinear prints for -v and -C."""
    Cs = [2.0**k for k in range(-10, 11)] if find_C else [settings.objective.C]
    search = cross_validated(source, settings, Cs, folds, quiet=quiet)
    best = search.best
    accuracy = 100.0 * (1.0 - best.error)
    if as_json:
        values = [{"C": C, "error": search.values[C].error} for C in sorted(search.values)]
        put_json({"C": best.C, "accuracy": accuracy / 100.0, "folds": folds, "values": values})
    elif find_C:
        click.echo(f"Best C = {best.C:g}  CV accuracy = {accuracy:g}%")
    else:
        click.echo(f"Cross Validation Accuracy = {accuracy:g}%")


def _output(ctx: click.Context, file: str, model: str | None, output: str | None) -> str:
    """The file for the model; raises if it cannot be written."""
    if model is not None and output is not None:
        raise click.UsageError("the model is named twice, as MODEL and by -o", ctx)
    output = output or model
    if output is None:
        if file == "-":
            raise click.UsageError("from standard input, say where the model goes: -o MODEL", ctx)
        output = os.path.basename(os.path.normpath(file)) + ".model"
    require_outputs([file], model=output)
    return output


def _require_apart(checkpoint: str, file: str, output: str) -> None:
    """Raise if a checkpoint would overwrite the data or the model."""
    for path in glob.glob(os.path.join(glob.escape(checkpoint), "class-*.checkpoint")):
        require_outputs([file, output], checkpoint=path)


def _report(
    fitted: Fit, output: str, read_seconds: float, began: float, *, as_json: bool, quiet: bool
) -> None:
    """Print the result; exit with ``NOT_MET`` if the target is not proved."""
    seconds = time.perf_counter() - began
    if as_json:
        put_json(_as_json(fitted, output, read_seconds, seconds))
    elif not quiet:
        _summarise(fitted, output, read_seconds, seconds)
    if not fitted.met:
        raise SystemExit(NOT_MET)


def _summarise(fitted: Fit, output: str, read_seconds: float, seconds: float) -> None:
    from certsvm.training.history import shown_passes

    model = fitted.model
    positive = model.classes[1:] if model.n_problems == 1 else model.classes
    for label, certificate, result in zip(
        positive.tolist(), model.certificates, fitted.results, strict=True
    ):
        prefix = f"class {tidy(label)}: " if model.n_problems > 1 else ""
        click.echo(f"{prefix}{certificate}")
        if not certificate.met:
            click.echo(
                f"{prefix}{result.reason} after {shown_passes(result.passes)} of {result.solver}"
            )
    click.echo(
        f"{output}: {model.certificates[0].problem}; "
        f"{shown_passes(model.parameters['passes'])} of {model.parameters['solver']}, "
        f"{seconds:.1f} s ({read_seconds:.1f} s to read)"
    )


def _as_json(fitted: Fit, output: str, read_seconds: float, seconds: float) -> dict[str, Any]:
    return {
        "model": output,
        "met": fitted.met,
        "certificates": certificates_as_json(fitted.model),
        "passes": [result.passes for result in fitted.results],
        "reasons": [result.reason for result in fitted.results],
        "solver": fitted.model.parameters["solver"],
        "seconds": seconds,
        "seconds_to_read": read_seconds,
    }
