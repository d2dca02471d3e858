"""The interfaces of problems, wherever their rows are stored.

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
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from certsvm.parallel import ALONE, Team
from certsvm.problem.objective import Objective
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector, join, split
from certsvm.problem.sizes import Sizes


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
