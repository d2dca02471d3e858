"""The result of training, and the progress that callbacks see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import DualVector
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector
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
