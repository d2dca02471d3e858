"""Problems on rows in tensors, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
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
        self,
        rows: TensorRows,
        signs: Tensor | Callable[[], Tensor],
        *,
        C: float = 1.0,
        loss: Loss = HINGE,
        penalize_intercept: bool = True,
        row_weights: Tensor | Callable[[], Tensor] | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        self.rows, self._signs, self._row_weights = rows, signs, row_weights
        # The batch that it is trained with, if any, and its position there.
        self.batch: Any = None
        self.number = 0
        if isinstance(signs, Tensor) and (
            signs.shape != (rows.n_rows,) or not bool((signs.abs() == 1).all())
        ):
            raise ValueError(f"signs must be +1 or -1, one for each of the {rows.n_rows} rows")
        if isinstance(row_weights, Tensor):
            if row_weights.shape != (rows.n_rows,):
                raise ValueError(f"weights must have shape ({rows.n_rows},)")
            if not bool((row_weights.isfinite() & (row_weights >= 0.0)).all()):
                raise ValueError("weights must be finite and not negative")
        sizes = sizes_of(rows, self.row_weights) if sizes is None else sizes
        super().__init__(sizes, Objective(C, loss, penalize_intercept))
        if self.free_intercept:
            require_both_classes(self._extreme_weights())

    @cached_property
    def signs(self) -> Tensor:
        """+1 or -1 for each row."""
        signs = self._signs if isinstance(self._signs, Tensor) else self._signs()
        return signs.contiguous()

    @cached_property
    def row_weights(self) -> Tensor | None:
        """The row weights; None if all are one."""
        weights = self._row_weights
        if weights is None:
            return None
        # In float64, so that C s_k, the end of the box, is not rounded; contiguous for kernels.
        return (weights if isinstance(weights, Tensor) else weights()).double().contiguous()

    @cached_property
    def weights(self) -> Vector:
        """The row weights, on the host."""
        if self.row_weights is None:
            return np.ones(self.n_rows)
        weights: Vector = self.row_weights.cpu().numpy()
        return weights

    def has_both_classes(self, which: Tensor) -> bool:
        """Whether some of the rows ``which`` of positive weight are of either sign."""
        least, most = self._extreme_weights(which)
        return bool(most > 0.0 > least)

    def _extreme_weights(self, which: Tensor | None = None) -> Vector:
        """The least and the largest signed weight, of all rows or of those ``which``."""
        signed = self.signs if self.row_weights is None else self.signs * self.row_weights
        ends = torch.stack((signed if which is None else signed[which]).aminmax())
        on_host: Vector = ends.double().cpu().numpy()
        return on_host

    @property
    def largest_rounding(self) -> float:
        """The largest (n_k + 2) |y_k|."""
        return (self.dimension + 2.0) * self.R

    def sample(self, rows: TensorRows, which: Tensor) -> TensorProblem:
        """The problem on a sample of the rows, with C raised in proportion."""
        weights = None if self.row_weights is None else self.row_weights[which]
        share = (
            len(which) / self.n_rows if weights is None else float(weights.sum()) / self.weight_sum
        )
        objective = self.objective.at(self.C / share)
        return TensorProblem(rows, self.signs[which], row_weights=weights, **objective.keywords)


def sizes_of(rows: TensorRows, row_weights: Tensor | None) -> Sizes:
    """The sizes of a problem on rows with weights."""
    m, total, least, most, R = rows.n_rows, float(rows.n_rows), 1.0, 1.0, rows.longest
    if row_weights is not None:
        active = row_weights > 0
        weights, m = row_weights[active], int(active.sum())
        least, most, R = math.inf, 0.0, 0.0
        if m:
            least, most = float(weights.min()), float(weights.max())
            R = math.sqrt(float(rows.squared_norms[active].max()))
        total = upper_sum(float(weights.sum()), m)
    return Sizes(
        n_rows=rows.n_rows,
        n_columns=rows.n_columns,
        intercept_scaling=rows.intercept_scaling,
        m=m,
        weight_sum=total,
        smallest_weight=least,
        largest_weight=most,
        R=R,
    )
