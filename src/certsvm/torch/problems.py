"""Problems on rows in tensors, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from certsvm.certificates.rounding import upper_sum
from certsvm.kernels.losses import HINGE, Loss
from certsvm.problem.base import BaseProblem, Objective, Sizes, require_both_classes
from certsvm.problem.rows import Vector
from certsvm.torch.rows import TensorRows


class TensorProblem(BaseProblem):
    """Rows, labels, weights and C, in tensors.

    Parameters
    ----------
    rows : TensorRows
        The validated data.
    signs : Tensor of shape (n_rows,), or callable
        +1 or -1, on the rows' device; or a function that returns them, called when needed.
    C : float, default=1.0
        Weight of the loss against the regulariser.
    loss : Loss, default=HINGE
        The loss of a row.
    penalize_intercept : bool, default=True
        Whether the regulariser contains the entry of w behind the intercept.
    row_weights : Tensor of shape (n_rows,), or callable, default=None
        Row weights s_k >= 0, or a function that returns them; None means that all are one.
    sizes : Sizes, default=None
        The sizes, if they are known.
    """

    where = "rows in tensors"

    def __init__(
        self, rows: TensorRows, signs: Tensor | Callable[[], Tensor], *, C: float = 1.0,
        loss: Loss = HINGE, penalize_intercept: bool = True,
        row_weights: Tensor | Callable[[], Tensor] | None = None, sizes: Sizes | None = None,
    ) -> None:  # fmt: skip
        self.rows, self._signs, self._row_weights = rows, signs, row_weights
        # The batch that it is trained with, if any, and its position there.
        self.batch: Any = None
        self.number = 0

        def one_per_row(values: Tensor, fit: Tensor) -> bool:
            return values.shape == (rows.n_rows,) and bool(fit.all())

        each = f"one for each of the {rows.n_rows} rows"
        if isinstance(signs, Tensor) and not one_per_row(signs, signs.abs() == 1):
            raise ValueError(f"signs must be +1 or -1, {each}")
        if isinstance(row_weights, Tensor) and not one_per_row(
            row_weights, row_weights.isfinite() & (row_weights >= 0.0)
        ):
            raise ValueError(f"weights must be finite and not negative, {each}")
        sizes = sizes_of(rows, self.row_weights) if sizes is None else sizes
        super().__init__(sizes, Objective(C, loss, penalize_intercept))
        # The largest (n_k + 2) |y_k|.
        self.largest_rounding = (self.dimension + 2.0) * self.R
        if self.free_intercept:
            signed = self.signs * self.row_weights
            require_both_classes(torch.stack(signed.aminmax()).cpu().numpy())

    @cached_property
    def signs(self) -> Tensor:
        """+1 or -1 for each row, in float64."""
        return (self._signs if isinstance(self._signs, Tensor) else self._signs()).double()

    @cached_property
    def row_weights(self) -> Tensor:
        """The row weights, in float64, so that C s_k, the end of the box, is not rounded."""
        weights = self._row_weights
        if weights is None:
            return torch.ones(self.rows.n_rows, dtype=torch.float64, device=self.rows.device)
        return (weights if isinstance(weights, Tensor) else weights()).double()

    @cached_property
    def weights(self) -> Vector:
        """The row weights, on the host."""
        weights: Vector = self.row_weights.cpu().numpy()
        return weights


def sizes_of(rows: TensorRows, weights: Tensor) -> Sizes:
    """The sizes of a problem on rows with weights."""
    active = weights > 0.0
    m, total, least, most, square = torch.stack(
        [
            active.sum(), weights.sum(), torch.where(active, weights, math.inf).min(),
            weights.max(), torch.where(active, rows.squared_norms, 0.0).max(),
        ]
    ).tolist()  # fmt: skip
    return Sizes(
        rows.n_rows, rows.n_columns, rows.intercept_scaling, int(m), upper_sum(total, int(m)),
        least, most, math.sqrt(square),
    )  # fmt: skip
