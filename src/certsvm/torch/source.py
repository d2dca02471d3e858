"""The source of labelled rows in tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates.rounding import Bound
from certsvm.fitting.sources import ClassWeight, Source
from certsvm.parallel import ALONE, Team
from certsvm.problem.base import BaseProblem
from certsvm.problem.objective import HINGE_OBJECTIVE, Objective
from certsvm.problem.rows import Vector
from certsvm.solvers import Solver, Start
from certsvm.torch.data import as_tensor, encoded, float_rows, labels_of, weights_of
from certsvm.torch.newton import TensorNewton, primal_bound
from certsvm.torch.problems import ProblemGroup, TensorProblem, sizes_of
from certsvm.torch.rows import TensorRows
from certsvm.training.result import Result

# Bytes that a problem needs for each row, and that the problems trained in lockstep may take
# together: a share of the free memory of a GPU, or a fixed amount.
_PER_ROW, _SHARE, _ROOM = 104, 0.4, 2.0**31


class TensorSource(Source):
    """Rows in tensors, on a GPU or not.

    Parameters
    ----------
    X : Tensor or array-like of shape (n_rows, n_columns)
        The rows, used in place if they are on the device.
    y : array-like or Tensor of shape (n_rows,)
        Labels.
    sample_weight : array-like or Tensor of shape (n_rows,), default=None
        Row weights >= 0.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows.
    intercept_scaling : float, default=0.0
        Height of the constant column behind the intercept; 0 means no intercept.
    device : torch.device or str, default=None
        The device to train on; None means that of X.
    """

    problem_type = TensorProblem

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        class_weight: ClassWeight = None,
        intercept_scaling: float = 0.0,
        device: torch.device | str | None = None,
    ) -> None:
        self.rows = TensorRows(float_rows(X), intercept_scaling=intercept_scaling, device=device)
        self.n_rows, self.n_columns = self.rows.n_rows, self.rows.n_columns
        if self.n_rows == 0 or self.n_columns == 0:
            missing = "rows" if self.n_rows == 0 else "columns"
            raise ValueError(f"X has no {missing}: shape ({self.n_rows}, {self.n_columns})")
        self.intercept_scaling = intercept_scaling
        y = labels_of(y, self.n_rows)
        classes, self._codes = encoded(y, self.rows.device)
        if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
            raise ValueError(
                "Unknown label type: continuous. Labels must be classes, not quantities."
            )
        self._sample_weight: Tensor | None = None
        if sample_weight is not None:
            self._sample_weight = weights_of(sample_weight, self.n_rows, self.rows.device)
        totals = self._codes.bincount(self._sample_weight, minlength=len(classes))
        super().__init__(classes, totals.double().cpu().numpy(), class_weight)

    def set_class_weight(self, class_weight: ClassWeight) -> None:
        """Weigh the classes; problems in lockstep have the weights from before."""
        super().set_class_weight(class_weight)
        self._group: ProblemGroup | None = None
        self._objective: Objective | None = None

    def _weights_in(self, i: int) -> Tensor | None:
        """The weight of each row in the i-th problem; None if all are one."""
        factors = self.factors_in(i)
        if (factors == 1.0).all():
            return self._sample_weight
        of_rows = as_tensor(factors, self.rows.device)[self._codes]
        return of_rows if self._sample_weight is None else of_rows * self._sample_weight

    def weight_sum(self, i: int) -> float:
        """Sum of the row weights in the i-th problem, rounded up."""
        return sizes_of(self.rows, self._weights_in(i)).weight_sum

    def solver(self, solver: str | Solver, objective: Objective = HINGE_OBJECTIVE) -> Solver:
        """The second-order method, the only solver for tensors."""
        if isinstance(solver, TensorNewton):
            return solver
        if solver not in ("auto", "newton"):
            name = repr(solver) if isinstance(solver, str) else type(solver).__name__
            raise ValueError(
                f"solver {name} does not run on tensors: use 'newton' (or 'auto', which is the "
                "same), an instance of TensorNewton, or NumPy arrays, such as X.cpu().numpy()"
            )
        return TensorNewton()

    def start(
        self, w: Vector, epochs: int, alpha: Any = None, smoothing: float | None = None
    ) -> Start:
        """A warm start, with alpha on the device."""
        if alpha is not None and tuple(alpha.shape) == (self.n_rows,):
            return Start(w, epochs, as_tensor(alpha, self.rows.device), smoothing)
        return Start(w, epochs)

    def problem(self, i: int, objective: Objective) -> TensorProblem:
        """The i-th problem; several classes go in lockstep, so that one pass serves them all."""
        if len(self.positive) == 1:
            return self._problem(i, objective)
        group = self._group
        if group is None or objective != self._objective or i not in group.numbers:
            numbers = range(i, min(i + self._at_once(), len(self.positive)))
            group = self._group = ProblemGroup(
                [self._problem(j, objective) for j in numbers], first=i
            )
            self._objective = objective
        return group.problems[i - group.first]

    def _problem(self, i: int, objective: Objective) -> TensorProblem:
        signs = 2 * (self._codes == self.positive[i]).to(torch.int8) - 1
        return TensorProblem(
            self.rows, signs, row_weights=self._weights_in(i), **objective.keywords
        )

    def finish(self, i: int, problem: BaseProblem, result: Result) -> Result:
        """Release the memory of a group after its last problem."""
        if self._group is not None and problem is self._group.problems[-1]:
            self._group = None
        return result

    def primal_bound(self, problem: TensorProblem, w: Vector, team: Team = ALONE) -> Bound:
        """J(w), in one pass over the rows on their device."""
        return primal_bound(problem, w)

    def _at_once(self) -> int:
        """How many problems fit into memory at the same time."""
        room = _ROOM
        if self.rows.device.type == "cuda":
            room = _SHARE * torch.cuda.mem_get_info(self.rows.device)[0]
        return max(1, int(room / (_PER_ROW * self.n_rows)))
