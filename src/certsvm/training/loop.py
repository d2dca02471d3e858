"""The training loop. There is one, for all solvers."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certsvm.parallel import Team, single_threaded_blas
from certsvm.problem.base import BaseProblem
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers.base import Epoch, Options, RunLostError, Solver, Start
from certsvm.training.checkpoints import Checkpoint, CheckpointError, CheckpointWarning
from certsvm.training.result import (
    INTERRUPTED,
    LOST,
    OUT_OF_PASSES,
    OUT_OF_TIME,
    SOLVER_FINISHED,
    STOPPED,
    TARGET_MET,
    Callback,
    Progress,
    Result,
)
from certsvm.training.trainer import Trainer

__all__ = [
    "INTERRUPTED",
    "LOST",
    "OUT_OF_PASSES",
    "OUT_OF_TIME",
    "SOLVER_FINISHED",
    "STOPPED",
    "TARGET_MET",
    "Callback",
    "Progress",
    "Result",
    "train",
]


def train(
    problem: BaseProblem,
    solver: Solver,
    *,
    tol: float = 0.01,
    max_iter: int = 1000,
    max_time: float | None = None,
    seed: int | np.random.SeedSequence | None = None,
    start: Start | None = None,
    keep_alpha: bool = False,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
    stop: threading.Event | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Train until the relative gap is proved to be at most ``tol``, or a limit is reached.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    solver : Solver
        How.
    tol : float, default=0.01
        Relative accuracy: stop when J(w) <= (1 + tol) J_opt is proved.
    max_iter : int, default=1000
        Limit on passes over the data.
    max_time : float, default=None
        Limit in seconds, looked at after each pass.
    seed : int or SeedSequence, default=None
        Of the random orders. The same seed and number of threads give the same bits.
    start : Start, default=None
        Where to begin; None means at zero.
    keep_alpha : bool, default=False
        Whether to return the dual point behind the certificate.
    n_jobs : int, default=1
        Threads to work with, for J and, in some solvers, for the rest. BLAS has one: what is
        worth sharing is shared above it.
    callbacks : sequence of callables
        Called after each pass with a ``Progress``; a true answer ends training.
    stop : threading.Event, default=None
        Ends training after the pass in which it is set.
    checkpoint : Checkpoint, default=None
        Where to keep the state of training, and to go on from if there is one already. Whether it
        is of the same run is for whoever makes the checkpoint to say.

    Returns
    -------
    result : Result
        On KeyboardInterrupt, what was proved up to then; if no pass was completed, the
        exception is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from certsvm.problem.memory import Problem
    >>> from certsvm.problem.rows import Rows
    >>> from certsvm.solvers import SGDs
    >>> problem = Problem(Rows(np.array([[1.0, 1.0], [1.0, -1.0]])), labels=[1, -1], C=1.0)
    >>> result = train(problem, SGDs(), tol=0.01, seed=0)
    >>> result.reason, result.certificate.relative_gap <= 0.01
    ('target met', True)
    """
    limits = _Limits(max_iter, max_time, stop)
    began = time.perf_counter()
    _require_trainable(problem, solver, tol)
    if start is not None:
        start = start.checked(problem)
    with single_threaded_blas(), Team(n_jobs) as team:
        options = Options(np.random.default_rng(seed), tol, start, keep_alpha, team)
        trainer = _begin(problem, solver, options, checkpoint, began)
        reason = _make_passes(trainer, limits, callbacks, checkpoint)
        if trainer.best.w is None and not reason.startswith(LOST):
            trainer.checks.now()
        if checkpoint is not None and trainer.between_passes:
            # With a reason, it is over; without one, a run with other limits may go on from here.
            trainer.finished = reason if reason in (TARGET_MET, SOLVER_FINISHED) else ""
            # An impatient second Ctrl-C costs the checkpoint, not the result.
            with contextlib.suppress(KeyboardInterrupt):
                _save(trainer, checkpoint)
    if trainer.best.w is None or not solver.published:
        # Where no candidate had a finite J, or none as good as that of zero.
        trainer.best.offer_zero()
    met = trainer.best.certificate().met and not solver.published
    if reason in (OUT_OF_PASSES, OUT_OF_TIME) and met:
        # It was refining what was good enough already.
        reason = TARGET_MET
    return trainer.result(reason)


@dataclass(frozen=True)
class _Limits:
    """When to stop short of the target."""

    max_iter: int
    max_time: float | None
    stop: threading.Event | None

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}")

    def out_of_time(self, seconds: float) -> bool:
        return self.max_time is not None and seconds >= self.max_time


def _make_passes(
    trainer: Trainer,
    limits: _Limits,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint | None,
) -> str:
    """Pass after pass, until there is a reason to stop; return it."""
    reason = trainer.finished or (OUT_OF_PASSES if trainer.passes >= limits.max_iter else "")
    try:
        while not reason:
            epoch = trainer.epoch()
            out_of_time = limits.out_of_time(trainer.seconds)
            passes = trainer.passes + 1
            last = out_of_time or epoch.finished or passes == limits.max_iter
            primal = trainer.checks.after(passes, epoch, last=last)
            trainer.record(epoch, primal)
            asked_to_stop = [callback(trainer.progress()) for callback in callbacks]
            reason = (
                _reason_of_solver(trainer, epoch)
                or (OUT_OF_TIME if out_of_time else "")
                or (STOPPED if any(asked_to_stop) else "")
                or (INTERRUPTED if limits.stop is not None and limits.stop.is_set() else "")
                or (OUT_OF_PASSES if last else "")
            )
            if not reason and checkpoint is not None and checkpoint.due():
                _save(trainer, checkpoint)
    except (KeyboardInterrupt, RunLostError) as error:
        if not trainer.passes:
            raise
        lost = isinstance(error, RunLostError)
        return f"{LOST}: {error}" if lost else INTERRUPTED
    return reason


def _reason_of_solver(trainer: Trainer, epoch: Epoch) -> str:
    met = trainer.best.certificate().met and trainer.checks.current(trainer.passes)
    if met and not epoch.refining:
        return TARGET_MET
    return SOLVER_FINISHED if epoch.finished else ""


def _begin(
    problem: BaseProblem,
    solver: Solver,
    options: Options,
    checkpoint: Checkpoint | None,
    began: float,
) -> Trainer:
    """A trainer at the beginning, or where the checkpoint says."""
    if checkpoint is None:
        return Trainer(problem, solver, options, began)
    checkpoint.prepare()
    state = checkpoint.load()
    if state is not None:
        options = replace(options, start=None, resumed=True)
    trainer = Trainer(problem, solver, options, began)
    if trainer.run.STATE is None:
        raise CheckpointError(
            f"the state of solver {solver.name!r} cannot be saved here: train without a checkpoint"
        )
    if state is not None:
        try:
            trainer.load_state_dict(state)
        except ValueError as error:
            raise checkpoint.refused(error) from None
    return trainer


def _save(trainer: Trainer, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; if that fails, training is not to be lost for it."""
    try:
        checkpoint.save(trainer.state_dict())
    except OSError as error:
        warnings.warn(f"no checkpoint was written: {error}", CheckpointWarning, stacklevel=3)


def _require_trainable(problem: BaseProblem, solver: Solver, tol: float) -> None:
    if not tol >= 0:
        raise ValueError(f"tol must be a number >= 0, got {tol!r}")
    if not isinstance(problem, solver.problem_type):
        hint = ""
        if isinstance(problem, StreamedProblem):
            hint = ". From a stream, use 'sgd-s', 'sgd-m' or, for few columns, 'newton'"
        raise ValueError(
            f"solver {solver.name!r} needs {solver.problem_type.where}, not {problem.where}{hint}"
        )
