"""A problem whose rows are all in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certsvm.kernels.losses import HINGE, Loss
from certsvm.matrices import refuse_masked
from certsvm.problem.base import PartedProblem
from certsvm.problem.objective import Objective
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows
from certsvm.problem.sizes import Sizes, require_both_classes


class Problem(Part, PartedProblem):
    """Rows, labels, weights, C and the loss, in memory.

    Parameters
    ----------
    rows : Rows
        The data, with the augmentation rho in ``rows.intercept_scaling``.
    labels : array-like of shape (n_rows,)
        +1 or -1.
    C : float, default=1.0
        Weight of the loss relative to the regulariser.
    weights : array-like of shape (n_rows,), default=None
        Row weights s_k >= 0; None means that all are 1. Rows of weight zero are ignored.
    loss : Loss, default=HINGE
        The loss of a row.
    penalize_intercept : bool, default=True
        Whether the regulariser contains the entry of w behind the intercept.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(Rows(np.eye(2)), labels=[1, -1], C=0.5)
    >>> problem.m, problem.lambda_, problem.R
    (2, 1.0, 1.0)
    """

    where = "all rows in memory"

    def __init__(
        self,
        rows: Rows,
        labels: ArrayLike,
        *,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        loss: Loss = HINGE,
        penalize_intercept: bool = True,
    ) -> None:
        signs = _one_per_row(labels, "labels", rows.n_rows)
        if not (np.abs(signs) == 1.0).all():
            other = float(signs[np.abs(signs) != 1.0][0])
            raise ValueError(
                f"labels must be +1 or -1, and there is {other:g}: of other labels y, pass "
                "np.where(y == positive, 1, -1)"
            )
        if weights is not None:
            sizes = _one_per_row(weights, "weights", rows.n_rows)
            if not (np.isfinite(sizes).all() and (sizes >= 0).all()):
                raise ValueError("weights must be finite and not negative")
            signs = signs * sizes
        Part.__init__(self, rows, signs)
        objective = Objective(C, loss, penalize_intercept)
        PartedProblem.__init__(self, self._sizes(), objective)
        if self.free_intercept:
            require_both_classes(self.signed_weights)

    def _sizes(self) -> Sizes:
        active, rows = self.active, self.rows
        weights = self.of_active(self.weights)
        return Sizes(
            n_rows=rows.n_rows,
            n_columns=rows.n_columns,
            intercept_scaling=rows.intercept_scaling,
            m=active.size,
            weight_sum=float(self.weights.sum()),
            smallest_weight=float(weights.min(initial=np.inf)),
            largest_weight=float(weights.max(initial=0.0)),
            R=float(np.sqrt(self.of_active(rows.squared_norms).max(initial=0.0))),
        )

    def parts(self) -> Iterator[Part]:
        """The problem itself."""
        yield self

    def sample(self, which: NDArray[np.int64]) -> Problem:
        """The problem on the rows ``which``, with C raised to keep C sum_k s_k."""
        weights = self.weights[which]
        objective = self.objective.at(self.C * self.weight_sum / float(weights.sum()))
        rows, labels = self.rows.take(which), self.labels[which]
        return Problem(rows, labels, weights=weights, **objective.keywords)


def _one_per_row(values: ArrayLike, name: str, n_rows: int) -> NDArray[Any]:
    refuse_masked(**{name: values})
    array = np.array(values, dtype=np.float64)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), got {array.shape}")
    return array
