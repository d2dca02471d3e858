"""The rows to train on, from files in memory or streamed, or on a cluster, and their classes."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import BadInput, say
from certsvm.cli.inputs import kind_of, load
from certsvm.cli.options import Options
from certsvm.cli.progress import live_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.dask import ClusterSource
    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.sources import ClassWeight, Source, StreamSource
    from certsvm.training.settings import Settings

# Training may use this share of the machine's memory before data are streamed by default.
_SHARE_OF_MEMORY = 0.7
# Memory of interpreter, libraries and compiler.
_WITHOUT_DATA = 300_000_000
# Of training in memory, per byte of a file: the rows twice, and arrays for them. A byte of text may
# become three bytes of rows.
_PER_BYTE, _PER_BYTE_OF_TEXT = 3, 7
# SGD counts margin errors by row, and keeps old counts, for a witness with a number per row; other
# solvers need less.
_PER_ROW_OF_WITNESS = 120
# Matrices that matter in comparison with the rest.
_LARGE_MATRICES = 20_000_000


@contextmanager
def opened_source(
    file: str, options: Options, settings: Settings, *, liblinear_weights: tuple[str, ...] = (),
    cluster: str | None = None, deadline: float = 60.0,
) -> Iterator[Source]:  # fmt: skip
    """The rows to train on, with the weights of their classes."""
    source: Source
    with contextlib.ExitStack() as stack:
        if cluster is not None:
            options.refuse_for_data()
            source = stack.enter_context(
                _cluster_source(file, cluster, deadline, options.intercept_scaling)
            )
        elif _must_stream(file, options):
            source = _streamed(file, options, settings)
        else:
            from certsvm.fitting.sources import MemorySource

            with live_line("reading", quiet=options.silent):
                rows, facts = load(file, options, settings.n_jobs)
            source = MemorySource(*rows, intercept_scaling=options.intercept_scaling, **facts)
        weights = parse_class_weights(options.weights, source.classes, liblinear_weights)
        source.set_class_weight(weights)
        yield source


def _must_stream(file: str, options: Options) -> bool:
    """Whether to stream the file; raises if that is necessary and impossible."""
    from certsvm.files.memory import left_of
    from certsvm.problem.memory_limits import physical_memory

    limit, is_blocks = options.memory, kind_of(file) == "blocks"
    if options.stream:
        if not is_blocks:
            raise BadInput(f"--stream needs a file made by `certsvm convert`, which {file} is not")
        return True
    share = int(_SHARE_OF_MEMORY * physical_memory())
    # If a limit was given, a size that is unknown is too large.
    needed = _in_memory(file, 0 if limit is None else sys.maxsize)
    fits = needed <= (share if limit is None else limit)
    if fits or is_blocks:
        return not fits
    if limit is None:
        # The estimate is from above, and there may be swap.
        say(f"{file} may not fit in memory; `certsvm convert` makes a file that is streamed")
        return False
    # With less, it cannot be converted either.
    left_of(limit)
    raise BadInput(
        f"{file} cannot be streamed, and may need more than {limit / 1e6:.0f} MB in memory. "
        f"Convert it first: certsvm convert {shlex.quote(file)} "
        f"{shlex.quote(os.path.basename(file) + '.arrow')} --memory {limit // 10**6}M"
    )


def _in_memory(path: str, unknown: int) -> int:
    """Bytes that training on a file in memory might need, from above.

    They are ``unknown`` for compressed files and pipes.
    """
    from certsvm.files.compressed import compression_of

    if path == "-" or not os.path.isfile(path):
        return unknown
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"PAR1") or compression_of(start) is not None:
        return unknown
    factor = _PER_BYTE if kind_of(path) == "blocks" else _PER_BYTE_OF_TEXT
    return _WITHOUT_DATA + factor * os.path.getsize(path)


def _streamed(file: str, options: Options, settings: Settings) -> StreamSource:
    from certsvm.files.block_file import BlockFile
    from certsvm.files.streams import BlockStream
    from certsvm.fitting.sources import StreamSource

    options.refuse_for_data()
    blocks = BlockFile(file)
    with live_line("looking through the data", quiet=options.silent) as show:
        stream = BlockStream(
            blocks, intercept_scaling=options.intercept_scaling,
            on_block=lambda n: show(f"{n:,} rows read"),
        )  # fmt: skip
    source = StreamSource(stream)
    if options.memory is not None:
        needed = require_memory(options.memory, source, settings, witness=options.witness)
        stream.cache_bytes = options.memory - needed
    return source


def require_memory(memory: int, source: StreamSource, settings: Settings, *, witness: bool) -> int:
    """The bytes that training from blocks needs, which a cache of rows adds to.

    Raises if there are more than ``memory``.
    """
    from certsvm.files.memory import BLOCKS_AT_ONCE
    from certsvm.solvers import Auto, Newton, SmoothedNewton
    from certsvm.solvers.second_order.directions import gram_matrices

    stream, objective, d = source.stream, settings.objective, source.dimension
    solver = source.solver(settings.solver, objective)
    blocks, matrices = BLOCKS_AT_ONCE * stream.largest_block, 0
    needed = _WITHOUT_DATA + blocks + 8 * d * (solver.n_vectors + len(source.labels))
    only_newton = objective.frees(source.intercept_scaling)
    if isinstance(solver, Newton | SmoothedNewton) or (isinstance(solver, Auto) and only_newton):
        # The matrices of the threads, their sum, and its factor. Blocks are of about the same size.
        n_rows = 2 * stream.n_rows // stream.n_blocks
        n_stored = n_rows * stream.n_stored // stream.n_rows
        matrices = 8 * d * d * (2 + gram_matrices(n_rows, n_stored, d, settings.n_jobs))
    elif witness:
        needed += _PER_ROW_OF_WITNESS * stream.n_rows
    needed += matrices
    if needed > memory:
        advice = ", or make smaller blocks: certsvm convert --block-size."
        if matrices > _LARGE_MATRICES:
            advice = ", or train with --solver block-dcd, which needs no matrices."
            if only_newton:
                advice = ": without a penalty on the intercept there is Newton's method only."
        raise BadInput(
            f"{memory / 1e6:.0f} MB of memory are not enough to train from this file: it takes "
            f"about {needed / 1e6:.0f} MB, {blocks / 1e6:.0f} of them for blocks of up to "
            f"{stream.largest_block / 1e6:.1f} MB, the others for libraries and {stream.n_columns} "
            f"columns. Give more{advice}"
        )
    return needed


@contextmanager
def _cluster_source(
    path: str, address: str, deadline: float, intercept_scaling: float
) -> Iterator[ClusterSource]:
    """The rows of a block file, or of a folder of block files, that all workers can read."""
    try:
        from distributed import Client

        from certsvm.dask import CertificateRefutedError, ClusterLostError, ClusterSource
        from certsvm.dask.cluster import Cluster
    except ImportError as error:
        raise BadInput(str(error)) from None
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
    with client:
        try:
            yield ClusterSource(
                Cluster(client, deadline), path, intercept_scaling=intercept_scaling
            )
        except ClusterLostError as error:
            raise BadInput(f"the cluster is lost, before anything was proved: {error}") from None
        except CertificateRefutedError as error:
            raise BadInput(str(error)) from None


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


def parse_class_weights(
    texts: Sequence[str], classes: NDArray[Any], maybe: Sequence[str] = ()
) -> ClassWeight:
    """Class weights from ``LABEL=W`` each, or ``balanced``; labels get the type of the classes.

    A class that is named in ``maybe`` may be absent, as in liblinear.
    """
    if "balanced" in texts:
        if len(texts) + len(maybe) > 1:
            raise BadInput("--class-weight balanced does not go with weights of single classes")
        return "balanced"
    factors: dict[Any, float] = {}
    for text in (*texts, *maybe):
        name, _, factor = text.rpartition("=")
        try:
            weight = float(factor)
        except ValueError:
            raise BadInput(f"--class-weight {text}: write LABEL=W, such as 1=5") from None
        try:
            factors[known_label(name, classes, f"--class-weight {text}")] = weight
        except BadInput:
            if text not in maybe:
                raise
            say(f"-w{name}: there is no class {name}, so this weight is not used")
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
