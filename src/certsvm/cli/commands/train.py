"""certsvm train, path, select and compare: from data to models."""

from __future__ import annotations

import glob
import os
import time
from dataclasses import replace

import click

from certsvm.certificates.certificate import COARSE_TOL
from certsvm.cli import NOT_MET, facts, say, stop_before_first, stoppable
from certsvm.cli import options as o
from certsvm.cli.files import certificates_as_json, load, require_outputs
from certsvm.cli.progress import live_lines, seconds_compiled, training_progress

# What writes or streams does not go with cross-validation, nor with a cluster.
_HERE = ("memory", "stream", "witness", "device")
_NO_MODEL = ("model", "out", "checkpoint", "cluster", *_HERE)
_EXCLUDED = {
    "folds": _NO_MODEL, "find_C": _NO_MODEL, "cluster": ("n_jobs", *_HERE), "model": ("out",),
    "device": ("checkpoint", "memory", "stream", "witness", "n_jobs"),
}  # fmt: skip
_NEEDED = {"checkpoint_every": "checkpoint", "deadline": "cluster"}


@o.command(
    click.Argument(["file"], type=click.Path(exists=True, allow_dash=True)),
    click.Argument(["model"], required=False),
    "C", *o.FIT, "folds", "find_C", *o.STREAM, "checkpoint", "checkpoint_every", "cluster",
    "deadline", "device", *o.TRAINING_DATA, *o.OUTPUT,
)  # fmt: skip
def train_command(options: o.Options, file: str, model: str | None) -> None:
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
    from certsvm.cli import training
    from certsvm.fitting.fit_model import fit_model

    began = time.perf_counter()
    o.check_together(_EXCLUDED, _NEEDED)
    settings = training.settings_of(options, options.C)
    validating, output = options.folds is not None or options.find_C, options.out or model
    if not validating and output is None:
        if file == "-":
            raise click.UsageError("from standard input, say where the model goes: -o MODEL")
        output = os.path.basename(os.path.normpath(file)) + ".model"
    require_outputs([file], model=output)
    if options.cluster is None and os.path.isdir(file):
        raise ValueError(f"{file} is a folder; only --dask trains on one")
    if options.checkpoint is not None:
        for path in glob.glob(os.path.join(glob.escape(options.checkpoint), "class-*.checkpoint")):
            require_outputs([file, output], checkpoint=path)
            say(f"resuming from {path}")
    with training.opened_source(file, options, settings) as (source, settings):
        read_seconds = time.perf_counter() - began - seconds_compiled()
        if validating:
            # Answer what liblinear prints.
            Cs = [2.0**k for k in range(-10, 11)] if options.find_C else [options.C]
            search = training.cross_validated(source, settings, Cs, options)
            C, accuracy = search.best.C, 1.0 - search.best.error
            what = f"Best C = {C:g}  CV accuracy" if options.find_C else "Cross Validation Accuracy"
            values = [facts(search.values[C], "C error") for C in sorted(search.values)]
            answer = {"C": C, "accuracy": accuracy, "folds": options.folds or 5, "values": values}
            options.answer(answer, f"{what} = {100 * accuracy:g}%")
        with training_progress(n_classes=len(source.labels), quiet=options.silent) as observer:
            settings = replace(settings, observers=[observer])
            fitted = fit_model(source, settings, witness=options.witness)
            stop_before_first(fitted.results)
            fitted.model.save(str(output))
    if options.witness and fitted.model.witness is None:
        say("no witness was written: not every class has a dual point")
    answer = {
        "model": output, "met": fitted.met, "certificates": certificates_as_json(fitted.model),
        "passes": [result.passes for result in fitted.results],
        "reasons": [result.reason for result in fitted.results],
        "solver": fitted.model.parameters["solver"], "seconds": time.perf_counter() - began,
        "seconds_to_read": read_seconds, "seconds_to_compile": seconds_compiled(),
    }  # fmt: skip
    options.answer(answer, training.summary_of_fit(fitted, answer), 0 if fitted.met else NOT_MET)


@o.command(
    "FILE", "C_range", *o.FIT, "at", "max_fits", *o.STREAM, *o.TRAINING_DATA, *o.OUTPUT,
    tol=COARSE_TOL,
)  # fmt: skip
def path_command(options: o.Options, file: str) -> None:
    """Train on FILE for every C in a range, and prove how close to the optimum each model is.

    As few values of C are fitted as it takes. Between two of them the model is interpolated, and
    what is proved about it follows from its neighbours.

    \b
    certsvm path a9a --range 1e-3 1e2 --tol 0.001
    certsvm path a9a --range 1e-3 1e2 -o a9a.path --at 0.5 --at 2

    Exit codes: 0 the accuracy is proved for every C; 3 it is not (what is proved is written); 2 bad
    usage or input.
    """  # noqa: D301
    from certsvm.cli import training
    from certsvm.fitting.fit_model import model_of, witnessed
    from certsvm.fitting.path import trace_path

    o.check_together({}, {"at": "out", "witness": "out"})
    (low, high), output = options.C_range, options.out
    settings = training.settings_of(options, low, keep_alpha=options.witness)
    if outside := [C for C in options.at if not low <= C <= high]:
        raise click.UsageError(f"--at {outside[0]} is outside the range")
    if output is not None:
        os.makedirs(output, exist_ok=True)
        # At which C there will be models is not known yet.
        old = glob.glob(os.path.join(glob.escape(output), "C=*.model*"))
        for model in [os.path.join(output, "C=.model"), *old]:
            require_outputs([file], model=model.removesuffix(".witness"))
    began, written = time.perf_counter(), []
    with training.opened_source(file, options, settings) as (source, settings):
        with live_lines(quiet=options.silent) as show:
            trace = trace_path(
                source, settings, options.C_range, max_fits=options.max_fits,
                callback=lambda path: show(
                    "path", f"{path.n_fits} fits, proved up to C = {path.proved_up_to:.4g}"
                ),
            )  # fmt: skip
        stop_before_first([result for knot in trace.knots for result in knot.results])
        fitted = {C for C in options.at if trace.Cs[0] <= C <= trace.Cs[-1]}
        for C in sorted({*trace.Cs, *fitted}) if output is not None else ():
            results, at_C = trace.at(C, source), settings.at(C)
            if options.witness:
                problems = [source.problem(i, at_C.objective) for i in range(len(results))]
                results = list(map(witnessed, range(len(results)), problems, results))
            written.append(os.path.join(str(output), f"C={C!r}.model"))
            model_of(source, at_C, results).save(written[-1])
    seconds = time.perf_counter() - began
    text = f"{training.summary_of_path(trace)}; {len(trace.knots)} fits in {seconds:.1f} s"
    text += f"\n{len(written)} models in {output}" if written else ""
    passes = [max(result.passes for result in knot.results) for knot in trace.knots]
    gaps = [knot.gap for knot in trace.knots]
    rows = zip(trace.Cs, gaps, [*trace.gaps, None], passes, strict=True)
    names = ("C", "proved_gap", "gap_up_to_next", "passes")
    fits = [dict(zip(names, row, strict=True)) for row in rows]
    answer = facts(trace, "met tol proved_up_to worst_gap") | {"range": list(trace.C_range)}
    answer |= {"fits": fits, "models": written, "seconds": seconds}
    options.answer(answer, text, 0 if trace.met else NOT_MET)


@o.command(
    "FILE", "C_range", *o.FIT, "certify", "values", "folds", "max_fits", "out", "plot",
    *o.TRAINING_DATA, *o.OUTPUT, max_fits=None,
)  # fmt: skip
def select_command(options: o.Options, file: str) -> None:
    """Choose C for FILE by cross-validation, if asked to with a proof over a whole range.

    \b
    certsvm select a9a --range 1e-3 1e2
    certsvm select a9a --range 1e-3 1e2 --certify 0.02 -o a9a.model --plot a9a.png

    Exit codes: 0 C is chosen, and proved if --certify asks for it; 3 the proof was not reached, or
    the accuracy of the model was not (both are written all the same); 2 bad usage or input.
    """  # noqa: D301
    from certsvm.cli import training
    from certsvm.fitting.cross_validation import values_in
    from certsvm.fitting.fit_model import fit_model

    o.check_together({"certify": ["free_intercept"]}, {"max_fits": "certify"})
    settings = training.settings_of(options, options.C_range[0])
    output, certify = options.out, options.certify
    require_outputs([file], model=output, picture=options.plot)
    began, fitted = time.perf_counter(), None
    with training.opened_source(file, options, settings) as (source, settings):
        Cs = values_in(options.C_range, options.values, certify=certify is not None)
        search = training.cross_validated(
            source, settings, Cs, options, certify=certify, max_fits=options.max_fits
        )
        if output is not None:
            # A signal ended the search; the model takes another one.
            assert settings.stop is not None
            settings.stop.clear()
            fitted = fit_model(source, replace(settings.at(search.best.C), max_time=None))
            stop_before_first(fitted.results)
            fitted.model.save(output)
        if options.plot is not None:
            search.curve.plot(options.plot)
    seconds = time.perf_counter() - began
    text = training.summary_of_choice(search, certify, seconds)
    met = certify is None or search.certified
    tried = [facts(search.values[C], "C error scores") for C in sorted(search.values)]
    answer = facts(search.best, "C error") | {"values": tried, "seconds": seconds}
    if certify is not None:
        curve = facts(search.curve, "edges lower upper").items()
        answer |= facts(search, "certified reason") | {"certify": certify}
        answer |= {"error_bound": search.bound, "curve": {name: a.tolist() for name, a in curve}}
    if fitted is not None:
        met &= fitted.met
        certificates = certificates_as_json(fitted.model)
        answer |= {"model": output, "met": fitted.met, "certificates": certificates}
        text = "\n".join([text, *(f"{output}: {c}" for c in fitted.model.certificates)])
    options.answer(answer, text, 0 if met else NOT_MET)


@o.command(
    "FILE", "solvers", "positive", "C", *o.PROBLEM, "max_time", *o.TRAINING_DATA, "plot",
    *o.OUTPUT, max_time=60.0,
)  # fmt: skip
def compare_command(options: o.Options, file: str) -> None:
    """Run several solvers on FILE, with two classes, or with one against all others.

    Prints a table. All accuracies are relative to the best lower bound of all solvers.

    \b
    certsvm compare a9a --solvers auto,newton,dcd,sgd-s,pegasos -c 1
    certsvm compare digits.csv --positive 7
    """  # noqa: D301
    import numpy as np

    from certsvm.cli import training
    from certsvm.fitting.comparison import compare

    tol = training.settings_of(options, options.C).tol
    require_outputs([file], picture=options.plot)
    (X, y, weights), _ = load(file, options)
    if options.positive is not None:
        y = y == training.known_label(options.positive, np.unique(y), "--positive")
    with stoppable() as stop, training_progress(quiet=options.silent) as observer:
        result = compare(
            X, y, solvers=options.solvers and options.solvers.replace(" ", "").split(","),
            fit_intercept=options.bias > 0, intercept_scaling=options.intercept_scaling or 1.0,
            penalize_intercept=not options.free_intercept, sample_weight=weights,
            random_state=options.seed, observers=[observer], stop=stop, tol=tol,
            **facts(options, "C loss max_iter max_time"),
        )  # fmt: skip
        if options.plot is not None:
            result.plot(options.plot)
    options.answer(facts(result, "table dual primal"), result)
