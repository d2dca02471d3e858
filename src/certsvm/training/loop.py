"""The training loop. There is one, for all solvers."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from certsvm.certificates.best import BestBounds
from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import Response
from certsvm.certificates.primal import primal_bound
from certsvm.parallel import Team, single_threaded_blas
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, RunLostError, Solver, Start
from certsvm.training.checkpoints import Checkpoint, CheckpointWarning
from certsvm.training.history import History, Record
from certsvm.training.snapshots import restore, take

TARGET_MET = "target met"
SOLVER_FINISHED = "the solver ended by its own rule"
OUT_OF_PASSES = "max_iter reached"
OUT_OF_TIME = "max_time reached"
STOPPED = "stopped by a callback"
INTERRUPTED = "interrupted"
LOST = "lost"
"""How the reason begins if the run could not go on."""


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each pass.

    Attributes
    ----------
    record : Record
        The pass.
    w : callable
        Returns the best weight vector so far: the one with the least computed J, or the
        solver's current one if no J has been computed.
    """

    record: Record
    w: Callable[[], Vector]


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Called after each pass; a true answer ends training."""


@dataclass(frozen=True)
class Result:
    """What training gives.

    Attributes
    ----------
    w : ndarray of shape (dimension,)
        The weight vector that the certificate is about.
    certificate : Certificate
        What is proved about it.
    history : History
        One record per pass.
    reason : str
        Why training ended.
    passes, epochs : int
        Passes over the data; presentations of each row.
    alpha : ndarray of shape (n_rows,) or None
        The feasible dual point behind the certificate's bound, if it was asked for.
    solver : str
        The name of the solver, or of those that "auto" used.
    response : Response or None
        What the dual point is a function of, where it is one.
    warm_start : Start or None
        Where another run may go on from, if the solver knows more than w and alpha.
    """

    w: Vector
    certificate: Certificate
    history: History
    reason: str
    passes: int
    epochs: int
    alpha: Vector | None
    solver: str
    response: Response | None = None
    warm_start: Start | None = None


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
    >>> from certsvm.problem.rows import Rows
    >>> from certsvm.solvers import SGDs
    >>> problem = Problem(Rows(np.array([[1.0, 1.0], [1.0, -1.0]])), labels=[1, -1], C=1.0)
    >>> result = train(problem, SGDs(), tol=0.01, seed=0)
    >>> result.reason, result.certificate.relative_gap <= 0.01
    ('target met', True)
    """
    if not tol >= 0:
        raise ValueError(f"tol must be a number >= 0, got {tol!r}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}")
    if not isinstance(problem, solver.problem_type):
        raise ValueError(
            f"solver {solver.name!r} needs all rows in memory. From a stream, use 'sgd-s', 'sgd-m' "
            "or, for few columns, 'newton'."
        )
    if start is not None:
        start = _checked(start, problem)
    if checkpoint is not None:
        checkpoint.prepare()
    began = time.perf_counter()
    with single_threaded_blas(), Team(n_jobs) as team:
        options = Options(np.random.default_rng(seed), tol, start, keep_alpha, team)
        around = {"problem": problem, "solver": solver, "options": options, "team": team}
        state = None if checkpoint is None else _State.resumed(checkpoint, around)
        if state is None:
            state = _State.fresh(problem, solver, options)
        run, ledger, checks, history = state.run, state.ledger, state.checks, state.history
        began -= state.seconds

        def best_w() -> Vector:
            # A copy: what a callback does to it must not reach the certified one.
            w = next(run.candidates(), None) if ledger.w is None else ledger.w
            return np.zeros(problem.dimension) if w is None else w.copy()

        reason = state.reason or OUT_OF_PASSES
        whole = True
        try:
            for passes in range(len(history) + 1, 0 if state.reason else max_iter + 1):
                whole = False
                latest = run.epoch()
                if latest.dual_estimate is None:
                    checks.dual()
                elapsed = time.perf_counter() - began
                out_of_time = max_time is not None and elapsed >= max_time
                last = out_of_time or passes == max_iter or latest.finished
                primal = checks.after(passes, latest, last=last)
                certificate = ledger.certificate()
                history.append(
                    Record(
                        seconds=time.perf_counter() - began,
                        passes=passes,
                        epochs=latest.epochs,
                        margin_errors=_or_nan(latest.margin_errors),
                        updates=_or_nan(latest.updates),
                        free=_or_nan(latest.free),
                        primal=primal,
                        primal_estimate=_or_nan(latest.primal_estimate),
                        dual=certificate.dual,
                        gap=certificate.gap,
                        relative_gap=certificate.relative_gap,
                    )
                )
                state.done, whole = latest, True
                asked_to_stop = [c(Progress(history[-1], best_w)) for c in callbacks]
                if certificate.met and checks.current(passes) and not latest.refining:
                    reason = TARGET_MET
                elif latest.finished:
                    reason = SOLVER_FINISHED
                elif out_of_time:
                    reason = OUT_OF_TIME
                elif any(asked_to_stop):
                    reason = STOPPED
                elif stop is not None and stop.is_set():
                    reason = INTERRUPTED
                else:
                    if checkpoint is not None and checkpoint.due():
                        state.seconds = time.perf_counter() - began
                        state.save(checkpoint, around)
                    continue
                break
        except KeyboardInterrupt:
            if state.done is None:
                raise
            reason = INTERRUPTED
        except RunLostError as error:
            if state.done is None:
                raise
            reason = f"{LOST}: {error}"
        if ledger.w is None and not reason.startswith(LOST):
            checks.now()
        if checkpoint is not None and whole:
            # With a reason, it is over; without one, a run with other limits may go on from here.
            state.reason = reason if reason in (TARGET_MET, SOLVER_FINISHED) else ""
            state.seconds = time.perf_counter() - began
            # An impatient second Ctrl-C costs the checkpoint, not the result.
            with contextlib.suppress(KeyboardInterrupt):
                state.save(checkpoint, around)
        if ledger.w is None or not solver.published:
            # Where no candidate had a finite J, or none as good as that of zero.
            ledger.offer_zero()
        limits = (OUT_OF_PASSES, OUT_OF_TIME)
        if reason in limits and ledger.certificate().met and not solver.published:
            # It was refining what was good enough already.
            reason = TARGET_MET
    assert state.done is not None
    assert ledger.w is not None
    return Result(
        w=ledger.w,
        certificate=ledger.certificate(),
        history=history,
        reason=reason,
        passes=len(history),
        epochs=state.done.epochs,
        alpha=ledger.dual.alpha,
        solver=run.solver_name or solver.name,
        response=ledger.dual.response,
    )


@dataclass
class _State:
    """Everything that changes during training."""

    run: Run
    ledger: BestBounds
    checks: ExactChecks
    history: History
    done: Epoch | None = None
    seconds: float = 0.0
    reason: str = ""

    @classmethod
    def fresh(cls, problem: BaseProblem, solver: Solver, options: Options) -> _State:
        """The beginning."""
        # Whoever streams takes any problem.
        run = solver.start(cast(Problem, problem), options)
        ledger = BestBounds(problem, options.target, keep_best=not solver.published)
        checks = ExactChecks(problem, solver, run, ledger, options.team)
        return cls(run, ledger, checks, History())

    @classmethod
    def resumed(cls, checkpoint: Checkpoint, around: dict[str, Any]) -> _State | None:
        """What a checkpoint kept; None if there is none."""
        snapshot = checkpoint.load()
        if snapshot is None:
            return None
        rng = around["options"].rng
        state, random = restore(snapshot, around | {"rng": rng})
        rng.bit_generator.state = random
        assert isinstance(state, _State)
        return state

    def save(self, checkpoint: Checkpoint, around: dict[str, Any]) -> None:
        """Write it to a checkpoint; if that fails, training is not to be lost for it."""
        rng = around["options"].rng
        try:
            checkpoint.save(take([self, rng.bit_generator.state], around | {"rng": rng}))
        except OSError as error:
            warnings.warn(f"no checkpoint was written: {error}", CheckpointWarning, stacklevel=3)


class ExactChecks:
    """When to compute J, and doing it.

    J costs a reading of all rows, so it is computed when it may settle the matter: when the
    guess at J, against the dual bound, is within f times the target. This is the paper's rule
    and, with ``published``, the only one. Otherwise the guess is first corrected by how far it
    was off at the last computation, and J is also computed now and then (at geometrically
    spaced passes, so that it costs little), both to keep the correction honest and to have an
    answer at hand if training is cut short.

    Some runs compute J themselves, as they need the products with all rows; theirs is taken.
    """

    _SPACING = 1.5

    def __init__(
        self, problem: BaseProblem, solver: Solver, run: Run, ledger: BestBounds, team: Team
    ) -> None:
        self._problem = problem
        self._solver = solver
        self._run = run
        self._ledger = ledger
        self._team = team
        self._correction = 1.0
        self._next_scheduled = 1
        self._computed_after = 0

    def after(self, passes: int, epoch: Epoch, *, last: bool) -> float:
        """Compute J if it is time to; return the least J found now, or NaN."""
        if self._run.computes_primal:
            point = self._run.primal()
            if point is not None:
                self._ledger.offer_primal(*point)
                self._computed_after = passes
                return point[1].value
            return self.now() if last else math.nan
        scheduled = not self._solver.published and passes >= self._next_scheduled
        if not (last or scheduled or self._may_be_met(epoch)):
            return math.nan
        if epoch.dual_estimate is not None:
            self.dual()
        primal = self.now()
        self._computed_after = passes
        self._next_scheduled = max(passes + 1, math.ceil(self._SPACING * passes))
        if epoch.primal_estimate and not self._solver.published:
            self._correction = primal / epoch.primal_estimate
        return primal

    def dual(self) -> None:
        """Take note of the solver's dual point, if it has one."""
        point = self._run.dual()
        if point is not None:
            self._ledger.offer_dual(point)

    def now(self) -> float:
        """Compute J for the solver's candidates; return the least."""
        least = math.inf
        for w in self._run.candidates():
            # A run on any other kind of problem computes J itself.
            assert isinstance(self._problem, SummableProblem)
            bound = primal_bound(self._problem, w, self._team)
            self._ledger.offer_primal(w, bound)
            least = min(least, bound.value)
        return least

    def current(self, passes: int) -> bool:
        """Whether the ledger's J may be held against its L.

        It always may, in truth; but the paper compares values of the same w only.
        """
        return not self._solver.published or self._computed_after == passes

    def _may_be_met(self, epoch: Epoch) -> bool:
        dual = max(self._ledger.dual.bound.value, epoch.dual_estimate or 0.0)
        if epoch.primal_estimate is None or dual <= 0:
            return False
        guess = self._correction * epoch.primal_estimate
        return guess / dual - 1.0 <= self._solver.f * self._ledger.target


def _checked(start: Start, problem: BaseProblem) -> Start:
    """The start in float64; kernels rely on its shapes, certificates on its type."""
    w = np.array(start.w, dtype=np.float64)
    if w.shape != (problem.dimension,) or not np.isfinite(w).all():
        raise ValueError(
            f"start.w must be {problem.dimension} finite numbers, got an array of shape {w.shape}"
        )
    if not (isinstance(start.epochs, int | np.integer) and 0 <= start.epochs < 2**40):
        raise ValueError(f"start.epochs must be a number of epochs, got {start.epochs!r}")
    if start.alpha is None:
        return Start(w, int(start.epochs))
    alpha = np.array(start.alpha, dtype=np.float64)
    if alpha.shape != (problem.n_rows,) or not np.isfinite(alpha).all():
        raise ValueError(
            f"start.alpha must be {problem.n_rows} finite numbers, got an array of shape "
            f"{alpha.shape}"
        )
    return Start(w, int(start.epochs), alpha)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
