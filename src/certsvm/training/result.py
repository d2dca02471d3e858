"""What training tells: after each pass, and at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import Response
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Start
from certsvm.training.history import History, Record

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
