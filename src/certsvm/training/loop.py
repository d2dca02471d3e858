"""The training loop, the same for all solvers."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import warnings
from collections.abc import Sequence

import numpy as np

from certsvm.parallel import Team
from certsvm.pass_limits import PassCutError, pass_limits
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.memory_limits import require_memory_for
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import SOLVERS, Auto, SmoothedNewton, make_solver
from certsvm.solvers.base import Options, RunLostError, Solver, Start
from certsvm.training.checkpoints import Checkpoint, CheckpointError, CheckpointWarning, Saved
from certsvm.training.result import (
    INTERRUPTED,
    LOST,
    OUT_OF_PASSES,
    OUT_OF_TIME,
    SOLVER_FINISHED,
    STOPPED,
    TARGET_MET,
    Callback,
    Result,
    is_true,
)
from certsvm.training.scales import warn_of_scales
from certsvm.training.trainer import Trainer


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
    keep_vector: bool = False,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
    stop: threading.Event | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Train until the relative gap is proved to be at most ``tol``, or a limit is reached.

    If training takes long and columns differ much in scale, a ``ScaleWarning`` says so once.

    Parameters
    ----------
    problem : Problem
        The problem to solve.
    solver : Solver
        The algorithm and its parameters.
    tol : float, default=0.01
        Relative accuracy: stop when J(w) <= (1 + tol) J_opt is proved.
    max_iter : int, default=1000
        Limit on passes over the data.
    max_time : float, default=None
        Limit in seconds. The first pass is completed in any case; others do not begin if, by the
        time of the last, they would end too late, and are cut short if they do. J is then computed
        once more.
    seed : int or SeedSequence, default=None
        Seed of the random orders. The same seed and number of threads give the same bits.
    start : Start, default=None
        Where to start; None means at zero.
    keep_alpha : bool, default=False
        Whether to return the dual point of the certificate.
    keep_vector : bool, default=False
        Whether to return sum_k alpha_k y_k of that point.
    n_jobs : int, default=1
        Number of threads, for J and for the parallel parts of some solvers. Calls of BLAS are
        limited to one thread.
    callbacks : sequence of callables
        Called after each pass with a ``Progress``; a true return value ends training.
    stop : threading.Event, default=None
        Ends training when it is set: the pass is cut short, unless it is the first.
    checkpoint : Checkpoint, default=None
        File to keep the state of training in; if it exists, training goes on from there. J and L
        are then computed anew, and ``start`` is ignored.

    Returns
    -------
    result : Result
        On KeyboardInterrupt, the result of the passes before it; if there is none, the exception
        is raised.

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
    began = time.perf_counter()
    solver, tol = make_solver(solver), float(tol)
    max_time = None if max_time is None else float(max_time)
    require_limits(tol, max_iter, max_time)
    _require_trainable(problem, solver)
    require_memory_for(problem.dimension, solver.n_vectors)
    saved = None if checkpoint is None else _load(problem, solver, checkpoint)
    if saved is not None:
        start = saved.start
    elif start is not None:
        start = start.checked(problem)
    if start is not None and start.overflows(problem):
        warnings.warn(
            "The weights to start from are so large that J overflows; training starts from zero "
            "instead.",
            stacklevel=2,
        )
        start = None
    with Team(n_jobs) as team:
        # What a checkpoint has to prove L by, if alpha is no function of w.
        to_save = checkpoint is not None and not isinstance(solver, SmoothedNewton)
        keeps = keep_alpha or (to_save and isinstance(problem, Problem))
        resumed = saved is not None and start is not None
        options = Options(_rng(seed, saved), tol, start, keeps, keep_vector, team, resumed)
        trainer = Trainer(problem, solver, options, began)
        if saved is not None:
            trainer.resume(saved)
        try:
            # The loop is in a function of its own: Python notices signals when it jumps back to
            # the head of a loop, and since 3.12 that jump is not part of a try around the loop.
            reason = _make_passes(problem, trainer, max_iter, max_time, callbacks, stop, checkpoint)
        except PassCutError:
            reason = INTERRUPTED if stop is not None and stop.is_set() else OUT_OF_TIME
        except (KeyboardInterrupt, RunLostError) as error:
            if not trainer.passes:
                raise
            reason = f"{LOST}: {error}" if isinstance(error, RunLostError) else INTERRUPTED
        if trainer.best.w is None and not reason.startswith(LOST):
            trainer.compute_primal()
        if checkpoint is not None:
            # A second Ctrl-C loses the checkpoint, not the result.
            with contextlib.suppress(KeyboardInterrupt):
                _save(trainer, checkpoint)
    # J may be infinite, or larger than J(0), for all candidates.
    trainer.best.offer_zero()
    if reason in (OUT_OF_PASSES, OUT_OF_TIME) and trainer.best.certificate().met:
        # The solver was refining beyond the target.
        reason = TARGET_MET
    return trainer.result(reason, without_alpha=keeps and not keep_alpha)


def _make_passes(
    problem: BaseProblem,
    trainer: Trainer,
    max_iter: int,
    max_time: float | None,
    callbacks: Sequence[Callback],
    stop: threading.Event | None,
    checkpoint: Checkpoint | None,
) -> str:
    """Make passes until there is a reason to stop; return the reason."""
    reason = OUT_OF_PASSES if trainer.passes >= max_iter else ""
    if trainer.passes and trainer.best.certificate().met:
        reason = TARGET_MET
    limit, duration = math.inf if max_time is None else max_time, 0.0
    while not reason:
        began = trainer.seconds
        limits: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if trainer.passes:
            # A pass that takes a little longer than the last is worth waiting for.
            limits = pass_limits(limit - began + 0.1 * (1.0 + duration), stop)
        with limits:
            epoch = trainer.run.epoch()
        # The first pass may have compiled kernels, and tells nothing about the next.
        duration = trainer.seconds - began if trainer.passes else 0.0
        out_of_time = trainer.seconds + duration >= limit
        last = out_of_time or epoch.finished or trainer.passes + 1 == max_iter
        trainer.end_pass(epoch, last=last)
        answers = [is_true(callback(trainer.progress())) for callback in callbacks]
        met = trainer.best.certificate().met
        reasons = (
            (TARGET_MET, met and not epoch.refining),
            (SOLVER_FINISHED, epoch.finished),
            (OUT_OF_TIME, out_of_time),
            (STOPPED, any(answers)),
            (INTERRUPTED, stop is not None and stop.is_set()),
            (OUT_OF_PASSES, last),
        )
        reason = next((text for text, applies in reasons if applies), "")
        if reason:
            break
        if not met:
            warn_of_scales(problem, trainer.seconds)
        if checkpoint is not None and checkpoint.due():
            _save(trainer, checkpoint)
    return reason


def _load(problem: BaseProblem, solver: Solver, checkpoint: Checkpoint) -> Saved | None:
    """What the checkpoint holds, if there is one."""
    if not (solver.starts_warm and isinstance(problem, SummableProblem)):
        raise CheckpointError(
            f"solver {solver.name!r} cannot go on from a checkpoint here: train without one"
        )
    checkpoint.prepare()
    return checkpoint.load(problem)


def _rng(seed: int | np.random.SeedSequence | None, saved: Saved | None) -> np.random.Generator:
    """Randomness; that of a resumed run is not the one that its first passes had."""
    if saved is None:
        return np.random.default_rng(seed)
    whole = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    key = (*whole.spawn_key, saved.passes)
    return np.random.default_rng(np.random.SeedSequence(whole.entropy, spawn_key=key))


def _save(trainer: Trainer, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a failure is a warning, and training continues."""
    try:
        checkpoint.save(trainer.saved())
    except OSError as error:
        warnings.warn(f"no checkpoint was written: {error}", CheckpointWarning, stacklevel=3)


def require_limits(tol: float, max_iter: int, max_time: float | None) -> None:
    """Raise a ValueError unless training with these limits makes sense."""
    if not 0 <= tol < math.inf:
        raise ValueError(f"tol must be a finite number >= 0, got {tol!r}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}")
    if max_time is not None and not 0 <= max_time < math.inf:
        raise ValueError(
            f"max_time must be a finite number of seconds >= 0, or None for no limit, got "
            f"{max_time!r}"
        )


def _require_trainable(problem: BaseProblem, solver: Solver) -> None:
    if not solver.solves(problem.loss, free_intercept=problem.free_intercept):
        needs = "penalize_intercept=True"
        if not isinstance(problem.loss, solver.losses):
            needs = f"the hinge loss, not loss={problem.loss.name!r}"
        raise ValueError(f"solver {solver.name!r} needs {needs}{_others_for(problem)}")
    if not isinstance(problem, solver.problem_type):
        hint = ""
        if isinstance(problem, StreamedProblem):
            hint = ". From a stream, use 'sgd-s', 'sgd-m' or, for few columns, 'newton'"
        raise ValueError(
            f"solver {solver.name!r} needs {solver.problem_type.where}, not {problem.where}{hint}"
        )


def _others_for(problem: BaseProblem) -> str:
    """The end of a message: which solvers there are for this problem."""
    solvers: dict[str, type[Solver]] = {Auto.name: Auto, **SOLVERS}
    able = [
        repr(name)
        for name, solver in solvers.items()
        if isinstance(problem, solver.problem_type)
        and solver.solves(problem.loss, free_intercept=problem.free_intercept)
    ]
    return f". Use {', '.join(able)}" if able else ""
