"""A part of a problem's rows, or all of them, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.pass_limits import require_time
from certsvm.problem.rows import Rows, Vector, as_compiled_for

# A kernel call cannot be interrupted; this many stored values take a tenth of a second or so.
_VALUES_PER_CALL = 1 << 25


class Part:
    """Rows in memory, with their labels and weights.

    Parameters
    ----------
    rows : Rows
        The data.
    signed_weights : ndarray of shape (n_rows,)
        label_k * s_k.
    first : int, default=0
        Number of rows in the parts before this one.
    """

    def __init__(self, rows: Rows, signed_weights: Vector, first: int = 0) -> None:
        self.rows = rows
        self.signed_weights = signed_weights
        self.first = first

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle, with arrays that are writeable again."""
        self.__dict__.update({name: as_compiled_for(value) for name, value in state.items()})

    @property
    def span(self) -> slice:
        """The range of its rows among all rows."""
        return slice(self.first, self.first + self.rows.n_rows)

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """The rows of positive weight."""
        active: NDArray[np.int64] = np.flatnonzero(self.signed_weights)
        return active

    def of_active(self, values: Vector) -> Vector:
        """The entries of active rows; ``values`` itself if all rows are active."""
        return values if self.active.size == values.size else values[self.active]

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
        return float(self.of_active(self.rows.product_roundings).max(initial=0.0))

    @cached_property
    def loss_roundings(self) -> Vector:
        """s_k (n_k + 2) |y_k|, to which rounding in the loss of row k is proportional."""
        return self.weights * self.rows.product_roundings

    def slices(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Cut an order of presentation into pieces, between which a pass can be ended."""
        stored_per_row = max(1, self.rows.n_stored // self.rows.n_rows)
        step = max(1, _VALUES_PER_CALL // stored_per_row)
        for start in range(0, order.size, step):
            require_time()
            yield order[start : start + step]
