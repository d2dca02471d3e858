"""What is minimised, the sizes of problems, and their interfaces, wherever their rows are stored.

    J(w) = 1/2 |w|^2 + C sum_k s_k loss(w.y_k),     y_k = label_k [x_k, rho]

with rows x_k, labels +1 or -1, weights s_k >= 0, the augmentation rho (0: no intercept) and a loss
(``kernels.losses``): the hinge, max(0, 1 - w.y_k), or its square. If the intercept is free, |w|^2
does not contain the last entry of w, and only alpha with sum_k label_k alpha_k = 0 is feasible.

Problems differ in the access to their rows, and solvers declare the kind they need:

* a ``BaseProblem`` knows its sizes;
* a ``SummableProblem`` computes sums over parts of its rows, wherever they are (``total``);
* a ``PartedProblem`` yields its parts one after the other, each in memory while it is used
  (``parts``). A ``Problem`` is its own only part; a ``StreamedProblem`` reads its parts anew in
  each pass.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from certsvm.kernels.losses import HINGE, Loss
from certsvm.problem.rows import Part, Vector, dimension_of, join, split
from certsvm.resources import ALONE, Team
from certsvm.scalars import as_float


@dataclass(frozen=True)
class Objective:
    """The parameters of J; problems, settings and paths hold it.

    Attributes
    ----------
    C : float, default=1.0
        Weight of the loss relative to the regulariser.
    loss : Loss, default=HINGE
        The loss of a row.
    penalize_intercept : bool, default=True
        Whether the regulariser contains the entry of w behind the intercept, if there is one.

    Examples
    --------
    >>> Objective(C=2.0).at(3.0).C
    3.0
    """

    C: float = 1.0
    loss: Loss = HINGE
    penalize_intercept: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise TypeError(f"loss must be one of certsvm.kernels.losses, got {self.loss!r}")
        C = as_float(self.C, "C")
        if not (math.isfinite(C) and C > 0):
            raise ValueError(f"C must be a finite number > 0, got {self.C!r}")
        object.__setattr__(self, "C", C)
        object.__setattr__(self, "penalize_intercept", bool(self.penalize_intercept))

    def at(self, C: float) -> Objective:
        """The same with another C."""
        return replace(self, C=C)

    def frees(self, intercept_scaling: float) -> bool:
        """Whether an intercept of this scale is free; there is none if it is zero."""
        return intercept_scaling > 0.0 and not self.penalize_intercept

    @property
    def keywords(self) -> dict[str, Any]:
        """Arguments for a ``Problem``."""
        return {"C": self.C, "loss": self.loss, "penalize_intercept": self.penalize_intercept}


HINGE_OBJECTIVE = Objective()


@dataclass(frozen=True)
class Sizes:
    """The sizes of a problem; raises a ValueError if no row has a positive weight."""

    n_rows: int
    n_columns: int
    intercept_scaling: float
    """The augmentation rho >= 0; zero means that there is no intercept."""
    m: int
    """Number of rows of positive weight."""
    weight_sum: float
    smallest_weight: float
    """The smallest positive weight."""
    largest_weight: float
    R: float
    """The largest norm of an augmented row of positive weight, or an upper bound."""

    def __post_init__(self) -> None:
        if self.m == 0:
            raise ValueError("there is nothing to learn from: no row has a positive weight")

    @property
    def dimension(self) -> int:
        """Length of weight vectors: ``n_columns``, plus one if there is an intercept."""
        return dimension_of(self.n_columns, self.intercept_scaling)

    def require_representable(self, C: float) -> None:
        """Raise unless products of C and these sizes, and their squares, fit into float64."""
        S, s, lambda_ = self.largest_weight, self.smallest_weight, 1.0 / (C * self.m)
        with np.errstate(over="ignore", under="ignore"):
            large = np.float64(max(C, 1.0)) * max(S, 1.0) * max(self.R, 1.0) * self.m
            small = min(np.float64(C) * s, s, lambda_)
        if large > 1e140 or small < 1e-140 or lambda_ > 1e140:
            raise ValueError(
                f"C = {C:g}, weights from {s:g} to {S:g} and rows as long as {self.R:g} "
                "together leave the range of floating-point numbers. Rescale them."
            )


@dataclass
class ClassSurvey:
    """The sizes of one class: all its rows, and its rows of positive weight."""

    n_rows: int = 0
    n_active: int = 0
    weight_sums: list[float] = field(default_factory=list)
    """The sum of the weights of each block."""
    smallest: float = np.inf
    largest: float = 0.0

    @property
    def weight_sum(self) -> float:
        """The sum of the weights; it adds one rounding to those of the blocks."""
        return math.fsum(self.weight_sums)

    def add(self, n_rows: int, weights: Vector | None) -> None:
        """Add a block of rows; None means that all weights are one."""
        active = np.ones(n_rows) if weights is None else weights[weights > 0]
        smallest, largest = float(active.min(initial=np.inf)), float(active.max(initial=0.0))
        self += ClassSurvey(n_rows, active.size, [float(active.sum())], smallest, largest)

    def __iadd__(self, other: ClassSurvey) -> ClassSurvey:
        self.n_rows += other.n_rows
        self.n_active += other.n_active
        self.weight_sums += other.weight_sums
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)
        return self


def sizes_of_classes(
    surveys: Sequence[ClassSurvey], factors: Vector, n_columns: int, rho: float, R: float
) -> Sizes:
    """The sizes of a problem from surveys of its classes and factors of their weights."""
    used = [(s, f) for s, f in zip(surveys, factors.tolist(), strict=True) if f > 0]
    n_rows, m = sum(s.n_rows for s in surveys), sum(s.n_active for s, _ in used)
    weight_sum = math.fsum(f * s.weight_sum for s, f in used)
    smallest = min((f * s.smallest for s, f in used), default=math.inf)
    largest = max((f * s.largest for s, f in used), default=0.0)
    return Sizes(n_rows, n_columns, rho, m, weight_sum, smallest, largest, R)


def one_against_rest(factors: Vector, positive: int) -> Vector:
    """The factors, negated for all classes but the positive one."""
    signed: Vector = -factors
    signed[positive] = factors[positive]
    return signed


def require_both_classes(signed_weights: Vector) -> None:
    """Raise if the optimum has no finite intercept, without a penalty on it.

    The weights are those of rows or of whole classes, negative on the negative side.
    """
    if not (signed_weights.max() > 0.0 > signed_weights.min()):
        raise ValueError(
            "all rows of positive weight are on the same side: the best intercept is infinite "
            "unless it is penalised (penalize_intercept=True)"
        )


class BaseProblem(ABC):
    """A problem whose sizes are known.

    Parameters
    ----------
    sizes : Sizes
        Sizes of the problem. All but ``n_columns`` and ``smallest_weight`` become attributes.
    objective : Objective
        C, the loss and whether the intercept is penalised; C and loss become attributes.

    Attributes
    ----------
    free_intercept : bool
        Whether there is an intercept, and the regulariser does not contain it.
    lambda_ : float
        1 / (C m), the regularisation of the equivalent mean-loss problem.
    """

    where: ClassVar[str] = "rows of any kind"
    """Where its rows are stored, for messages."""
    for_many_columns: ClassVar[str] = "Use another solver, such as 'working-set'"
    """What to do if there are too many for matrices of their products, for messages."""

    def __init__(self, sizes: Sizes, objective: Objective) -> None:
        sizes.require_representable(objective.C)
        self.objective, self.C, self.loss = objective, objective.C, objective.loss
        self.free_intercept = objective.frees(sizes.intercept_scaling)
        self.intercept_scaling, self.dimension = sizes.intercept_scaling, sizes.dimension
        self.n_rows, self.m, self.R = sizes.n_rows, sizes.m, sizes.R
        self.weight_sum, self.largest_weight = sizes.weight_sum, sizes.largest_weight
        self.lambda_ = 1.0 / (self.C * self.m)

    @property
    @abstractmethod
    def weights(self) -> Vector:
        """The row weights s_k, of shape (n_rows,)."""

    def regularised(self, w: Vector) -> Vector:
        """The entries of ``w`` that the regulariser contains."""
        return w[:-1] if self.free_intercept else w

    def coefficients(self, w: Vector) -> tuple[Vector, float]:
        """Split ``w`` into the coefficients of the columns and the intercept."""
        return split(w, self.intercept_scaling)

    def weight_vector(self, coefficients: Vector, intercept: float) -> Vector:
        """Join the coefficients of the columns and the intercept."""
        return join(coefficients, intercept, self.intercept_scaling)


class SummableProblem(BaseProblem):
    """A problem that computes sums over parts of its rows."""

    where = "rows in memory, from a stream or on a cluster"

    @abstractmethod
    def total(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> Any:
        """Make a pass: the sum of ``task(part, team, *arguments)`` over all parts, by +=."""

    @abstractmethod
    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """Make a pass: the list of ``task(part, team, *arguments)`` of all parts, in order."""

    @abstractmethod
    def some_rows(self, n_rows: int) -> Part:
        """A sample to start with: about ``n_rows`` rows, or the first part."""


class PartedProblem(SummableProblem):
    """A problem that yields its parts one after the other."""

    where = "rows in memory or from a stream"
    nbytes: int = 0
    """Size of the rows, if they are not in memory."""
    cache_bytes: int | None = None
    """Memory for what a solver keeps of the rows; None leaves it to the solver."""

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Make a pass over all rows, in order. A part is valid until the next is requested."""

    def some_rows(self, n_rows: int) -> Part:
        """The first part."""
        return next(self.parts())

    def total(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> Any:
        """The sum over the parts."""
        results = (task(part, team, *arguments) for part in self.parts())
        return functools.reduce(operator.iadd, results)

    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """The results of all parts."""
        return [task(part, team, *arguments) for part in self.parts()]
