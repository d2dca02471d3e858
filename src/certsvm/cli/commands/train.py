"""certsvm train."""

from __future__ import annotations

import glob
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import options as o
from certsvm.cli import say
from certsvm.cli.app import NOT_MET, BadInput, facts
from certsvm.cli.inputs import certificates_as_json, certified, problem_of
from certsvm.cli.interrupts import stop_before_first
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import seconds_compiled, training_progress, watch_compilation
from certsvm.cli.sources import cross_validated, opened_source

if TYPE_CHECKING:
    from certsvm.fitting.fit_model import Fit
    from certsvm.fitting.sources import Source
    from certsvm.training.settings import Settings

# What writes or streams does not go with cross-validation, nor with a cluster.
_HERE = ("memory", "stream", "witness", "device")
_NO_MODEL = ("model", "output", "checkpoint", "cluster", *_HERE)
_EXCLUDED = {"folds": _NO_MODEL, "find_C": _NO_MODEL, "cluster": ("n_jobs", *_HERE)}
_EXCLUDED["model"] = ("output",)
_EXCLUDED["device"] = ("checkpoint", "memory", "stream", "witness", "n_jobs")
_NEEDED = {"checkpoint_every": "checkpoint", "deadline": "cluster"}
# So many certificates are printed; of more classes, the worst.
_MANY_LINES = 40


class TrainCommand(click.Command):
    """A command that accepts weights of classes as liblinear does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn ``-w1 5`` into ``-w 1=5``."""
        rest, translated = iter(args), []
        for word in rest:
            weight = re.fullmatch(r"-w(-?[0-9.]+)", word)
            translated += ["-w", f"{weight[1]}={next(rest, '')}"] if weight else [word]
        return super().parse_args(ctx, translated)


@o.command(
    click.argument("file", type=click.Path(exists=True, allow_dash=True)),
    click.argument("model", type=o.OUTPUT_FILE, required=False),
    click.option("-o", "--output", metavar="MODEL", type=o.OUTPUT_FILE,
                 help="File for the model; by default FILE.model in this folder."),
    "C", *o.FIT,
    click.option("-v", "--folds", type=click.IntRange(min=2), metavar="N",
                 help="Write no model, but print the accuracy of cross-validation with N folds."),
    click.option("-C", "--find-C", "find_C", is_flag=True,
                 help="Write no model, but print which C from 2^-10 to 2^10 has the best accuracy "
                      "of cross-validation (-v N; 5 by default). `certsvm select` can prove it."),
    *o.STREAM,
    click.option("--checkpoint", type=click.Path(file_okay=False), metavar="DIR",
                 help="Save the state of training there, and resume from it after a crash."),
    click.option("--checkpoint-every", type=o.NOT_NEGATIVE, metavar="SECONDS", default=10.0,
                 help="With --checkpoint: least time between checkpoints; 10 by default."),
    click.option("--dask", "cluster", metavar="ADDRESS",
                 help="Train on a Dask cluster: its scheduler's address, or local:N for N "
                      "processes here. FILE is then converted, or a folder of such files."),
    click.option("--deadline", type=o.POSITIVE, metavar="SECONDS", default=60.0,
                 help="With --dask: a cluster that ends no task for so long is lost; 60."),
    "device", *o.TRAINING_DATA, *o.OUTPUT, cls=TrainCommand,
)  # fmt: skip
def train_command(
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
    settings = options.settings(options.C, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    opened = opened_source(file, options, settings, cluster=cluster, deadline=deadline)
    with opened as (source, settings):
        read_seconds = time.perf_counter() - began - seconds_compiled()
        if validating:
            _cross_validate(source, settings, folds or 5, options, find_C=find_C)
        several = len(source.labels) > 1
        title = "class {}" if several else "training"
        n_classes = len(source.labels) if several else 0
        with training_progress(title, n_classes=n_classes, quiet=options.silent) as observer:
            settings = replace(settings, observers=[observer])
            fitted = fit_model(source, settings, witness=options.witness)
            stop_before_first(fitted.results)
            fitted.model.save(str(output))
    if options.witness and fitted.model.witness is None:
        say("no witness was written: not every class has a dual point")
    told = {
        "model": output, "met": fitted.met, "certificates": certificates_as_json(fitted.model),
        "passes": [result.passes for result in fitted.results],
        "reasons": [result.reason for result in fitted.results],
        "solver": fitted.model.parameters["solver"], "seconds": time.perf_counter() - began,
        "seconds_to_read": read_seconds, "seconds_to_compile": seconds_compiled(),
    }  # fmt: skip
    options.answer(told, _summary(fitted, told), 0 if fitted.met else NOT_MET)


def _cross_validate(
    source: Source, settings: Settings, folds: int, options: o.Options, *, find_C: bool
) -> NoReturn:
    """Answer what liblinear prints for -v and -C."""
    Cs = [2.0**k for k in range(-10, 11)] if find_C else [options.C]
    search = cross_validated(source, settings, Cs, folds, quiet=options.silent)
    C, accuracy = search.best.C, 1.0 - search.best.error
    text = f"Cross Validation Accuracy = {100 * accuracy:g}%"
    if find_C:
        text = f"Best C = {C:g}  CV accuracy = {100 * accuracy:g}%"
    values = [facts(search.values[C], "C error") for C in sorted(search.values)]
    options.answer({"C": C, "accuracy": accuracy, "folds": folds, "values": values}, text)


def _summary(fitted: Fit, told: dict[str, Any]) -> str:
    from certsvm.training.history import shown_passes

    model, lines = fitted.model, list[str]()
    shown = list(zip(certified(model), fitted.results, strict=True))
    if len(shown) > _MANY_LINES:
        met = sum(certificate.met for certificate in model.certificates)
        lines.append(f"{met} of {len(shown)} classes proved; the worst:")
        shown = [max(shown, key=lambda found: found[0][1].proved_gap)]
    for (label, certificate), result in shown:
        prefix = f"class {tidy(label)}: " if model.n_problems > 1 else ""
        lines.append(f"{prefix}{certificate}")
        if not certificate.met:
            passes = shown_passes(result.passes)
            lines.append(f"{prefix}{result.reason} after {passes} of {result.solver}")
    passes, compiled = shown_passes(model.parameters["passes"]), told["seconds_to_compile"]
    how = f"{passes} of {told['solver']}, {told['seconds']:.1f} s"
    how += f" ({told['seconds_to_read']:.1f} s to read"
    how += f", {compiled:.1f} s to compile)" if compiled >= 0.05 else ")"
    return "\n".join([*lines, f"{told['model']}: {problem_of(model)}; {how}"])
