"""certsvm train."""

from __future__ import annotations

import glob
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli.app import NOT_MET, BadInput, facts, put_json, say
from certsvm.cli.compilation import seconds_compiled, watch_compilation
from certsvm.cli.interrupts import stop_before_first
from certsvm.cli.models import certificates_as_json, positive_classes
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import training_progress
from certsvm.cli.sources import cross_validated, opened_source

if TYPE_CHECKING:
    from certsvm.fitting.fit_model import Fit
    from certsvm.fitting.sources import Source
    from certsvm.training.settings import Settings

_MANY_CLASSES = 100
# So many certificates are printed; of more classes, the worst.
_MANY_LINES = 40

# What writes or streams does not go with cross-validation, nor with a cluster.
_HERE = ("memory", "stream", "witness", "device")
_NO_MODEL = ("model", "output", "checkpoint", "cluster", *_HERE)
_EXCLUDED = {
    "folds": _NO_MODEL, "find_C": _NO_MODEL, "cluster": ("n_jobs", *_HERE), "model": ("output",),
    "device": ("checkpoint", "memory", "stream", "witness", "n_jobs"),
}  # fmt: skip
_NEEDED = {"checkpoint_every": "checkpoint", "deadline": "cluster"}


class TrainCommand(click.Command):
    """A command that accepts weights of classes as liblinear does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn ``-w1 5`` into ``-w 1=5``."""
        rest, translated = iter(args), []
        for word in rest:
            weight = re.fullmatch(r"-w(-?[0-9.]+)", word)
            translated += ["-w", f"{weight[1]}={next(rest, '')}"] if weight else [word]
        return super().parse_args(ctx, translated)


@click.command(cls=TrainCommand)
@click.argument("file", type=click.Path(exists=True, allow_dash=True))
@click.argument("model", type=o.OUTPUT_FILE, required=False)
@o.shared(
    click.option("-o", "--output", metavar="MODEL", type=o.OUTPUT_FILE,
                 help="File for the model; by default FILE.model in this folder."),
    "C", *o.FIT,
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
    click.option("--checkpoint-every", type=o.NOT_NEGATIVE, metavar="SECONDS", default=10.0,
                 help="With --checkpoint: least time between checkpoints; 10 by default."),
    click.option("--dask", "cluster", metavar="ADDRESS",
                 help="Train on a Dask cluster: its scheduler's address, or local:N for N "
                      "processes here. FILE is then a file made by `certsvm convert`, or a folder "
                      "of such files, that all workers can read."),
    click.option("--deadline", type=o.POSITIVE, metavar="SECONDS", default=60.0,
                 help="With --dask: the cluster counts as lost if no task finishes for this long; "
                      "60 by default."),
    "device", *o.TRAINING_DATA, *o.OUTPUT,
)  # fmt: skip
def command(
    options: o.Options, file: str, model: str | None, output: str | None, folds: int | None,
    find_C: bool, checkpoint: str | None, checkpoint_every: float, cluster: str | None,
    deadline: float,
) -> None:  # fmt: skip
    """Train a linear SVM on FILE, write it to MODEL, and prove how close to the optimum it is.

    FILE is libsvm text (plain, gz, bz2, xz, zst; "-" is standard input), CSV, TSV, Parquet, a file
    made by `certsvm convert`, or embeddings: .npy with --labels, .safetensors, or Parquet with a
    column of lists. As in liblinear, there is no intercept without -B, whereas
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
    certsvm train X.npy --labels y.npy --device cuda -B 1 -o probe.model

    Exit codes: 0 the accuracy is proved; 3 training ended before that (the model is written, with
    the gap that is proved); 2 bad usage or input.
    """  # noqa: D301
    from certsvm.fitting.fit_model import fit_model

    o.check_together(_EXCLUDED, _NEEDED)
    validating, output = folds is not None or find_C, output or model
    if not validating and output is None:
        if file == "-":
            raise click.UsageError("from standard input, say where the model goes: -o MODEL")
        output = os.path.basename(os.path.normpath(file)) + ".model"
    require_outputs([file], model=output)
    if cluster is None and os.path.isdir(file):
        raise BadInput(f"{file} is a folder; only --dask trains on one")
    if checkpoint is not None:
        kept = glob.glob(os.path.join(glob.escape(checkpoint), "class-*.checkpoint"))
        for path in kept:
            require_outputs([file, output], checkpoint=path)
        if kept:
            say(f"resuming from {checkpoint}")
    began = time.perf_counter()
    watch_compilation(quiet=options.silent)
    compiled = seconds_compiled()
    settings = options.settings(options.C, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    opened = opened_source(file, options, settings, cluster=cluster, deadline=deadline)
    with opened as (source, settings):
        read_seconds = time.perf_counter() - began - (seconds_compiled() - compiled)
        n_problems = len(source.labels)
        if _MANY_CLASSES < n_problems < source.n_rows:
            say(
                f"there are {n_problems} classes, each of which is a problem. Is this the right "
                "column of labels (--label)?"
            )
        if validating:
            _cross_validate(source, settings, folds or 5, options, find_C=find_C)
            return
        progress = training_progress(
            settings.tol, options.max_time, n_problems, quiet=options.silent
        )
        with progress as observer:
            settings = replace(settings, observers=[observer])
            fitted = fit_model(source, settings, witness=options.witness)
            stop_before_first(fitted.results)
            fitted.model.save(str(output))
    if options.witness and fitted.model.witness is None:
        say("no witness was written: not every class has a dual point")
    seconds, compiled = time.perf_counter() - began, seconds_compiled() - compiled
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
            "seconds_to_compile": compiled,
        })  # fmt: skip
    elif not options.quiet:
        parts = f"{read_seconds:.1f} s to read"
        parts += f", {compiled:.1f} s to compile" if compiled >= 0.05 else ""
        _summarise(fitted, f"{output}: ", f"{seconds:.1f} s ({parts})")
    if not fitted.met:
        raise SystemExit(NOT_MET)


def _cross_validate(
    source: Source, settings: Settings, folds: int, options: o.Options, *, find_C: bool
) -> None:
    """Print what liblinear prints for -v and -C."""
    Cs = [2.0**k for k in range(-10, 11)] if find_C else [options.C]
    search = cross_validated(source, settings, Cs, folds, quiet=options.silent)
    accuracy = 1.0 - search.best.error
    if options.as_json:
        values = [facts(search.values[C], "C error") for C in sorted(search.values)]
        put_json({"C": search.best.C, "accuracy": accuracy, "folds": folds, "values": values})
    elif find_C:
        click.echo(f"Best C = {search.best.C:g}  CV accuracy = {100 * accuracy:g}%")
    else:
        click.echo(f"Cross Validation Accuracy = {100 * accuracy:g}%")


def _summarise(fitted: Fit, output: str, seconds: str) -> None:
    from certsvm.training.history import shown_passes

    model = fitted.model
    classes = zip(positive_classes(model), model.certificates, fitted.results, strict=True)
    shown = list(classes)
    if len(shown) > _MANY_LINES:
        met, worst = sum(c.met for _, c, _ in shown), max(shown, key=lambda s: s[1].proved_gap)
        click.echo(f"{met} of {len(shown)} classes proved; the worst:")
        shown = [worst]
    for label, certificate, result in shown:
        prefix = f"class {tidy(label)}: " if model.n_problems > 1 else ""
        click.echo(f"{prefix}{certificate}")
        if not certificate.met:
            passes = shown_passes(result.passes)
            click.echo(f"{prefix}{result.reason} after {passes} of {result.solver}")
    passes = shown_passes(model.parameters["passes"])
    problem, solver = model.certificates[0].problem, model.parameters["solver"]
    click.echo(f"{output}{problem}; {passes} of {solver}, {seconds}")
