"""The optimisation problem: everything a solver may know.

    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k),     y_k = label_k [x_k, rho]

with rows x_k, labels +1 or -1, weights s_k >= 0 and the augmentation rho (0: no bias).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certsvm.rows import Rows, Vector

# A kernel call cannot be interrupted; this many stored values take a tenth of a second or so.
_VALUES_PER_CALL = 1 << 25


class Problem:
    """Rows, labels, weights and C.

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
        if not (np.isfinite(C) and C > 0):
            raise ValueError(f"C must be a finite number > 0, got {C!r}")
        reflection = _one_per_row(labels, "labels", rows.n_rows)
        if not np.isin(reflection, (-1.0, 1.0)).all():
            raise ValueError("labels must be +1 or -1")
        self.rows = rows
        self.C = float(C)
        if weights is None:
            self.signed_weights = reflection
            self.active = np.arange(rows.n_rows)
        else:
            sizes = _one_per_row(weights, "weights", rows.n_rows)
            if not (np.isfinite(sizes).all() and (sizes >= 0).all()):
                raise ValueError("weights must be finite and not negative")
            self.signed_weights = reflection * sizes
            self.active = np.flatnonzero(sizes > 0)
        self.m = self.active.size
        if self.m == 0:
            raise ValueError("there is nothing to learn from: no row has a positive weight")
        self.lambda_ = 1.0 / (self.C * self.m)
        self.weight_sum = float(self.weights.sum())
        self._refuse_extremes()

    def _refuse_extremes(self) -> None:
        """Keep products of these numbers, and their squares, inside float64 for ever."""
        weights = self.weights[self.active]
        S, s = self.largest_weight, float(weights.min())
        with np.errstate(over="ignore", under="ignore"):
            large = np.float64(max(self.C, 1.0)) * max(S, 1.0) * max(self.R, 1.0) * self.m
            small = min(np.float64(self.C) * s, s, self.lambda_)
        if large > 1e140 or small < 1e-140 or self.lambda_ > 1e140:
            raise ValueError(
                f"C = {self.C:g}, weights from {s:g} to {S:g} and rows as long as {self.R:g} "
                "together leave the range of numbers that can be computed with. Rescale them "
                "(multiplying all weights and dividing C by the same number changes nothing)."
            )

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
    def R(self) -> float:
        """The largest norm of an active row."""
        return float(np.sqrt(self.rows.squared_norms[self.active].max()))

    @cached_property
    def largest_weight(self) -> float:
        """The largest row weight."""
        return float(self.weights.max())

    @cached_property
    def largest_rounding(self) -> float:
        """The largest (n_k + 2) |y_k| of an active row."""
        return float(self.rows.product_roundings[self.active].max())

    @cached_property
    def loss_roundings(self) -> Vector:
        """s_k (n_k + 2) |y_k|, what rounding in the loss of row k is proportional to."""
        return self.weights * self.rows.product_roundings

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

    def slices(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Cut an order of presentation into pieces short enough to interrupt between."""
        stored_per_row = max(1, self.rows.n_stored // self.rows.n_rows)
        step = max(1, _VALUES_PER_CALL // stored_per_row)
        for start in range(0, order.size, step):
            yield order[start : start + step]

    def coefficients(self, w: Vector) -> tuple[Vector, float]:
        """Split ``w`` into the coefficients of the columns and the intercept w_bias * rho."""
        return self.rows.split(w)

    def weight_vector(self, coefficients: Vector, intercept: float) -> Vector:
        """Join what ``coefficients`` split."""
        if self.rows.bias > 0:
            return np.append(coefficients, intercept / self.rows.bias)
        return np.array(coefficients, dtype=np.float64)


def _one_per_row(values: ArrayLike, name: str, n_rows: int) -> NDArray[Any]:
    array = np.array(values, dtype=np.float64)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), got {array.shape}")
    return array
