"""Problems on rows in tensors, which several classes or values of C share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates.rounding import upper_sum
from certsvm.kernels.losses import HINGE, Loss
from certsvm.problem.base import BaseProblem
from certsvm.problem.objective import Objective
from certsvm.problem.rows import Vector
from certsvm.problem.sizes import Sizes, require_both_classes
from certsvm.solvers.base import Run
from certsvm.torch.rows import TensorRows


class TensorProblem(BaseProblem):
    """Rows, labels, weights and C, in tensors.

    Parameters
    ----------
    rows : TensorRows
        The validated data.
    signs : Tensor of shape (n_rows,)
        +1 or -1, on the rows' device.
    C : float, default=1.0
        Weight of the loss against the regulariser.
    loss : Loss, default=HINGE
        The loss of a row.
    penalize_intercept : bool, default=True
        Whether the regulariser contains the entry of w behind the intercept.
    row_weights : Tensor of shape (n_rows,), default=None
        Row weights s_k >= 0; None means that all are one.
    """

    where = "rows in tensors"

    def __init__(
        self,
        rows: TensorRows,
        signs: Tensor,
        *,
        C: float = 1.0,
        loss: Loss = HINGE,
        penalize_intercept: bool = True,
        row_weights: Tensor | None = None,
    ) -> None:
        if signs.shape != (rows.n_rows,) or not bool((signs.abs() == 1).all()):
            raise ValueError(f"signs must be +1 or -1, one for each of the {rows.n_rows} rows")
        self.rows, self.signs = rows, signs.contiguous()
        if row_weights is not None:
            # In float64, so that C s_k, the end of the box, is not rounded; contiguous for kernels.
            row_weights = row_weights.double().contiguous()
            if row_weights.shape != (rows.n_rows,):
                raise ValueError(f"weights must have shape ({rows.n_rows},)")
            if not bool((row_weights.isfinite() & (row_weights >= 0.0)).all()):
                raise ValueError("weights must be finite and not negative")
        self.row_weights = row_weights
        # The problems it is trained in lockstep with, and its position among them.
        self.group: ProblemGroup | None = None
        self.number = 0
        super().__init__(sizes_of(rows, row_weights), Objective(C, loss, penalize_intercept))
        if self.free_intercept:
            require_both_classes(self._extreme_weights())

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
    norms, m, total, least, most = rows.squared_norms, rows.n_rows, float(rows.n_rows), 1.0, 1.0
    if row_weights is not None:
        active = row_weights > 0
        norms, weights, m = norms[active], row_weights[active], int(active.sum())
        least, most = (float(weights.min()), float(weights.max())) if m else (math.inf, 0.0)
        total = upper_sum(float(weights.sum()), m)
    return Sizes(
        n_rows=rows.n_rows,
        n_columns=rows.n_columns,
        intercept_scaling=rows.intercept_scaling,
        m=m,
        weight_sum=total,
        smallest_weight=least,
        largest_weight=most,
        R=math.sqrt(float(norms.max())) if m else 0.0,
    )


class ProblemGroup:
    """Problems on the same rows, trained in lockstep.

    Parameters
    ----------
    problems : sequence of TensorProblem
        Problems on the same rows.
    first : int, default=0
        Position of the first problem among all problems of the source.

    Attributes
    ----------
    runs : dict of Run
        The runs that were started with the first problem and not yet handed out, by problem.
    """

    def __init__(self, problems: Sequence[TensorProblem], first: int = 0) -> None:
        self.problems, self.first = list(problems), first
        self.numbers = range(first, first + len(problems))
        self.runs: dict[int, Run] = {}
        for number, problem in enumerate(problems):
            problem.group, problem.number = self, number
