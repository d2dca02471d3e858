"""What a solver is.

A ``Solver`` is a configured algorithm: a frozen dataclass of its parameters, without state,
so that one object may train many problems at once. ``start`` begins a ``Run`` on a problem;
the run holds the state and makes one pass at a time. Neither prints, measures time, looks at
limits or decides to stop: that is the training loop's business.

A new algorithm is a file with these two classes and a line in the registry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np

from certsvm.certificates.dual import DualPoint
from certsvm.certificates.rounding import Bound
from certsvm.parallel import ALONE, Team
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.storage.state import Stateful


@dataclass(frozen=True)
class Start:
    """Where to begin instead of at zero.

    Attributes
    ----------
    w : ndarray of shape (dimension,)
        The weight vector to go on from.
    epochs : int
        How many epochs made it: a run that decreases its steps takes it from there.
    alpha : ndarray or Tensor of shape (n_rows,), default=None
        A dual point that belongs to it, for solvers that keep one; it need not be feasible. A
        tensor is for rows in tensors.
    smoothing : float, default=None
        The slope of alpha, over C, at which a second-order method ended there.
    """

    w: Vector
    epochs: int = 1
    alpha: Any = None
    smoothing: float | None = None

    def checked(self, problem: BaseProblem) -> Start:
        """The same in float64: kernels rely on its shapes, certificates on its type.

        A tensor stays on its device if the problem's rows are tensors.
        """
        w = np.array(self.w, dtype=np.float64)
        _require_finite("w", w, np.isfinite(w), problem.dimension)
        if not (isinstance(self.epochs, int | np.integer) and 0 <= self.epochs < 2**40):
            raise ValueError(f"start.epochs must be a number of epochs, got {self.epochs!r}")
        if self.smoothing is not None and not 0.0 < self.smoothing < math.inf:
            raise ValueError(f"start.smoothing must be a number > 0, got {self.smoothing!r}")
        alpha = self.alpha
        if alpha is not None:
            if isinstance(problem, SummableProblem) or not hasattr(alpha, "isfinite"):
                alpha = np.array(alpha, dtype=np.float64)
                finite = np.isfinite(alpha)
            else:
                finite = alpha.isfinite()
            _require_finite("alpha", alpha, finite, problem.n_rows)
        return replace(self, w=w, epochs=int(self.epochs), alpha=alpha)


def _require_finite(name: str, values: Any, finite: Any, size: int) -> None:
    if tuple(values.shape) != (size,) or not bool(finite.all()):
        raise ValueError(
            f"start.{name} must be {size} finite numbers, got an array of shape "
            f"{tuple(values.shape)}"
        )


@dataclass(frozen=True)
class Options:
    """What a run is told besides the problem.

    Attributes
    ----------
    rng : Generator
        The only source of randomness.
    target : float, default=0.01
        The relative accuracy asked for. Most algorithms do not care; the training loop does.
    start : Start, default=None
        Where to begin; None means at zero.
    keep_alpha : bool, default=False
        Whether dual points must be able to return their alpha, which costs at least a number
        per row.
    team : Team, default=ALONE
        Threads to share work with.
    resumed : bool, default=False
        Whether the run is given the state of an earlier one next, so that there is nothing to
        search for, or to find out from samples.
    """

    rng: np.random.Generator
    target: float = 0.01
    start: Start | None = None
    keep_alpha: bool = False
    team: Team = ALONE
    resumed: bool = False


@dataclass(frozen=True)
class Epoch:
    """What one pass tells the training loop.

    Attributes
    ----------
    epochs : int
        T, the number of times each row has been presented so far; where rows are not presented
        equally often, the passes made.
    margin_errors, updates, free : int, default=None
        Of this pass: the margin errors, the changes of w or alpha, the free support vectors (rows
        with alpha strictly inside the box) that it worked with. None where the solver has no such
        number.
    primal_estimate : float, default=None
        J, guessed from the inner products of the pass; None if the solver has no guess.
    dual_estimate : float, default=None
        L, guessed, for solvers whose dual point is too dear to be made after each pass. With
        a guess, the loop asks for the point only when it computes J too.
    finished : bool, default=False
        Whether the algorithm has ended by its own rule.
    refining : bool, default=False
        Whether to go on even if the target is met, since it costs next to nothing.
    """

    epochs: int
    margin_errors: int | None = None
    updates: int | None = None
    free: int | None = None
    primal_estimate: float | None = None
    dual_estimate: float | None = None
    finished: bool = False
    refining: bool = False


class Run(Stateful, ABC):
    """The state of a solver on one problem.

    A run that can be saved declares its ``STATE``. It is made again by ``start``, with
    ``resumed``, and then given its state.
    """

    solver_name: str = ""
    """Who is at work, where that is not the solver by its name."""

    computes_primal: bool = False
    """Whether ``primal`` is to be asked instead of computing J for the candidates."""

    @abstractmethod
    def epoch(self) -> Epoch:
        """Make one pass over the rows."""

    @abstractmethod
    def candidates(self) -> Iterator[Vector]:
        """Weight vectors worth evaluating exactly, the solver's own answer first.

        They are valid until the next pass; whoever keeps one copies it.
        """

    def dual(self) -> DualPoint | None:
        """A feasible dual point after the last complete pass, or None."""
        return None

    def primal(self) -> tuple[Vector, Bound] | None:
        """A weight vector and its J, if the pass computed one, by way of ``Products``."""
        return None

    def warm_start(self) -> Start | None:
        """Where a run on a similar problem may begin, if this one knows more than w."""
        return None


class Solver(ABC):
    """A configured algorithm."""

    name: ClassVar[str]
    """What ``LinearSVC(solver=...)`` calls it."""

    certifies: ClassVar[bool] = True
    """Whether its runs have dual points; otherwise certificates are primal only."""

    goes_on_from_alpha: ClassVar[bool] = False
    """Whether a warm start goes on from the alpha of a result, which then has to be kept."""

    problem_type: ClassVar[type[Any]] = Problem
    """The most general kind of problem that its runs take."""

    published: bool = False
    """Whether to follow the paper to the letter: latest bounds instead of best, unscaled."""

    f: float = 1.2
    """Comparison coefficient: J is computed once its guess is within f times the target."""

    @property
    def label(self) -> str:
        """The name, with the parameters that are not at their defaults."""
        assert is_dataclass(self)
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name

    @abstractmethod
    def start(self, problem: Any, options: Options) -> Run:
        """Begin a run on ``problem``, which is of the solver's ``problem_type``."""


class RunLostError(Exception):
    """A run cannot go on; what it has told so far stands."""


def require(condition: bool, solver: Solver, message: str) -> None:
    """Raise a ValueError that names the solver unless ``condition`` holds."""
    if not condition:
        raise ValueError(f"{type(solver).__name__}: {message}")


def float_type(
    solver: Solver, precision: str, problem: BaseProblem | None = None
) -> type[np.floating[Any]]:
    """The type of a solver's vectors, for ``precision`` "double" or "single".

    With a problem, it is also made sure that single precision can hold what comes up.
    """
    types: dict[str, type[np.floating[Any]]] = {"double": np.float64, "single": np.float32}
    require(
        precision in types, solver, f'precision must be "double" or "single", got {precision!r}'
    )
    if precision == "single" and problem is not None:
        steps = (1.0, problem.C, problem.lambda_, 1.0 / problem.lambda_)
        lengths = [problem.m * problem.largest_weight * problem.R * step for step in steps]
        require(
            max(lengths) < 1e30,
            solver,
            f"single precision does not reach far enough for C = {problem.C:g} and rows as long as "
            f"{problem.R:g}. Scale the columns, or use double precision.",
        )
    return types[precision]
