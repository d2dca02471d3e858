"""certsvm train."""

from __future__ import annotations

import glob
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, BadInput, facts, put_json, say
from certsvm.cli.interrupts import stop_before_first, stoppable
from certsvm.cli.models import certificates_as_json, positive_classes
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import training_progress
from certsvm.cli.sources import cross_validated, opened_source

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


def _loss_of_type(ctx: click.Context, parameter: click.Parameter, value: int | None) -> str | None:
    """The loss of a type of liblinear."""
    if value is None or value in _LOSSES:
        return None if value is None else _LOSSES[value]
    kind, hint = f"liblinear has no type {value}", ""
    if value in _OTHER_TYPES:
        kind = f"{value} is {_OTHER_TYPES[value]} in liblinear"
        hint = f", which certsvm has not: use liblinear's train -s {value}"
    raise click.BadParameter(
        f"{kind}{hint}. 3 is the hinge loss, 1 and 2 its square. (--solver selects an algorithm.)",
        ctx, parameter,
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
@click.argument("model", type=o.OUTPUT_FILE, required=False)
@o.shared(
    click.option("-o", "--output", metavar="MODEL", type=o.OUTPUT_FILE,
                 help="File for the model; by default FILE.model in this folder."),
    o.AT_C, *o.FIT,
    click.option("-s", "loss_of_type", type=click.IntRange(min=0), callback=_loss_of_type,
                 metavar="TYPE",
                 help="The loss, as in liblinear: 3 is --loss hinge, 1 and 2 are --loss "
                      "squared_hinge. liblinear's algorithms for 1 and 2 have the same optimum, "
                      "and --solver chooses ours."),
    click.option("-w", "liblinear_weights", multiple=True, hidden=True),
    click.option("-v", "--folds", type=click.IntRange(min=2), metavar="N",
                 help="Do not write a model, but print the accuracy of cross-validation with N "
                      "folds."),
    click.option("-C", "--find-C", "find_C", is_flag=True,
                 help="Do not write a model, but print which of the C from 2^-10 to 2^10 has the "
                      "best accuracy of cross-validation (-v N: with N folds; 5 by default). "
                      "`certsvm select` can prove it."),
    *o.STREAM,
    click.option("--checkpoint", type=click.Path(file_okay=False), metavar="DIR",
                 help="Save the state of training there, and resume from it after a crash."),
    click.option("--checkpoint-every", type=o.NOT_NEGATIVE, metavar="SECONDS",
                 help="With --checkpoint: least time between checkpoints; 10 by default."),
    click.option("--dask", "cluster", metavar="ADDRESS",
                 help="Train on a Dask cluster: its scheduler's address, or local:N for N "
                      "processes here. FILE is then a file made by `certsvm convert`, or a folder "
                      "of such files, that all workers can read."),
    click.option("--deadline", type=o.POSITIVE, metavar="SECONDS",
                 help="With --dask: the cluster counts as lost if no task finishes for this long; "
                      "60 by default."),
    *o.TRAINING_DATA, o.JSON, o.QUIET,
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context, options: o.Options, file: str, model: str | None, output: str | None,
    loss_of_type: str | None, liblinear_weights: tuple[str, ...], folds: int | None, find_C: bool,
    checkpoint: str | None, checkpoint_every: float | None, cluster: str | None,
    deadline: float | None,
) -> None:  # fmt: skip
    """Train a linear SVM on FILE, write it to MODEL, and prove how close to the optimum it is.

    FILE is libsvm text (plain, gz, bz2, xz, zst; "-" is standard input), CSV, TSV, Parquet, or a
    file made by `certsvm convert`. As in liblinear, there is no intercept without -B, whereas
    LinearSVC in Python learns one by default: -B 1 solves its problem, and fit_intercept=False
    this one. The loss is the hinge, as in Python; liblinear's train has its square by default (-s
    1 here). Weights of classes may be given as in liblinear, too: -wLABEL W.

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
    from certsvm.solvers import make_solver

    validating, here = folds is not None or find_C, {"--memory": options.memory,
        "--stream": options.stream, "--witness": options.witness}  # fmt: skip
    for wrong, message in (
        (checkpoint_every is not None and checkpoint is None,
         "--checkpoint-every goes with --checkpoint only"),
        (deadline is not None and cluster is None, "--deadline goes with --dask only"),
        (model is not None and output is not None,
         "the model is named twice, as MODEL and by -o"),
        (loss_of_type and ctx.get_parameter_source("loss") is ParameterSource.COMMANDLINE,
         "-s and --loss both name the loss: leave one out"),
        *((validating and value, f"{name} does not go with cross-validation (-v, -C)")
          for name, value in {"MODEL": model or output, "--checkpoint": checkpoint,
                              "--dask": cluster, **here}.items()),
        *((cluster and value, f"{name} does not go with --dask")
          for name, value in {"--n-jobs": options.n_jobs, **here}.items()),
        (not validating and file == "-" and not (model or output),
         "from standard input, say where the model goes: -o MODEL"),
    ):  # fmt: skip
        if wrong:
            raise click.UsageError(message, ctx)
    if not validating:
        output = output or model or os.path.basename(os.path.normpath(file)) + ".model"
        require_outputs([file], model=output)
    if cluster is None:
        if os.path.isdir(file):
            raise BadInput(f"{file} is a folder; only --dask trains on one")
        # Unknown names are refused before the data are read.
        make_solver(options.solver)
    if checkpoint is not None:
        for path in glob.glob(os.path.join(glob.escape(checkpoint), "class-*.checkpoint")):
            require_outputs([file, output], checkpoint=path)
        if os.path.exists(os.path.join(checkpoint, "class-0.checkpoint")):
            say(f"resuming from {checkpoint}")
    began, options = time.perf_counter(), replace(options, loss=loss_of_type or options.loss)
    every = {} if checkpoint_every is None else {"checkpoint_every": checkpoint_every}
    settings = options.settings(options.C, checkpoint=checkpoint, **every)
    with opened_source(
        file, options, settings, liblinear_weights=liblinear_weights, cluster=cluster,
        deadline=deadline or 60.0,
    ) as source:  # fmt: skip
        read_seconds, n_problems = time.perf_counter() - began, len(source.labels)
        if _MANY_CLASSES < n_problems < source.n_rows:
            say(
                f"there are {n_problems} classes, each of which is a problem. Is this the right "
                "column of labels (--label)?"
            )
        if validating:
            _cross_validate(source, settings, folds or 5, options, find_C=find_C)
            return
        assert output is not None
        progress = training_progress(
            options.tol, options.max_time, n_problems, quiet=options.silent
        )
        with stoppable() as stop, progress as observer:
            settings = replace(settings, observers=[observer], stop=stop)
            fitted = fit_model(source, settings, witness=options.witness)
            stop_before_first(fitted.results)
            fitted.model.save(output)
    if options.witness and fitted.model.witness is None and not options.as_json:
        say("no witness was written: not every class has a dual point")
    seconds = time.perf_counter() - began
    if options.as_json:
        put_json({
            "model": output,
            "met": fitted.met,
            "certificates": certificates_as_json(fitted.model),
            "passes": [result.passes for result in fitted.results],
            "reasons": [result.reason for result in fitted.results],
            "solver": fitted.model.parameters["solver"],
            "seconds": seconds,
            "seconds_to_read": read_seconds,
        })  # fmt: skip
    elif not options.quiet:
        _summarise(fitted, output, f"{seconds:.1f} s ({read_seconds:.1f} s to read)")
    if not fitted.met:
        raise SystemExit(NOT_MET)


def _cross_validate(
    source: Source, settings: Settings, folds: int, options: o.Options, *, find_C: bool
) -> None:
    """Print what liblinear prints for -v and -C."""
    Cs = [2.0**k for k in range(-10, 11)] if find_C else [options.C]
    with stoppable() as stop:
        settings = replace(settings, stop=stop)
        search = cross_validated(source, settings, Cs, folds, quiet=options.silent)
    accuracy = 100.0 * (1.0 - search.best.error)
    if options.as_json:
        values = [facts(search.values[C], "C error") for C in sorted(search.values)]
        put_json(
            {"C": search.best.C, "accuracy": accuracy / 100.0, "folds": folds, "values": values}
        )
    elif find_C:
        click.echo(f"Best C = {search.best.C:g}  CV accuracy = {accuracy:g}%")
    else:
        click.echo(f"Cross Validation Accuracy = {accuracy:g}%")


def _summarise(fitted: Fit, output: str, seconds: str) -> None:
    from certsvm.training.history import shown_passes

    model = fitted.model
    for label, certificate, result in zip(
        positive_classes(model), model.certificates, fitted.results, strict=True
    ):
        prefix = f"class {tidy(label)}: " if model.n_problems > 1 else ""
        click.echo(f"{prefix}{certificate}")
        if not certificate.met:
            click.echo(
                f"{prefix}{result.reason} after {shown_passes(result.passes)} of {result.solver}"
            )
    click.echo(
        f"{output}: {model.certificates[0].problem}; {shown_passes(model.parameters['passes'])} of "
        f"{model.parameters['solver']}, {seconds}"
    )
