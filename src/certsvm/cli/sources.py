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
from certsvm.cli.app import BadInput, say
from certsvm.cli.compilation import watch_compilation
from certsvm.cli.inputs import kind_of, load
from certsvm.cli.interrupts import stoppable
from certsvm.cli.options import Options
from certsvm.cli.progress import live_line

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
_PER_BYTE = {"blocks": 3, "text": 7, "table": 7}
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
    watch_compilation(quiet=options.silent)
    with contextlib.ExitStack() as stack:
        if cluster is not None:
            options.reading("blocks")
            source = stack.enter_context(_on_cluster(file, rho, cluster, deadline))
        else:
            # Unknown names are refused before the data are read.
            make_solver(options.solver)
            if _must_stream(file, options):
                source = _streamed(file, options, settings)
            else:
                with live_line("reading", quiet=options.silent):
                    rows, facts = load(file, options)
                source = MemorySource(*rows, intercept_scaling=rho, **facts)
        source.set_class_weight(parse_class_weights(options.weights, source.classes))
        if options.tol is None and not isinstance(source, MemorySource):
            settings = replace(settings, tol=COARSE_TOL)
        yield source, replace(settings, stop=stack.enter_context(stoppable()))


def _must_stream(file: str, options: Options) -> bool:
    """Whether to stream the file; raises if that is necessary and impossible."""
    from certsvm.files.memory import left_of
    from certsvm.problem.memory_limits import physical_memory

    kind, limit = kind_of(file), options.memory
    share, needed = int(_SHARE_OF_MEMORY * physical_memory()), _in_memory(file, kind)
    if kind == "blocks":
        return options.stream or needed > (share if limit is None else limit)
    if options.stream:
        raise BadInput(f"--stream needs a file made by `certsvm convert`, which {file} is not")
    if limit is None and share < needed < math.inf:
        # The estimate is from above, and there may be swap.
        say(f"{file} may not fit in memory; `certsvm convert` makes a file that is streamed")
    if limit is not None and needed > limit:
        # With less, it cannot be converted either.
        left_of(limit)
        raise BadInput(
            f"{file} cannot be streamed, and may need more than {limit / 1e6:.0f} MB in memory. "
            f"Convert it first: certsvm convert {shlex.quote(file)} "
            f"{shlex.quote(os.path.basename(file) + '.arrow')} --memory {limit // 10**6}M"
        )
    return False


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
    with live_line("looking through the data", quiet=options.silent) as show:
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
    from certsvm.solvers.second_order.directions import gram_matrices

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
            f"{memory / 1e6:.0f} MB of memory are not enough to train from this file: blocks of up "
            f"to {stream.largest_block / 1e6:.1f} MB, {d} columns and the libraries take about "
            f"{needed / 1e6:.0f} MB. Give more, make smaller blocks (certsvm convert "
            "--block-size), or, if there are many columns, use --solver block-dcd, which needs no "
            "matrices."
        )
    return memory - needed


@contextmanager
def _on_cluster(
    path: str, intercept_scaling: float, address: str, deadline: float
) -> Iterator[Source]:
    """The rows of a block file, or of a folder of block files, that all workers can read."""
    from distributed import Client

    from certsvm.dask import ClusterLostError, ClusterSource
    from certsvm.dask.cluster import Cluster

    where: dict[str, Any] = {"address": address, "timeout": deadline}
    kind, _, number = address.partition(":")
    if kind == "local":
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
            yield ClusterSource(cluster, path, intercept_scaling=intercept_scaling)
    except ClusterLostError as error:
        raise BadInput(f"the cluster is lost, before anything was proved: {error}") from None


def cross_validated(
    source: Source, settings: Settings, Cs: Sequence[float], n_folds: int, *, quiet: bool,
    **options: Any,
) -> CrossValidation:  # fmt: skip
    """The search over values of C; ``options`` are those of ``CrossValidation``.

    The weights of rows count in training and in the error, those of classes in training only.
    """
    from certsvm.fitting.cross_validation import CrossValidation, stratified_folds
    from certsvm.fitting.sources import MemorySource

    if not isinstance(source, MemorySource):
        raise BadInput("cross-validation needs the rows in memory, and there is too little")
    folds = stratified_folds(source, n_folds, settings.seed or 0)
    with live_line("cross-validation", quiet=quiet, elsewhere=True) as show:
        options["callback"] = lambda search: show(str(search))
        return CrossValidation(folds, settings, **options).run(Cs)


def parse_class_weights(texts: Sequence[str], classes: NDArray[Any]) -> ClassWeight:
    """Class weights from ``LABEL=W`` each, or ``balanced``; labels get the type of the classes."""
    if list(texts) == ["balanced"]:
        return "balanced"
    factors: dict[Any, float] = {}
    for text in texts:
        name, _, factor = text.rpartition("=")
        try:
            weight = float(factor)
        except ValueError:
            raise BadInput(
                f'--class-weight {text}: write LABEL=W, such as 1=5, or "balanced" alone'
            ) from None
        factors[known_label(name, classes, f"--class-weight {text}")] = weight
    return factors or None


def known_label(name: str, classes: NDArray[Any], option: str) -> Any:
    """The class that is written so; raises if there is none."""
    known = {tidy(label): label for label in classes.tolist()}
    label = tidy(name)
    if classes.dtype.kind in "fiub":
        with contextlib.suppress(ValueError):
            label = tidy(float(name))
    if label not in known:
        shown = ", ".join(sorted(known)[:20])
        raise BadInput(f"{option}: there is no class {name}; there are {shown}")
    return known[label]
