"""How to train, whatever the data."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path

from certsvm.certificates.certificate import DEFAULT_TOL
from certsvm.problem.objective import HINGE_OBJECTIVE, Objective
from certsvm.scalars import as_float
from certsvm.solvers import Solver
from certsvm.training.result import Callback, Observer


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
    checkpoint: str | Path | None = None
    checkpoint_every: float = 10.0
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
