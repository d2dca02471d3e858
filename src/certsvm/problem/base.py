"""What every problem can tell, wherever its rows are.

    J(w) = 1/2 |w|^2 + C sum_k s_k loss(w.y_k),     y_k = label_k [x_k, rho]

with rows x_k, labels +1 or -1, weights s_k >= 0, the augmentation rho (0: no intercept) and a loss
(``kernels.losses``): the hinge, max(0, 1 - w.y_k).

Problems differ in what can be done with their rows, and solvers say which kind they need:

* of a ``BaseProblem`` the sizes are known;
* of a ``SummableProblem`` sums over parts of the rows can be had, wherever these are (``total``);
* of a ``PartedProblem`` the parts themselves, one after the other, each in memory while it is
  worked on (``parts``). A ``Problem`` is its own only part; a ``StreamedProblem`` reads its parts
  anew in each pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from certsvm.kernels.losses import HINGE, Hinge, Loss
from certsvm.parallel import ALONE, Team
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector, join, split
from certsvm.problem.sizes import Sizes


class BaseProblem(ABC):
    """What can be said of a problem without its rows.

    Parameters
    ----------
    sizes : Sizes
        Of the rows and their weights.
    C : float
        Weight of the loss against the regulariser.
    loss : Loss, default=HINGE
        The loss of a row.

    Attributes
    ----------
    loss : Loss
        The loss of a row.
    C, lambda_ : float
        Weight of the loss; 1 / (C m), the regularisation of the equivalent mean-loss problem.
    dimension, n_rows, m : int
        Length of weight vectors; number of rows; number of rows of positive weight.
    intercept_scaling : float
        The augmentation rho.
    weight_sum, largest_weight : float
        Of the row weights.
    R : float
        The largest norm of an active row, or more.
    """

    where: ClassVar[str] = "rows of any kind"
    """Where its rows are, in words."""

    def __init__(self, sizes: Sizes, C: float, loss: Loss = HINGE) -> None:
        if not isinstance(loss, Hinge):
            raise TypeError(f"loss must be one of certsvm.kernels.losses, got {loss!r}")
        self.loss = loss
        self.C = positive_C(C)
        sizes.require_representable(self.C)
        self.intercept_scaling, self.dimension = sizes.intercept_scaling, sizes.dimension
        self.n_rows, self.m, self.R = sizes.n_rows, sizes.m, sizes.R
        self.weight_sum, self.largest_weight = sizes.weight_sum, sizes.largest_weight
        self.lambda_ = 1.0 / (self.C * self.m)

    @property
    @abstractmethod
    def weights(self) -> Vector:
        """The row weights s_k, a number for each row."""

    def coefficients(self, w: Vector) -> tuple[Vector, float]:
        """Split ``w`` into the coefficients of the columns and the intercept."""
        return split(w, self.intercept_scaling)

    def weight_vector(self, coefficients: Vector, intercept: float) -> Vector:
        """Join what ``coefficients`` split."""
        return join(coefficients, intercept, self.intercept_scaling)


class SummableProblem(BaseProblem):
    """A problem of which sums over parts of the rows can be had."""

    where = "rows in memory, from a stream or on a cluster"

    @abstractmethod
    def total(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> Any:
        """The sum of ``task(part, team, *arguments)`` over all parts, by +=: a pass."""

    @abstractmethod
    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """``task(part, team, *arguments)`` of each part, in their order: a pass."""

    @abstractmethod
    def some_rows(self, n_rows: int) -> Part:
        """Rows to begin with: about so many, or all of the first part."""


class PartedProblem(SummableProblem):
    """A problem whose parts can be had, one after the other."""

    where = "rows in memory or from a stream"

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """All rows, in order: a pass. A part is not to be used once the next is asked for."""

    def some_rows(self, n_rows: int) -> Part:
        """All of the first part."""
        return next(self.parts())

    def total(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> Any:
        """The sum over the parts."""
        result = None
        for part in self.parts():
            one = task(part, team, *arguments)
            if result is None:
                result = one
            else:
                result += one
        return result

    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """What the task gives for each part."""
        return [task(part, team, *arguments) for part in self.parts()]


def positive_C(C: float) -> float:
    """Return C, or raise."""
    if not (np.isfinite(C) and C > 0):
        raise ValueError(f"C must be a finite number > 0, got {C!r}")
    return float(C)
