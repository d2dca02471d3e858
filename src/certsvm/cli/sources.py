"""The rows to train on, from files in memory or streamed, or on a cluster, and their classes."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import COARSE_TOL, tidy
from certsvm.cli.app import BadInput
from certsvm.cli.inputs import kind_of, load
from certsvm.cli.interrupts import stoppable
from certsvm.cli.options import Options
from certsvm.cli.progress import live_lines, watch_compilation

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
# Codes of up to four bytes for each class, which are joined at the end, and alpha before.
_PER_CODE = 28


@contextmanager
def opened_source(
    file: str, options: Options, settings: Settings, *, cluster: str | None = None,
    deadline: float = 60.0,
) -> Iterator[tuple[Source, Settings]]:  # fmt: skip
    """The rows to train on, with the weights of their classes, and settings that signals stop."""
    from certsvm.fitting.sources import MemorySource
    from certsvm.solvers import make_solver

    watch_compilation(quiet=options.silent)
    with contextlib.ExitStack() as stack:
        if cluster is not None:
            source = stack.enter_context(_on_cluster(file, options, cluster, deadline))
        else:
            # Unknown names are refused before the data are read.
            make_solver(options.solver)
            if options.device is None and _must_stream(file, options):
                source = _streamed(file, options, settings)
            else:
                with live_lines(quiet=options.silent) as begun:
                    begun("reading")
                    rows, facts = load(file, options)
                rho = options.intercept_scaling
                if options.device is None:
                    source = MemorySource(*rows, intercept_scaling=rho, **facts)
                else:
                    from certsvm.torch import TensorSource

                    X, y, weights = rows
                    where = {"intercept_scaling": rho, "device": options.device}
                    source = TensorSource(X, y, weights, **where)  # type: ignore[arg-type]
                    vars(source).update(facts)
        source.set_class_weight(_class_weights(options.weights, source.classes))
        if options.tol is None and not isinstance(source, MemorySource):
            settings = replace(settings, tol=COARSE_TOL)
        yield source, replace(settings, stop=stack.enter_context(stoppable()))


def _must_stream(file: str, options: Options) -> bool:
    """Whether to stream the file; raises if that is necessary and impossible."""
    from certsvm.files.memory import left_of
    from certsvm.resources import physical_memory

    kind = kind_of(file)
    if kind != "blocks" and options.stream:
        raise BadInput(f"--stream needs a file made by `certsvm convert`, which {file} is not")
    limit = int(_SHARE_OF_MEMORY * physical_memory()) if options.memory is None else options.memory
    exceeds = _in_memory(file, kind) > limit
    if kind != "blocks" and exceeds and options.memory is not None:
        needs = f"{file} may need more than {limit / 1e6:.0f} MB in memory"
        if kind == "embeddings":
            raise BadInput(f"{needs}: leave --memory out, or read blocks by fit_stream in Python")
        # With less, it cannot be converted either.
        left_of(limit)
        output = shlex.quote(os.path.basename(file) + ".arrow")
        raise BadInput(
            f"{needs}. Convert it first: certsvm convert {shlex.quote(file)} {output} "
            f"--memory {limit // 10**6}M"
        )
    return kind == "blocks" and (options.stream or exceeds)


def _in_memory(path: str, kind: str) -> float:
    """Bytes that training on a file in memory might need, from above.

    They are infinite for pipes and compressed files, of which that is not known.
    """
    from certsvm.files.compressed import compression_of

    if not os.path.isfile(path):
        return math.inf
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"PAR1") or compression_of(start) is not None:
        return math.inf
    return _WITHOUT_DATA + _PER_BYTE[kind] * os.path.getsize(path)


def _streamed(file: str, options: Options, settings: Settings) -> StreamSource:
    from certsvm.files.block_file import BlockFile
    from certsvm.files.streams import BlockStream
    from certsvm.fitting.sources import StreamSource

    options.reading("blocks")
    with live_lines(quiet=options.silent) as begun:
        show = begun("looking through the data")
        stream = BlockStream(
            BlockFile(file), intercept_scaling=options.intercept_scaling,
            on_block=lambda n: show(f"{n:,} rows read"),
        )  # fmt: skip
    source = StreamSource(stream)
    if options.memory is not None:
        stream.cache_bytes = _left_by_training(
            options.memory, source, settings, witness=bool(options.witness)
        )
    return source


def _left_by_training(
    memory: int, source: StreamSource, settings: Settings, *, witness: bool
) -> int:
    """The bytes that training from blocks leaves for a cache of rows; raises if it needs more."""
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
        needed += witness * _PER_CODE * stream.n_rows * len(source.labels)
    elif witness:
        needed += _PER_ROW_OF_WITNESS * stream.n_rows
    if needed > memory:
        raise BadInput(
            f"{memory / 1e6:.0f} MB of memory are not enough to train from this file, which takes "
            f"about {needed / 1e6:.0f} MB: blocks of up to {stream.largest_block / 1e6:.1f} MB, "
            f"{d} columns, and the libraries. Make smaller blocks (certsvm convert --block-size) "
            "or, with many columns, use --solver block-dcd."
        )
    return memory - needed


@contextmanager
def _on_cluster(file: str, options: Options, address: str, deadline: float) -> Iterator[Source]:
    """The rows of a block file, or of a folder of block files, that all workers can read."""
    from distributed import Client

    from certsvm.dask import ClusterLostError, ClusterSource
    from certsvm.dask.cluster import Cluster

    options.reading("blocks")
    where: dict[str, Any] = {"address": address, "timeout": deadline}
    if address.startswith("local:"):
        number = address.removeprefix("local:")
        if not (number.isdigit() and int(number) > 0):
            raise BadInput(f"--dask {address}: write local:N, with N processes")
        # Any free port; without an address, a port in use is warned of.
        where = {"n_workers": int(number), "threads_per_worker": 1, "silence_logs": 50}
        where |= {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    try:
        client = Client(**where)
    except (OSError, ValueError) as error:
        raise BadInput(f"--dask {address}: no scheduler answers there ({error})") from None
    try:
        with client:
            cluster = Cluster(client, deadline)
            yield ClusterSource(cluster, file, intercept_scaling=options.intercept_scaling)
    except ClusterLostError as error:
        raise BadInput(f"the cluster is lost, before anything was proved: {error}") from None


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
        raise BadInput("cross-validation needs the rows in memory, and there is too little")
    folds = stratified_folds(source, n_folds, settings.seed or 0)
    with live_lines(quiet=quiet) as begun:
        show = begun("cross-validation")
        options["callback"] = lambda search: show(str(search))
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
            raise BadInput(f"--class-weight {text}: {how}") from None
        factors[known_label(name, classes, f"--class-weight {text}")] = weight
    return factors or None


def known_label(name: str, classes: NDArray[Any], option: str) -> Any:
    """The class that is written so; raises if there is none."""
    from certsvm.files.model import listing

    known = {tidy(label): label for label in classes.tolist()}
    name = tidy(name)
    if classes.dtype.kind in "fiub":
        with contextlib.suppress(ValueError):
            name = tidy(float(name))
    if name not in known:
        raise BadInput(f"{option}: there is no class {name}; there are {listing(sorted(known))}")
    return known[name]
