"""A problem on a stream, whose rows are read anew in each pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from certsvm.pass_limits import require_time
from certsvm.problem.base import PartedProblem
from certsvm.problem.objective import HINGE_OBJECTIVE, Objective
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
from certsvm.problem.sizes import one_against_rest, require_both_classes, sizes_of_classes


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
        self,
        stream: Any,
        positive: int,
        objective: Objective = HINGE_OBJECTIVE,
        *,
        class_factors: Vector | None = None,
    ) -> None:
        self.stream = stream
        self._weights: Vector | None = None
        self.nbytes, self.cache_bytes = stream.nbytes, stream.cache_bytes
        factors = np.ones(stream.classes.size) if class_factors is None else class_factors
        self._class_weights = one_against_rest(factors, positive)
        sizes = sizes_of_classes(
            stream.surveys, factors, stream.n_columns, stream.intercept_scaling, stream.R
        )
        super().__init__(sizes, objective)
        if self.free_intercept:
            totals = np.array([survey.weight_sum for survey in stream.surveys])
            require_both_classes(self._class_weights * totals)

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
