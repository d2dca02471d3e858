"""The optimisation problem: everything a solver may know.

    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k),     y_k = label_k [x_k, rho]

with rows x_k, labels +1 or -1, weights s_k >= 0 and the augmentation rho (0: no bias).

The rows come in parts, each of which is in memory while it is worked on. A ``Problem`` is in memory
as a whole, and its own only part; a ``StreamedProblem`` (``certsvm.streamed``) reads its parts anew
in each pass. What can be done part by part is written for an ``AnyProblem``, and serves both: a
function of a part, whose results for all parts are added (``AnyProblem.total``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certsvm.parallel import ALONE, Team
from certsvm.rows import Rows, Vector, as_compiled_for, split

# A kernel call cannot be interrupted; this many stored values take a tenth of a second or so.
_VALUES_PER_CALL = 1 << 25


class Part:
    """Rows in memory, with their labels and weights.

    Parameters
    ----------
    rows : Rows
        The validated data.
    signed_weights : ndarray of shape (n_rows,)
        label_k * s_k: the sign reflects the row, the size weighs it.
    first : int, default=0
        The number of rows in the parts before this one.
    """

    def __init__(self, rows: Rows, signed_weights: Vector, first: int = 0) -> None:
        self.rows = rows
        self.signed_weights = signed_weights
        self.first = first

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As it was, also where unpickling has made arrays read-only."""
        self.__dict__.update({name: as_compiled_for(value) for name, value in state.items()})

    @property
    def span(self) -> slice:
        """Where its rows are among all rows."""
        return slice(self.first, self.first + self.rows.n_rows)

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """The rows of positive weight."""
        active: NDArray[np.int64] = np.flatnonzero(self.signed_weights)
        return active

    @cached_property
    def labels(self) -> Vector:
        """+1 or -1; 0 for rows of weight zero."""
        labels: Vector = np.sign(self.signed_weights)
        return labels

    @cached_property
    def weights(self) -> Vector:
        """The row weights s_k."""
        weights: Vector = np.abs(self.signed_weights)
        return weights

    @cached_property
    def largest_rounding(self) -> float:
        """The largest (n_k + 2) |y_k| of an active row."""
        return float(self.rows.product_roundings[self.active].max(initial=0.0))

    @cached_property
    def loss_roundings(self) -> Vector:
        """s_k (n_k + 2) |y_k|, what rounding in the loss of row k is proportional to."""
        return self.weights * self.rows.product_roundings

    def slices(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Cut an order of presentation into pieces short enough to interrupt between."""
        stored_per_row = max(1, self.rows.n_stored // self.rows.n_rows)
        step = max(1, _VALUES_PER_CALL // stored_per_row)
        for start in range(0, order.size, step):
            yield order[start : start + step]


class AnyProblem(ABC):
    """What can be said of a problem without its rows.

    Attributes
    ----------
    C : float
        Weight of the loss against the regulariser.
    bias : float
        The augmentation rho.
    dimension : int
        Length of weight vectors.
    n_rows : int
        Number of rows.
    m : int
        Number of rows of positive weight.
    lambda_ : float
        1 / (C m), the regularisation of the equivalent mean-loss problem.
    weight_sum, largest_weight : float
        Of the row weights.
    R : float
        The largest norm of an active row.
    """

    C: float
    bias: float
    dimension: int
    n_rows: int
    m: int
    lambda_: float
    weight_sum: float

    @property
    @abstractmethod
    def R(self) -> float:
        """The largest norm of an active row."""

    @property
    @abstractmethod
    def largest_weight(self) -> float:
        """The largest row weight."""

    @property
    @abstractmethod
    def weights(self) -> Vector:
        """The row weights s_k, a number for each row."""

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """All rows, in order: a pass. A part is not to be used once the next is asked for."""

    def some_rows(self, n_rows: int) -> Part:
        """Rows to begin with: about so many, or all of the first part."""
        return next(self.parts())

    def total(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> Any:
        """The sum of ``task(part, team, *arguments)`` over all parts, by +=: a pass."""
        result = None
        for part in self.parts():
            one = task(part, team, *arguments)
            if result is None:
                result = one
            else:
                result += one
        return result

    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """``task(part, team, *arguments)`` of each part, in their order: a pass."""
        return [task(part, team, *arguments) for part in self.parts()]

    def coefficients(self, w: Vector) -> tuple[Vector, float]:
        """Split ``w`` into the coefficients of the columns and the intercept w_bias * rho."""
        return split(w, self.bias)

    def weight_vector(self, coefficients: Vector, intercept: float) -> Vector:
        """Join what ``coefficients`` split."""
        if self.bias > 0:
            return np.append(coefficients, intercept / self.bias)
        return np.array(coefficients, dtype=np.float64)


def refuse_extremes(problem: AnyProblem, smallest_weight: float) -> None:
    """Keep products of a problem's numbers, and their squares, inside float64 for ever."""
    C, S, s = problem.C, problem.largest_weight, smallest_weight
    with np.errstate(over="ignore", under="ignore"):
        large = np.float64(max(C, 1.0)) * max(S, 1.0) * max(problem.R, 1.0) * problem.m
        small = min(np.float64(C) * s, s, problem.lambda_)
    if large > 1e140 or small < 1e-140 or problem.lambda_ > 1e140:
        raise ValueError(
            f"C = {C:g}, weights from {s:g} to {S:g} and rows as long as {problem.R:g} "
            "together leave the range of numbers that can be computed with. Rescale them "
            "(multiplying all weights and dividing C by the same number changes nothing)."
        )


def require_sensible(C: float) -> float:
    """Return C, or raise."""
    if not (np.isfinite(C) and C > 0):
        raise ValueError(f"C must be a finite number > 0, got {C!r}")
    return float(C)


class Problem(Part, AnyProblem):
    """Rows, labels, weights and C, in memory.

    Parameters
    ----------
    rows : Rows
        The validated data, with the augmentation rho in ``rows.bias``.
    labels : array-like of shape (n_rows,)
        +1 or -1.
    C : float, default=1.0
        Weight of the loss against the regulariser.
    weights : array-like of shape (n_rows,), default=None
        Row weights s_k >= 0; None means that all are 1. A row of weight zero is treated as
        if it were not there.

    Attributes
    ----------
    signed_weights : ndarray of shape (n_rows,)
        label_k * s_k: the sign reflects the row, the size weighs it.
    active : ndarray of shape (m,)
        The rows of positive weight.
    m : int
        Their number.
    lambda_ : float
        1 / (C m), the regularisation of the equivalent mean-loss problem.
    R : float
        The largest norm of an active row.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(Rows(np.eye(2)), labels=[1, -1], C=0.5)
    >>> problem.m, problem.lambda_, problem.R
    (2, 1.0, 1.0)
    """

    def __init__(
        self, rows: Rows, labels: ArrayLike, *, C: float = 1.0, weights: ArrayLike | None = None
    ) -> None:
        self.C = require_sensible(C)
        reflection = _one_per_row(labels, "labels", rows.n_rows)
        if not np.isin(reflection, (-1.0, 1.0)).all():
            raise ValueError("labels must be +1 or -1")
        if weights is not None:
            sizes = _one_per_row(weights, "weights", rows.n_rows)
            if not (np.isfinite(sizes).all() and (sizes >= 0).all()):
                raise ValueError("weights must be finite and not negative")
            reflection = reflection * sizes
        super().__init__(rows, reflection)
        self.bias, self.dimension, self.n_rows = rows.bias, rows.dimension, rows.n_rows
        self.m = self.active.size
        if self.m == 0:
            raise ValueError("there is nothing to learn from: no row has a positive weight")
        self.lambda_ = 1.0 / (self.C * self.m)
        self.weight_sum = float(self.weights.sum())
        refuse_extremes(self, float(self.weights[self.active].min()))

    def parts(self) -> Iterator[Part]:
        """Itself."""
        yield self

    @cached_property
    def R(self) -> float:
        """The largest norm of an active row."""
        return float(np.sqrt(self.rows.squared_norms[self.active].max()))

    @cached_property
    def largest_weight(self) -> float:
        """The largest row weight."""
        return float(self.weights.max())

    def sample(self, which: NDArray[np.int64]) -> Problem:
        """The problem on some of the rows, with C raised so that they stand for all."""
        weights = self.weights[which]
        share = float(weights.sum()) / self.weight_sum
        return Problem(
            self.rows.take(which),
            self.labels[which],
            C=self.C / share,
            weights=None if bool((weights == 1.0).all()) else weights,
        )


def _one_per_row(values: ArrayLike, name: str, n_rows: int) -> NDArray[Any]:
    array = np.array(values, dtype=np.float64)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), got {array.shape}")
    return array
