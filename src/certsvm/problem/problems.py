"""Problems whose rows are in memory, and those whose rows a stream gives anew in each pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certsvm.kernels.losses import HINGE, Loss
from certsvm.matrices import refuse_masked
from certsvm.problem import base
from certsvm.problem.base import HINGE_OBJECTIVE, Objective, PartedProblem
from certsvm.problem.rows import Part, Rows, Vector
from certsvm.resources import require_time


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
        self, rows: Rows, labels: ArrayLike, *, C: float = 1.0, weights: ArrayLike | None = None,
        loss: Loss = HINGE, penalize_intercept: bool = True,
    ) -> None:  # fmt: skip
        signs = _one_per_row(labels, "labels", rows.n_rows)
        if not (np.abs(signs) == 1.0).all():
            other = float(signs[np.abs(signs) != 1.0][0])
            what = f"labels must be +1 or -1, and there is {other:g}"
            raise ValueError(f"{what}: of other labels y, pass np.where(y == positive, 1, -1)")
        if weights is not None:
            factors = _one_per_row(weights, "weights", rows.n_rows)
            if not (np.isfinite(factors).all() and (factors >= 0).all()):
                raise ValueError("weights must be finite and not negative")
            signs = signs * factors
        Part.__init__(self, rows, signs)
        survey, factor = base.ClassSurvey(), np.ones(1)
        survey.add(rows.n_rows, self.weights)
        R = float(np.sqrt(self.of_active(rows.squared_norms).max(initial=0.0)))
        sizes = base.sizes_of_classes([survey], factor, rows.n_columns, rows.intercept_scaling, R)
        PartedProblem.__init__(self, sizes, Objective(C, loss, penalize_intercept))
        if self.free_intercept:
            base.require_both_classes(self.signed_weights)

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


class StreamedProblem(PartedProblem):
    """The problem of one class against the rest, on a stream.

    Parameters
    ----------
    stream : BlockStream
        The data, with the augmentation rho.
    positive : int
        Index of the positive class.
    objective : Objective, default=HINGE_OBJECTIVE
        What is minimised.
    class_factors : ndarray of shape (n_classes,), default=None
        Factors of the weights of each class's rows.

    Examples
    --------
    >>> import numpy as np
    >>> from certsvm.files.streams import BlockStream
    >>> stream = BlockStream(lambda: [(np.eye(2), np.array([1, -1]))])
    >>> problem = StreamedProblem(stream, positive=1)
    >>> problem.m, [part.labels.tolist() for part in problem.parts()]
    (2, [[1.0, -1.0]])
    """

    where = "rows from a stream"
    for_many_columns = "Use 'block-dcd', or hold the rows in memory and use 'working-set'"

    def __init__(
        self, stream: Any, positive: int, objective: Objective = HINGE_OBJECTIVE, *,
        class_factors: Vector | None = None,
    ) -> None:  # fmt: skip
        self.stream = stream
        self._weights: Vector | None = None
        self.nbytes, self.cache_bytes = stream.nbytes, stream.cache_share
        factors = np.ones(stream.classes.size) if class_factors is None else class_factors
        self._class_weights = base.one_against_rest(factors, positive)
        sizes = base.sizes_of_classes(
            stream.surveys, factors, stream.n_columns, stream.intercept_scaling, stream.R
        )
        super().__init__(sizes, objective)
        if self.free_intercept:
            totals = np.array([survey.weight_sum for survey in stream.surveys])
            base.require_both_classes(self._class_weights * totals)

    # No cached_property: until Python 3.12 it has one lock for all objects, and whoever waits for
    # the lock would keep others who share its readings from making this pass.
    @property
    def weights(self) -> Vector:
        """The row weights, gathered in a pass."""
        if self._weights is None:
            self._weights = np.concatenate([part.weights for part in self.parts()])
        return self._weights

    @weights.setter
    def weights(self, weights: Vector) -> None:
        self._weights = weights

    def parts(self) -> Iterator[Part]:
        """A pass over the stream."""
        for block in self.stream.blocks():
            require_time()
            signed = self._class_weights[block.y_index]
            if block.weights is not None:
                signed = signed * block.weights
            yield Part(block.rows, signed, block.first)
