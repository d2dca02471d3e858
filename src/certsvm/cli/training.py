"""What train, path and select do: open the rows to train on, and tell what was proved.

The rows come from files in memory or streamed, or from a cluster. Commands import this when they
are called: it takes a second.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click
from numpy.typing import NDArray

from certsvm import files
from certsvm.certificates import certificate as claims
from certsvm.cli import stoppable
from certsvm.cli.files import certified, kind_of, load, problem_of
from certsvm.cli.options import Options
from certsvm.cli.progress import live_lines
from certsvm.files.memory import BLOCKS_AT_ONCE
from certsvm.files.model import listing
from certsvm.files.streams import BlockStream
from certsvm.fitting.cross_validation import CrossValidation
from certsvm.fitting.fit_model import Fit
from certsvm.fitting.folds import stratified_folds
from certsvm.fitting.path import Trace
from certsvm.fitting.sources import ClassWeight, MemorySource, Source, StreamSource
from certsvm.kernels.losses import loss_named
from certsvm.problem.base import Objective
from certsvm.resources import available_processors, physical_memory
from certsvm.solvers import Newton, SmoothedNewton, make_solver
from certsvm.solvers.directions import gram_threads
from certsvm.training.history import shown_passes
from certsvm.training.settings import Settings

# Training may use this share of the machine's memory before data are streamed by default.
_SHARE_OF_MEMORY = 0.7
# Memory of interpreter, libraries and compiler.
_WITHOUT_DATA = 330_000_000
# Of training in memory, per byte of a converted file: the rows twice, and arrays for them.
_PER_BYTE = 3
# SGD counts margin errors by row, and keeps old counts, for a witness with a number per row; other
# solvers need less.
_PER_ROW_OF_WITNESS = 120
# Codes of up to four bytes for each class, which are joined at the end, and alpha before.
_PER_CODE = 28
# So many certificates are printed; of more classes, the worst.
_MANY_LINES = 40


def settings_of(options: Options, C: float, **more: Any) -> Settings:
    """How to train; raises if options contradict each other."""
    if options.free_intercept and not options.bias > 0.0:
        raise click.UsageError("--free-intercept (-R) needs an intercept: -B 1")
    if not options.C_range[0] < options.C_range[1]:
        raise click.UsageError("--range: the first must be less than the second")
    return Settings(
        Objective(C, loss_named(options.loss), not options.free_intercept),
        tol=claims.DEFAULT_TOL if options.tol is None else options.tol, solver=options.solver,
        max_iter=options.max_iter, max_time=options.max_time, seed=options.seed,
        n_jobs=options.n_jobs or available_processors(), checkpoint=options.checkpoint,
        checkpoint_every=options.checkpoint_every, **more,
    )  # fmt: skip


@contextmanager
def opened_source(
    file: str, options: Options, settings: Settings
) -> Iterator[tuple[Source, Settings]]:
    """The rows to train on, with the weights of their classes, and settings that signals stop."""
    if options.cluster is None:
        # Unknown names are refused before the data are read.
        make_solver(options.solver)
    with contextlib.ExitStack() as stack:
        source: Source
        if options.cluster is not None:
            source = stack.enter_context(_on_cluster(file, options, options.cluster))
        elif options.device is None and _must_stream(file, options):
            source = _streamed(file, options, settings)
        else:
            with live_lines(quiet=options.silent) as show:
                show("reading", file)
                (X, y, weights), facts = load(file, options)
            rho = options.intercept_scaling
            if options.device is None:
                source = MemorySource(X, y, weights, intercept_scaling=rho, **facts)
            else:
                from certsvm.torch import TensorSource

                source = TensorSource(X, y, weights, intercept_scaling=rho, device=options.device)
                vars(source).update(facts)
        source.set_class_weight(_class_weights(options.weights, source.classes))
        if options.tol is None and not isinstance(source, MemorySource):
            settings = replace(settings, tol=claims.COARSE_TOL)
        yield source, replace(settings, stop=stack.enter_context(stoppable()))


def _must_stream(file: str, options: Options) -> bool:
    """Whether to stream the file; raises if that is necessary and impossible."""
    if kind_of(file) == "blocks":
        limit = _SHARE_OF_MEMORY * physical_memory() if options.memory is None else options.memory
        return options.stream or _WITHOUT_DATA + _PER_BYTE * os.path.getsize(file) > limit
    if options.stream or options.memory is not None:
        raise ValueError(
            "--stream and --memory need a converted file. Convert text and tables first: certsvm "
            f"convert {shlex.quote(file)} OUT.arrow. fit_stream in Python reads other blocks."
        )
    return False


def _streamed(file: str, options: Options, settings: Settings) -> StreamSource:
    """The rows of a converted file; raises if training from them needs more than the memory."""
    options.reading("blocks")
    with live_lines(quiet=options.silent) as show:
        stream = BlockStream(
            files.BlockFile(file), intercept_scaling=options.intercept_scaling,
            on_block=lambda n: show("looking through the data", f"{n:,} rows read"),
        )  # fmt: skip
    source = StreamSource(stream)
    if options.memory is None:
        return source
    d, solver = source.dimension, source.solver(settings.solver, settings.objective)
    needed = _WITHOUT_DATA + BLOCKS_AT_ONCE * stream.largest_block
    needed += 8 * d * (solver.n_vectors + len(source.labels))
    of_witness = _PER_ROW_OF_WITNESS
    if isinstance(solver, Newton | SmoothedNewton):
        n_rows = 2 * stream.n_rows // stream.n_blocks
        per_row = stream.n_stored / stream.n_rows
        # For each thread a matrix and what is added to it; their sum, and its factor.
        needed += 8 * d * d * (2 + 2 * gram_threads(n_rows, per_row, d, settings.n_jobs))
        of_witness = _PER_CODE * len(source.labels)
    needed += options.witness * of_witness * stream.n_rows
    if needed > options.memory:
        raise ValueError(
            f"{options.memory / 1e6:.0f} MB of memory are not enough to train from this file, "
            f"which takes about {needed / 1e6:.0f} MB: make smaller blocks (certsvm convert "
            "--block-size) or, with many columns, use --solver block-dcd"
        )
    # The rest is for a cache of rows.
    stream.cache_bytes = options.memory - needed
    return source


@contextmanager
def _on_cluster(file: str, options: Options, address: str) -> Iterator[Source]:
    """The rows of a block file, or of a folder of block files, that all workers can read."""
    from distributed import Client

    from certsvm.dask import ClusterLostError, ClusterSource
    from certsvm.dask.cluster import Cluster

    options.reading("blocks")
    where: dict[str, Any] = {"address": address, "timeout": options.deadline}
    if local := re.fullmatch(r"local:([1-9]\d*)", address):
        # Any free port; without an address, a port in use is warned of.
        where = {"n_workers": int(local[1]), "threads_per_worker": 1, "silence_logs": 50}
        where |= {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    try:
        client = Client(**where)
    except (OSError, ValueError) as error:
        raise ValueError(f"--dask {address}: no scheduler answers (or local:N): {error}") from None
    try:
        with client:
            cluster = Cluster(client, options.deadline)
            yield ClusterSource(cluster, file, intercept_scaling=options.intercept_scaling)
    except ClusterLostError as error:
        raise ValueError(f"the cluster is lost, before anything was proved: {error}") from None


def cross_validated(
    source: Source, settings: Settings, Cs: Sequence[float], options: Options, **more: Any
) -> CrossValidation:  # fmt: skip
    """The search over values of C; ``more`` are parameters of ``CrossValidation``.

    The weights of rows count in training and in the error, those of classes in training only.
    """
    if not isinstance(source, MemorySource):
        raise ValueError("cross-validation needs the rows in memory, and there is too little")
    folds = stratified_folds(source, options.folds or 5, settings.seed or 0)
    with live_lines(quiet=options.silent) as show:
        more["callback"] = lambda search: show("cross-validation", str(search))
        return CrossValidation(folds, settings, **more).run(Cs)


def _class_weights(texts: Sequence[str], classes: NDArray[Any]) -> ClassWeight:
    """Class weights from ``LABEL=W`` each, or ``balanced``; labels get the type of the classes."""
    if list(texts) == ["balanced"]:
        return "balanced"
    factors: dict[Any, float] = {}
    for text in texts:
        name, _, factor = text.rpartition("=")
        try:
            weight = float(factor)
        except ValueError:
            how = 'write LABEL=W, such as 1=5, or "balanced" alone'
            raise ValueError(f"--class-weight {text}: {how}") from None
        factors[known_label(name, classes, f"--class-weight {text}")] = weight
    return factors or None


def known_label(name: str, classes: NDArray[Any], option: str) -> Any:
    """The class that is written so; raises if there is none."""
    known = {claims.tidy(label): label for label in classes.tolist()}
    if classes.dtype.kind in "fiub":
        with contextlib.suppress(ValueError):
            name = claims.tidy(float(name))
    if name not in known:
        raise ValueError(f"{option}: there is no class {name}; there are {listing(sorted(known))}")
    return known[name]


def summary_of_fit(fitted: Fit, answer: dict[str, Any]) -> str:
    """What is printed after training."""
    model, lines = fitted.model, list[str]()
    shown = list(zip(certified(model), fitted.results, strict=True))
    if len(shown) > _MANY_LINES:
        met = sum(certificate.met for certificate in model.certificates)
        lines.append(f"{met} of {len(shown)} classes proved; the worst:")
        shown = [max(shown, key=lambda pair: pair[0][1].proved_gap)]
    for (label, certificate), result in shown:
        prefix = f"class {claims.tidy(label)}: " if model.n_problems > 1 else ""
        lines.append(f"{prefix}{certificate}")
        if not certificate.met:
            how = f"{shown_passes(result.passes)} of {result.solver}"
            lines.append(f"{prefix}{result.reason} after {how}")
    passes = shown_passes(model.parameters["passes"])
    how = f"{passes} of {answer['solver']}, {answer['seconds']:.1f} s"
    read, compiled = answer["seconds_to_read"], answer["seconds_to_compile"]
    how += f" ({read:.1f} s to read, {compiled:.1f} s to compile)"
    return "\n".join([*lines, f"{answer['model']}: {problem_of(model)}; {how}"])


def summary_of_path(trace: Trace) -> str:
    """What is printed after tracing a path."""
    lines = [f"{'C':>12}  {'primal':>12}  {'dual':>12}  {'gap':>10}  gap up to the next C"]
    for knot, between in zip(trace.knots, [*map(claims.percent, trace.gaps), ""], strict=True):
        worst = max((r.certificate for r in knot.results), key=lambda c: c.proved_gap)
        numbers = f"{knot.C:12.6g}  {worst.primal:12.6g}  {worst.dual:12.6g}"
        lines.append(f"{numbers}  {claims.percent(worst.proved_gap):>10}  {between}")
    (low, high), end = trace.C_range, trace.proved_up_to
    every = f"every C from {low:g} to {high:g}"
    proved = f"{every} has a model within {claims.percent(trace.worst_gap)} of its optimum, proved"
    if not trace.met:
        less = f"nor at C = {low:g}" if end < low else f"but up to C = {end:g}"
        proved = f"{claims.percent(trace.tol)} is not proved for {every}, {less}"
    return "\n".join([*lines, proved])


def summary_of_choice(search: CrossValidation, certify: float | None, seconds: float) -> str:
    """What is printed after a search for C."""
    best, lines = search.best, [f"{'C':>12}  error of cross-validation"]
    for C, value in sorted(search.values.items()):
        lines.append(f"{C:12.6g}  {100 * value.error:.7g}%{'  *' if best.C == C else ''}")
    lines.append(f"C = {best.C:g}, error {100 * best.error:.7g}%; {seconds:.1f} s")
    if certify is not None:
        points = claims.percentage_points(certify)
        verdict = f": C is within {points} of the best, proved"
        if not search.certified:
            verdict = f", proved; {points} are not proved: {search.reason}"
        lines.append(f"no C in the range has an error below {100 * search.bound:.4g} %{verdict}")
    return "\n".join(lines)
