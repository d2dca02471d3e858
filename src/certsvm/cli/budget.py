"""Whether training from a stream fits in a given amount of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.fitting.settings import Settings
    from certsvm.fitting.sources import StreamSource

# Numbers of blocks in memory (with arrays of their rows), of vectors and of square matrices.
_BLOCKS, _VECTORS, _MATRICES = 3, 30, 3
_TRIAL_ROWS = 8
# SGD counts margin errors by row, and keeps old counts, for a witness with a number per row.
_BYTES_PER_ROW = 120


def require_memory(memory: int, source: StreamSource, settings: Settings, *, witness: bool) -> None:
    """Raise if the process could need more than ``memory`` bytes."""
    from certsvm.data.memory import resident
    from certsvm.fitting.witnesses import needs_alpha

    squares = _warm_up(source, settings)
    stream = source.stream
    dimension = stream.n_columns + 1
    needed = _BLOCKS * stream.largest_block + 8 * _VECTORS * dimension
    solver = source.solver(settings.solver)
    if witness and needs_alpha(solver, source.problem_type, dimension):
        needed += _BYTES_PER_ROW * stream.n_rows
    if squares:
        # Each thread sums into a matrix of its own.
        needed += 8 * (_MATRICES + settings.n_jobs) * dimension**2
    total = resident() + needed
    if total > memory:
        raise BadInput(
            f"{memory / 1e6:.0f} MB of memory are not enough to train from this file: it takes "
            f"about {total / 1e6:.0f} MB, {needed / 1e6:.0f} of them for the data (blocks of "
            f"{stream.largest_block / 1e6:.1f} MB, {stream.n_columns} columns). Give more, or make "
            "smaller blocks: certsvm convert --block-size"
        )


def _warm_up(source: StreamSource, settings: Settings) -> bool:
    """Train on a few rows, so that the compiler's memory is counted.

    Returns whether the solver keeps square matrices.
    """
    import numpy as np

    from certsvm.data.streams import BlockStream
    from certsvm.fitting.fit_classes import fit_classes
    from certsvm.fitting.sources import StreamSource

    X = next(iter(source.stream.source()))[0]
    # The same row several times, if there is only one.
    X, y = X[np.arange(_TRIAL_ROWS) % X.shape[0]], np.arange(_TRIAL_ROWS) % 2
    sample = BlockStream(lambda: [(X, y)], intercept_scaling=source.intercept_scaling)
    trial = replace(settings, max_iter=3, tol=0.0, C=1.0, checkpoint=None)
    (result,) = fit_classes(StreamSource(sample), trial)
    return result.solver == "smoothed-newton"
