"""Whether training from a stream fits in a given amount of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.fitting.sources import StreamSource
    from certsvm.training.settings import Settings

_TRIAL_ROWS = 8
# SGD counts margin errors by row, and keeps old counts, for a witness with a number per row.
_BYTES_PER_ROW = 120
# What training on a few rows does not show: history, buffers of files, rarer kernels.
_SPARE = 16_000_000
# Matrices that matter in comparison with the rest.
_LARGE_MATRICES = 20_000_000


def require_memory(memory: int, source: StreamSource, settings: Settings, *, witness: bool) -> None:
    """Raise if the process could need more than ``memory`` bytes.

    Training on a few rows shows what all but the rows takes: libraries, compiler, vectors and
    matrices. Blocks come on top.
    """
    from certsvm.files.memory import BLOCKS_AT_ONCE, resident
    from certsvm.fitting.fit_model import needs_alpha
    from certsvm.kernels.losses import HINGE

    squares = _warm_up(source, settings)
    stream, objective = source.stream, settings.objective
    blocks = BLOCKS_AT_ONCE * stream.largest_block
    needed = resident() + blocks + _SPARE
    solver = source.solver(settings.solver, objective)
    if witness and needs_alpha(solver, source, objective):
        needed += _BYTES_PER_ROW * stream.n_rows
    matrices = 8 * source.dimension**2 if squares else 0
    needed += matrices * _further_matrices(source, settings.n_jobs)
    if needed > memory:
        advice = "Give more, or make smaller blocks: certsvm convert --block-size."
        if matrices > _LARGE_MATRICES:
            advice = "Give more, or train with --solver sgd-s, which needs no matrices."
            if objective.loss != HINGE or not objective.penalize_intercept:
                advice = "Give more: for this objective there is Newton's method only."
        raise BadInput(
            f"{memory / 1e6:.0f} MB of memory are not enough to train from this file: it takes "
            f"about {needed / 1e6:.0f} MB, {blocks / 1e6:.0f} of them for blocks of up to "
            f"{stream.largest_block / 1e6:.1f} MB, the others for libraries and {stream.n_columns} "
            f"columns. {advice}"
        )


def _further_matrices(source: StreamSource, n_jobs: int) -> int:
    """How many matrices a block takes more than a few rows do."""
    from certsvm.solvers.second_order.directions import gram_matrices

    stream = source.stream
    # Blocks are of about the same size.
    n_rows = 2 * stream.n_rows // stream.n_blocks
    n_stored = n_rows * stream.n_stored // stream.n_rows
    few = _TRIAL_ROWS * stream.n_stored // stream.n_rows
    counts = (gram_matrices(n_rows, n_stored, source.dimension, n_jobs),
              gram_matrices(_TRIAL_ROWS, few, source.dimension, n_jobs))  # fmt: skip
    return max(0, counts[0] - counts[1])


def _warm_up(source: StreamSource, settings: Settings) -> bool:
    """Train on a few rows, so that the compiler's memory is counted.

    Returns whether the solver keeps square matrices.
    """
    import numpy as np

    from certsvm.files.streams import BlockStream
    from certsvm.fitting.fit_classes import fit_classes
    from certsvm.fitting.sources import StreamSource

    X = next(iter(source.stream.source()))[0]
    # The same row several times, if there is only one.
    X, y = X[np.arange(_TRIAL_ROWS) % X.shape[0]], np.arange(_TRIAL_ROWS) % 2
    sample = BlockStream(lambda: [(X, y)], intercept_scaling=source.intercept_scaling)
    trial = replace(settings.at(1.0), max_iter=3, tol=0.0, checkpoint=None)
    (result,) = fit_classes(StreamSource(sample), trial)
    return result.solver == "smoothed-newton"
