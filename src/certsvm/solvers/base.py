"""Base classes of solvers and their runs.

A ``Solver`` is a configured algorithm: a frozen dataclass of parameters without state, so that one
object can train many problems at once. ``start`` begins a ``Run`` on a problem. The run holds the
state and makes one pass at a time. Neither prints, measures time, checks limits or decides to stop:
the training loop does.

A new algorithm is a file with these two classes and a line in the registry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np

from certsvm.certificates.best import BestValues
from certsvm.certificates.certificate import DEFAULT_TOL
from certsvm.certificates.dual import DualPoint
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import HINGE, Loss, loss_value
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.resources import ALONE, Team
from certsvm.scalars import set_plain_numbers

# A start whose J comes within this factor of the largest float64 is of no use.
_HEADROOM = 1e10


@dataclass(frozen=True)
class Start:
    """A warm start.

    Attributes
    ----------
    w : ndarray of shape (dimension,)
        The initial weight vector.
    epochs : int, default=1
        Number of epochs that produced ``w``. Solvers with decreasing steps continue from there.
    alpha : ndarray or Tensor of shape (n_rows,), default=None
        A dual point that belongs to ``w``, for solvers that keep one; it need not be feasible. It
        may be a tensor if the rows are tensors.
    smoothing : float, default=None
        The slope of alpha, divided by C, at which a second-order method ended.
    """

    w: Vector = field(repr=False)
    epochs: int = 1
    alpha: Any = field(default=None, repr=False)
    smoothing: float | None = None

    def checked(self, problem: BaseProblem) -> Start:
        """Return the start in float64, or raise a ValueError if it does not fit ``problem``.

        Kernels rely on the shapes, certificates on the type. A tensor stays on its device if the
        rows of the problem are tensors.
        """
        w, alpha = np.array(self.w, dtype=np.float64), self.alpha
        if isinstance(problem, SummableProblem) or not hasattr(alpha, "isfinite"):
            alpha = None if alpha is None else np.array(alpha, dtype=np.float64)
        for name, values, size in (("w", w, problem.dimension), ("alpha", alpha, problem.n_rows)):
            shape = (size,) if values is None else tuple(values.shape)
            if shape != (size,) or not (values is None or bool((abs(values) < math.inf).all())):
                must = f"start.{name} must be {size} finite numbers"
                raise ValueError(f"{must}, got an array of shape {shape}")
        if not (isinstance(self.epochs, int | np.integer) and 0 <= self.epochs < 2**40):
            raise ValueError(f"start.epochs must be an integer >= 0, got {self.epochs!r}")
        if self.smoothing is not None and not 0.0 < self.smoothing < math.inf:
            raise ValueError(f"start.smoothing must be a number > 0, got {self.smoothing!r}")
        return replace(self, w=w, epochs=int(self.epochs), alpha=alpha)

    def overflows(self, problem: BaseProblem) -> bool:
        """Whether J(w), or a step from there, may be beyond the range of float64."""
        with np.errstate(over="ignore"):
            square = inner(self.w, self.w)
            worst = loss_value(problem.loss, -problem.R * math.sqrt(square))
            return not math.isfinite(_HEADROOM * (square + problem.C * problem.weight_sum * worst))


@dataclass(frozen=True)
class Options:
    """Options of a run.

    Attributes
    ----------
    rng : Generator
        The only source of randomness.
    target : float, default=1e-4
        The requested relative gap. Most algorithms ignore it; the training loop stops by it.
    start : Start, default=None
        The warm start; None means w = 0.
    keep_alpha : bool, default=False
        Whether dual points must be able to return alpha, which costs at least a number per row.
    team : Team, default=ALONE
        Threads to share work with.
    resumed : bool, default=False
        Whether ``start`` is where an interrupted run on the same problem was.
    """

    rng: np.random.Generator
    target: float = DEFAULT_TOL
    start: Start | None = None
    keep_alpha: bool = False
    team: Team = ALONE
    resumed: bool = False

    def first_w(self, problem: BaseProblem) -> Vector:
        """A copy of the initial weight vector."""
        return np.zeros(problem.dimension) if self.start is None else self.start.w.copy()

    def first_t(self, problem: BaseProblem) -> int:
        """The number of presentations that produced the initial weight vector."""
        return 0 if self.start is None else self.start.epochs * problem.m


@dataclass(frozen=True)
class Epoch:
    """What one pass reports to the training loop.

    Attributes
    ----------
    epochs : int
        T, the number of times each row has been presented so far. If rows are not presented
        equally often, the number of passes.
    margin_errors, updates, free : int, default=None
        Counts of this pass: margin errors, changes of w or alpha, free support vectors (rows with
        alpha strictly inside the box). None if the solver does not count them.
    primal_estimate : float, default=None
        An estimate of J from the inner products of the pass.
    dual_estimate : float, default=None
        An estimate of L, for solvers whose dual point is too expensive to compute after each pass.
        The loop then asks for the point only when it also computes J.
    finished : bool, default=False
        Whether the solver's own stopping rule is met.
    """

    epochs: int
    margin_errors: int | None = None
    updates: int | None = None
    free: int | None = None
    primal_estimate: float | None = None
    dual_estimate: float | None = None
    finished: bool = False


class Run(ABC):
    """The state of a solver on one problem.

    ``class MyRun(Run, of=MySolver)`` is what ``MySolver().start`` makes.
    """

    solver_name: str = ""
    """Name of the solver now running, if it differs from the solver asked for."""

    best: BestValues
    """The best values so far, if the run steers by them."""

    why_finished: str = "the solver ended by its own rule"
    """The reason of a result whose run says that it has ``finished``."""

    computes_primal: bool = False
    """Whether the loop takes J from ``primal`` instead of computing it for the candidates."""

    _dual_point: Callable[[], DualPoint] | None = None
    """Makes the dual point. None before a pass is complete, lest half a pass prove anything."""

    _w: Vector
    """The algorithm's answer."""

    _evaluated: tuple[Vector, Bound] | None = None
    """A weight vector and its J, if the last pass computed it."""

    def __init_subclass__(cls, of: type[Solver] | None = None) -> None:
        if of is not None:
            of._run_type = cls

    def __init__(self, solver: Any, problem: Any, options: Options) -> None:
        self._solver, self._problem, self._options = solver, problem, options
        self._rng, self._passes = options.rng, 0

    @abstractmethod
    def epoch(self) -> Epoch:
        """Make one pass over the rows."""

    def candidates(self) -> Iterator[Vector]:
        """Weight vectors worth evaluating exactly, the algorithm's answer first.

        They are valid until the next pass; a caller that keeps one must copy it.
        """
        yield self._w

    def dual(self) -> DualPoint | None:
        """A feasible dual point after the last complete pass, or None."""
        return None if self._dual_point is None else self._dual_point()

    def primal(self) -> tuple[Vector, Bound] | None:
        """A weight vector and its J with rounding, if the last pass computed it."""
        return self._evaluated

    def warm_start(self) -> Start | None:
        """A warm start for a similar problem, if the run knows more than w."""
        return None


# What parameters may be required to be.
_RANGES: dict[str, Callable[[Any], bool]] = {
    "> 0": lambda value: value > 0,
    ">= 0": lambda value: value >= 0,
    "in (0, 1]": lambda value: 0 < value <= 1,
    "between 0 and 2": lambda value: 0 < value < 2,
    '"double" or "single"': lambda value: value in ("double", "single"),
    '"sqrt" or "constant"': lambda value: value in ("sqrt", "constant"),
}


class Solver(ABC):
    """A configured algorithm.

    Attributes
    ----------
    name : str
        The name in ``LinearSVC(solver=...)``.
    certifies : bool
        Whether runs have dual points; otherwise certificates are primal only.
    warm_starts_from_alpha : bool
        Whether a warm start goes on from the alpha of a result, which then has to be kept.
    starts_warm : bool
        Whether runs begin at a given start.
    n_vectors : int
        Vectors as long as w that training holds in memory at the same time, at least.
    problem_type : type
        The most general type of problem that the solver accepts.
    losses : tuple of Loss
        The losses that it minimises.
    frees_intercept : bool
        Whether it solves problems whose intercept is free.
    ranges : mapping
        What parameters must be, in the words of a table in this file, unless they are None: as
        in ``class MySolver(Solver, rate="> 0")``.
    f : float
        J is computed once the estimated relative gap is at most f times the target.
    """

    name: ClassVar[str]
    certifies: ClassVar[bool] = True
    warm_starts_from_alpha: ClassVar[bool] = False
    starts_warm: ClassVar[bool] = True
    n_vectors: ClassVar[int] = 4
    problem_type: ClassVar[type[Any]] = Problem
    losses: ClassVar[tuple[Loss, ...]] = (HINGE,)
    frees_intercept: ClassVar[bool] = False
    _run_type: ClassVar[type[Run]]
    ranges: ClassVar[Mapping[str, str]] = {}
    f: float = 1.2

    def __init_subclass__(cls, **ranges: str) -> None:
        cls.ranges = ranges or cls.ranges

    def __post_init__(self) -> None:
        set_plain_numbers(self)
        for name, words in self.ranges.items():
            value = getattr(self, name)
            fits = value is None or _RANGES[words](value)
            require(fits, self, f"{name} must be {words}, got {value!r}")

    @property
    def label(self) -> str:
        """The name, with the parameters that differ from their defaults."""
        assert is_dataclass(self)
        values = ((f, getattr(self, f.name)) for f in fields(self))
        changed = [f"{f.name}={value!r}" for f, value in values if value != f.default]
        return f"{self.name}({', '.join(changed)})" if changed else self.name

    @classmethod
    def solves(cls, loss: Loss, *, free_intercept: bool) -> bool:
        """Whether it minimises this loss, with the intercept free or not."""
        return loss in cls.losses and (cls.frees_intercept or not free_intercept)

    def saves_alpha(self, problem: BaseProblem) -> bool:
        """Whether checkpoints hold alpha: whether keeping it costs no pass."""
        return isinstance(problem, Problem)

    def start(self, problem: Any, options: Options) -> Run:
        """Begin a run on ``problem``, which is of the solver's ``problem_type``."""
        return self._run_type(self, problem, options)


class RunLostError(Exception):
    """A run cannot continue; the bounds that it reported so far remain valid."""


def require(condition: bool, solver: Solver, message: str) -> None:
    """Raise a ValueError that names the solver unless ``condition`` holds."""
    if not condition:
        raise ValueError(f"{type(solver).__name__}: {message}")


def float_type(solver: Solver, precision: str, problem: BaseProblem) -> type[np.floating[Any]]:
    """The float type for ``precision``, if the solver's vectors stay within its range."""
    if precision == "double":
        return np.float64
    steps = (1.0, problem.C, problem.lambda_, 1.0 / problem.lambda_)
    fits = problem.m * problem.largest_weight * problem.R * max(steps) < 1e30
    message = "the range of single precision is too small. Scale the columns, or use double."
    require(fits, solver, message)
    return np.float32
