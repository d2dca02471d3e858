"""What training is given, and what it gives: settings and results."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import index
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

from certsvm.certificates.certificate import DEFAULT_TOL, Certificate
from certsvm.certificates.dual import DualVector
from certsvm.problem.base import HINGE_OBJECTIVE, BaseProblem, Objective
from certsvm.problem.rows import Vector
from certsvm.scalars import as_float
from certsvm.solvers import Solver
from certsvm.solvers.base import Run, Start
from certsvm.training.history import History, Record

TARGET_MET = "target met"
SOLVER_FINISHED = Run.why_finished
OUT_OF_PASSES = "max_iter reached"
OUT_OF_TIME = "max_time reached"
STOPPED = "stopped by a callback"
INTERRUPTED = "interrupted"
NOT_KEPT = "the dual point that met the target could not be kept"
LOST = "lost"
"""Beginning of the reason if the run failed."""


class Progress(NamedTuple):
    """The argument of callbacks.

    Attributes
    ----------
    record : Record
        The record of the last pass.
    w : callable
        Returns the weight vector with the least J computed so far, or the solver's current one
        before J is first computed.
    """

    record: Record
    w: Callable[[], Vector]


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Called after each pass; a true return value ends training."""


@dataclass(frozen=True)
class Result:
    """The result of training.

    Attributes
    ----------
    w : ndarray of shape (dimension,)
        The certified weight vector.
    certificate : Certificate
        Its certificate.
    history : History
        One record per pass.
    reason : str
        Why training ended.
    start : Start
        Where another run can go on.
    solver : str
        Name of the solver, or of the solvers that "auto" used.
    alpha : ndarray of shape (n_rows,) or None
        The feasible dual point of the certificate, if it was asked for.
    response : Response, object or None
        What the dual point can be had from if ``alpha`` is not kept; see ``DualPoint``.
    vector : DualVector or None
        sum_k alpha_k y_k of the dual point of the certificate, if it was asked for.
    witness : object or None
        What anyone who has the data can recompute the dual bound of the certificate from.
    """

    w: Vector
    certificate: Certificate
    history: History
    reason: str
    start: Start
    solver: str
    alpha: Vector | None = None
    response: Any = None
    vector: DualVector | None = None
    witness: Any = None

    def __repr__(self) -> str:
        return f"<Result of {self.solver}: {self.certificate}; {self.reason}>"

    @property
    def passes(self) -> int:
        """The number of passes over the data."""
        return self.history[-1].passes if self.history else 0

    @property
    def epochs(self) -> int:
        """How often each row was presented."""
        return self.start.epochs

    def certified_by(self, certificate: Certificate, vector: DualVector | None) -> Result:
        """The result with the certificate and the vector of another dual point.

        That point may prove less. The reason does not say that the target is met if it is not.
        """
        lost = self.reason == TARGET_MET and not certificate.met
        reason = NOT_KEPT if lost else self.reason
        return replace(self, certificate=certificate, vector=vector, reason=reason)


class Observer:
    """Receives the progress of training. Methods may be called from several threads at once."""

    def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
        """Return callbacks for the passes of problem ``i``, whose training is about to begin."""
        return ()

    def end(self, i: int, label: Any, result: Result) -> None:
        """The training of problem ``i`` has ended."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes
    ----------
    objective : Objective, default=HINGE_OBJECTIVE
        What to minimise: C, the loss, and whether the intercept is penalised.
    tol : float, default=1e-4
        Relative accuracy: training ends when J(w) <= (1 + tol) J_opt is proved.
    solver : str or Solver, default="auto"
        Which algorithm; which names there are depends on the source of the data.
    max_iter : int, default=1000
        Limit on passes over the data, for each class.
    max_time : float, default=None
        Limit in seconds, for each class. The first pass is completed in any case; others do not
        begin if, by the time of the last, they would end too late, and are cut short if they do.
    seed : int or None, default=0
        Of the random orders. Each class gets a stream of its own from it. None takes one from
        the operating system.
    n_jobs : int, default=1
        Threads: for several classes at once, or inside the training of one: for J and the parallel
        parts of some solvers. Calls of BLAS are limited to one thread.
    keep_alpha : bool, default=False
        Whether to return the dual points behind the certificates.
    keep_vector : bool, default=False
        Whether to return sum_k alpha_k y_k of these points.
    checkpoint : path, default=None
        A folder to keep the state of training in, and to go on from.
    checkpoint_every : float, default=10.0
        Seconds between two checkpoints, at least.
    print_every : float, default=None
        Seconds between lines of progress on standard error, for each class; None prints none.
    callbacks : sequence of callables, default=()
        Called after each pass with a ``Progress``; a true return value ends training.
    observers : sequence of Observer, default=()
        Told when the training of classes begins and ends, with callbacks for their passes.
    stop : threading.Event, default=None
        Ends training when it is set: the pass is cut short, unless it is the first. Ctrl-C sets it,
        for fits that belong together.
    """

    objective: Objective = HINGE_OBJECTIVE
    tol: float = DEFAULT_TOL
    solver: str | Solver = "auto"
    max_iter: int = 1000
    max_time: float | None = None
    seed: int | None = 0
    n_jobs: int = 1
    keep_alpha: bool = False
    keep_vector: bool = False
    checkpoint: str | PathLike[str] | None = None
    checkpoint_every: float = 10.0
    print_every: float | None = None
    callbacks: Sequence[Callback] = ()
    observers: Sequence[Observer] = ()
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        # NumPy's numbers would be refused only when the model is saved.
        for name, least in (("max_iter", 1), ("n_jobs", 1), ("seed", 0)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, index(value))
                if value < least:
                    raise ValueError(f"{name} must be at least {least}, got {value!r}")
        for name in ("tol", "max_time", "checkpoint_every"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_float(value, name))
                if not 0 <= value < math.inf:
                    raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")

    def at(self, C: float) -> Settings:
        """The same with another C."""
        return replace(self, objective=self.objective.at(C))
