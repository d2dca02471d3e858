"""The rows to train on, from files in memory or streamed, or on a cluster, and their classes."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certsvm import files
from certsvm.certificates.certificate import COARSE_TOL, tidy
from certsvm.cli.files import kind_of, load
from certsvm.cli.interrupts import stoppable
from certsvm.cli.options import Options
from certsvm.cli.progress import live_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.sources import ClassWeight, Source, StreamSource
    from certsvm.training.settings import Settings

# Training may use this share of the machine's memory before data are streamed by default.
_SHARE_OF_MEMORY = 0.7
# Memory of interpreter, libraries and compiler.
_WITHOUT_DATA = 300_000_000
# Of training in memory, per byte of a file: the rows twice, and arrays for them. A byte of text may
# become three bytes of rows, and a byte that is compressed any number.
_PER_BYTE = {"blocks": 3, "text": 7, "table": 7, "embeddings": 5}
# SGD counts margin errors by row, and keeps old counts, for a witness with a number per row; other
# solvers need less.
_PER_ROW_OF_WITNESS = 120
# Codes of up to four bytes for each class, which are joined at the end.
_PER_CODE = 12


@contextmanager
def opened_source(
    file: str, options: Options, settings: Settings, *, cluster: str | None = None,
    deadline: float = 60.0,
) -> Iterator[tuple[Source, Settings]]:  # fmt: skip
    """The rows to train on, with the weights of their classes, and settings that signals stop."""
    from certsvm.fitting.sources import MemorySource
    from certsvm.solvers import make_solver

    rho = options.intercept_scaling
    if cluster is None:
        # Unknown names are refused before the data are read.
        make_solver(options.solver)
    with contextlib.ExitStack() as stack:
        source: Source
        if cluster is not None:
            source = stack.enter_context(_on_cluster(file, options, cluster, deadline))
        elif options.device is None and _must_stream(file, options):
            source = _streamed(file, options, settings)
        else:
            with live_lines(quiet=options.silent) as show:
                show("reading", file)
                (X, y, weights), facts = load(file, options)
            if options.device is None:
                source = MemorySource(X, y, weights, intercept_scaling=rho, **facts)
            else:
                from certsvm.torch import TensorSource

                source = TensorSource(X, y, weights, intercept_scaling=rho, device=options.device)
                vars(source).update(facts)
        source.set_class_weight(_class_weights(options.weights, source.classes))
        if options.tol is None and not isinstance(source, MemorySource):
            settings = replace(settings, tol=COARSE_TOL)
        yield source, replace(settings, stop=stack.enter_context(stoppable()))


def _must_stream(file: str, options: Options) -> bool:
    """Whether to stream the file; raises if that is necessary and impossible."""
    from certsvm.files.compressed import compression_of
    from certsvm.resources import physical_memory

    kind, start = kind_of(file), b""
    if kind != "blocks" and options.stream:
        raise ValueError(f"--stream needs a file made by `certsvm convert`, which {file} is not")
    if is_file := os.path.isfile(file):
        with open(file, "rb") as opened:
            start = opened.read(8)
    # What pipes and compressed files become is not known.
    needed = math.inf
    if is_file and not start.startswith(b"PAR1") and compression_of(start) is None:
        needed = _WITHOUT_DATA + _PER_BYTE[kind] * os.path.getsize(file)
    limit = _SHARE_OF_MEMORY * physical_memory() if options.memory is None else options.memory
    if kind == "blocks":
        return options.stream or needed > limit
    if needed > limit and options.memory is not None:
        output = shlex.quote(os.path.basename(file) + ".arrow")
        how = f"Convert it first: certsvm convert {shlex.quote(file)} {output} --memory {limit}"
        if kind == "embeddings":
            how = "Leave --memory out, or read blocks by fit_stream in Python"
        raise ValueError(f"{file} may need more than {limit / 1e6:.0f} MB in memory. {how}")
    return False


def _streamed(file: str, options: Options, settings: Settings) -> StreamSource:
    from certsvm.files.streams import BlockStream
    from certsvm.fitting.sources import StreamSource

    options.reading("blocks")
    with live_lines(quiet=options.silent) as show:
        stream = BlockStream(
            files.BlockFile(file), intercept_scaling=options.intercept_scaling,
            on_block=lambda n: show("looking through the data", f"{n:,} rows read"),
        )  # fmt: skip
    source = StreamSource(stream)
    if options.memory is not None:
        needed = _needed_to_train(source, settings, witness=bool(options.witness))
        if needed > options.memory:
            raise ValueError(
                f"{options.memory / 1e6:.0f} MB of memory are not enough to train from this file, "
                f"which takes about {needed / 1e6:.0f} MB: make smaller blocks (certsvm convert "
                "--block-size) or, with many columns, use --solver block-dcd"
            )
        # The rest is for a cache of rows.
        stream.cache_bytes = options.memory - needed
    return source


def _needed_to_train(source: StreamSource, settings: Settings, *, witness: bool) -> int:
    """The bytes that training from blocks needs, without a cache of rows."""
    from certsvm.files.memory import BLOCKS_AT_ONCE
    from certsvm.solvers import Newton, SmoothedNewton
    from certsvm.solvers.directions import gram_matrices

    stream, d = source.stream, source.dimension
    solver = source.solver(settings.solver, settings.objective)
    needed = _WITHOUT_DATA + BLOCKS_AT_ONCE * stream.largest_block
    needed += 8 * d * (solver.n_vectors + len(source.labels))
    if isinstance(solver, Newton | SmoothedNewton):
        # The matrices of the threads, their sum, and its factor. Blocks are of about the same size.
        n_rows = 2 * stream.n_rows // stream.n_blocks
        n_stored = n_rows * stream.n_stored // stream.n_rows
        needed += 8 * d * d * (2 + gram_matrices(n_rows, n_stored, d, settings.n_jobs))
        per_row = _PER_CODE * len(source.labels)
    else:
        per_row = _PER_ROW_OF_WITNESS
    return needed + witness * per_row * stream.n_rows


@contextmanager
def _on_cluster(file: str, options: Options, address: str, deadline: float) -> Iterator[Source]:
    """The rows of a block file, or of a folder of block files, that all workers can read."""
    from distributed import Client

    from certsvm.dask import ClusterLostError, ClusterSource
    from certsvm.dask.cluster import Cluster

    options.reading("blocks")
    where: dict[str, Any] = {"address": address, "timeout": deadline}
    if local := re.fullmatch(r"local:([1-9]\d*)", address):
        # Any free port; without an address, a port in use is warned of.
        where = {"n_workers": int(local[1]), "threads_per_worker": 1, "silence_logs": 50}
        where |= {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    try:
        client = Client(**where)
    except (OSError, ValueError) as error:
        reason = f"no scheduler answers there, and it is not local:N ({error})"
        raise ValueError(f"--dask {address}: {reason}") from None
    try:
        with client:
            cluster = Cluster(client, deadline)
            yield ClusterSource(cluster, file, intercept_scaling=options.intercept_scaling)
    except ClusterLostError as error:
        raise ValueError(f"the cluster is lost, before anything was proved: {error}") from None


def cross_validated(
    source: Source, settings: Settings, Cs: Sequence[float], n_folds: int, *, quiet: bool,
    **options: Any,
) -> CrossValidation:  # fmt: skip
    """The search over values of C; ``options`` are those of ``CrossValidation``.

    The weights of rows count in training and in the error, those of classes in training only.
    """
    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.folds import stratified_folds
    from certsvm.fitting.sources import MemorySource

    if not isinstance(source, MemorySource):
        raise ValueError("cross-validation needs the rows in memory, and there is too little")
    folds = stratified_folds(source, n_folds, settings.seed or 0)
    with live_lines(quiet=quiet) as show:
        options["callback"] = lambda search: show("cross-validation", str(search))
        return CrossValidation(folds, settings, **options).run(Cs)


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
    from certsvm.files.model import listing

    known = {tidy(label): label for label in classes.tolist()}
    if classes.dtype.kind in "fiub":
        with contextlib.suppress(ValueError):
            name = tidy(float(name))
    if name not in known:
        raise ValueError(f"{option}: there is no class {name}; there are {listing(sorted(known))}")
    return known[name]
