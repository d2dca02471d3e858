"""Whether training from a stream fits in the memory that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.data.streams import BlockStream
    from certsvm.fitting.fit import Settings

# Blocks, and what goes with their rows; vectors as long as there are columns; square matrices.
_BLOCKS, _VECTORS, _MATRICES = 3, 30, 3
_TRIAL_ROWS = 8
# For a witness with a number for each row, SGD counts margin errors by row, and keeps old counts.
_BYTES_PER_ROW = 120


def require_memory(memory: int, stream: BlockStream, settings: Settings) -> None:
    """Raise if training could take more than ``memory`` bytes in all."""
    from certsvm.data.memory import resident
    from certsvm.fitting.fit import keeps_alpha

    squares = _warm_up(stream, settings)
    dimension = stream.n_columns + 1
    needed = _BLOCKS * stream.largest_block + 8 * _VECTORS * dimension
    if keeps_alpha(settings, dimension, streamed=True):
        needed += _BYTES_PER_ROW * stream.n_rows
    if squares:
        # Each thread adds up one of its own.
        needed += 8 * (_MATRICES + settings.n_jobs) * dimension**2
    total = resident() + needed
    if total > memory:
        raise BadInput(
            f"{memory / 1e6:.0f} MB of memory are not enough to train from this file: it takes "
            f"about {total / 1e6:.0f} MB, {needed / 1e6:.0f} of them for the data (blocks of "
            f"{stream.largest_block / 1e6:.1f} MB, {stream.n_columns} columns). Give more, or make "
            "smaller blocks: certsvm convert --block-size"
        )


def _warm_up(stream: BlockStream, settings: Settings) -> bool:
    """Compile what will be used, so that the compiler's memory is counted.

    Returns whether the solver keeps square matrices.
    """
    import numpy as np

    from certsvm.data.streams import BlockStream
    from certsvm.problem.streamed import StreamedProblem
    from certsvm.solvers import make_solver
    from certsvm.training.loop import train

    X = next(iter(stream.source()))[0][:_TRIAL_ROWS]
    y = np.arange(X.shape[0]) % 2
    few = BlockStream(lambda: [(X, y)], intercept_scaling=stream.intercept_scaling)
    problem = StreamedProblem(few, few.classes.size - 1)
    result = train(problem, make_solver(settings.solver), max_iter=3, tol=0.0, seed=0)
    return result.solver == "smoothed-newton"
