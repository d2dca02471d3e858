"""The rows to train on: from files in memory or streamed, or on a cluster."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from certsvm.cli.app import BadInput, say
from certsvm.cli.budget import require_memory
from certsvm.cli.inputs import kind_of, load, too_large
from certsvm.cli.on_cluster import cluster_source
from certsvm.cli.options import DataOptions
from certsvm.cli.progress import counting

if TYPE_CHECKING:
    from certsvm.fitting.sources import Source
    from certsvm.training.settings import Settings

# Training may use this share of the machine's memory before data are streamed by default.
_SHARE_OF_MEMORY = 0.7


@contextmanager
def opened_source(
    file: str,
    options: DataOptions,
    settings: Settings,
    rho: float,
    *,
    memory: int | None,
    stream: bool,
    witness: bool,
    quiet: bool,
    cluster: str | None = None,
    deadline: float = 60.0,
) -> Iterator[Source]:
    """The rows to train on."""
    if cluster is not None:
        options.for_blocks()
        with cluster_source(file, cluster, deadline, rho) as on_cluster:
            yield on_cluster
    elif _must_stream(file, memory, stream=stream):
        from certsvm.files.block_file import BlockFile
        from certsvm.files.streams import BlockStream
        from certsvm.fitting.sources import StreamSource

        options.for_blocks()
        blocks = BlockFile(file)
        with counting("looking through the data", quiet=quiet) as count:
            rows = BlockStream(blocks, intercept_scaling=rho, on_block=lambda n: count("read", n))
        source = StreamSource(rows)
        if memory is not None:
            require_memory(memory, source, settings, witness=witness)
        yield source
    else:
        with counting("reading", quiet=quiet):
            data = load(file, options, settings.n_jobs)
        yield data.source(rho)


def _must_stream(file: str, memory: int | None, *, stream: bool) -> bool:
    """Whether to stream the file; raises if that is necessary and impossible."""
    from certsvm.files.memory import left_of
    from certsvm.problem.memory_limits import physical_memory

    total = physical_memory()
    limit = memory
    if limit is None:
        limit = int(_SHARE_OF_MEMORY * total)
    if not (stream or too_large(file, limit, certain=memory is not None)):
        return False
    if kind_of(file) == "blocks":
        return True
    if stream:
        raise BadInput(f"--stream needs a file made by `certsvm convert`, which {file} is not")
    if memory is None:
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
