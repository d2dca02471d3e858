"""The source of labelled rows in tensors."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certsvm.certificates.rounding import Bound, upper_sum
from certsvm.fitting.sources import ClassWeight, Source
from certsvm.problem.base import HINGE_OBJECTIVE, BaseProblem, Objective, Sizes
from certsvm.problem.rows import Vector
from certsvm.resources import ALONE, Team
from certsvm.solvers import Solver, Start
from certsvm.torch.classes import MASKS, ClassGroup
from certsvm.torch.data import as_tensor, encoded, float_rows, labels_of, weights_of
from certsvm.torch.newton import TensorNewton, primal_bound
from certsvm.torch.problems import ClassProblems, TensorProblem, sizes_of
from certsvm.torch.rows import TensorRows, free_memory
from certsvm.training.settings import Result

# So many classes are trained together, at least.
_FEWEST = 3


class TensorSource(Source):
    """Rows in tensors, on a GPU or not.

    Parameters
    ----------
    X : Tensor or array-like of shape (n_rows, n_columns)
        The rows, used in place if they are on the device.
    y : array-like or Tensor of shape (n_rows,) or (n_rows, n_classes)
        Labels; or zeros and ones, which say whether a row is of each class.
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
        self._sample_weight: Tensor | None = None
        if sample_weight is not None:
            self._sample_weight = weights_of(sample_weight, self.n_rows, self.rows.device)
        multilabel = y.ndim == 2
        if multilabel:
            # A row for each class.
            self._codes = (as_tensor(y, self.rows.device).T == 1).contiguous()
            classes, used = np.arange(len(self._codes)), self._sample_weight
            of_classes = [(own if used is None else used[own]).sum() for own in self._codes]
            totals = torch.stack(of_classes)
        else:
            classes, self._codes = encoded(y, self.rows.device)
            if classes.dtype.kind == "f" and not (classes % 1.0 == 0.0).all():
                raise ValueError("Unknown label type: y has quantities, or labels not finite")
            totals = self._codes.bincount(self._sample_weight, minlength=len(classes))
        totals_on_host = totals.double().cpu().numpy()
        super().__init__(classes, totals_on_host, class_weight, multilabel=multilabel)

    def set_class_weight(self, class_weight: ClassWeight) -> None:
        """Weigh the classes; problems trained together have the weights from before."""
        super().set_class_weight(class_weight)
        self._group: ClassGroup | None = None
        self._objective: Objective | None = None

    def _weights_in(self, i: int) -> Tensor | None:
        """The weight of each row in the i-th problem; None if all are one."""
        factors = self.factors_in(i)
        if (factors == 1.0).all():
            return self._sample_weight
        if self.multilabel:
            of_rows = torch.where(self._codes[i], self.factors[i], 1.0).double()
        else:
            of_rows = as_tensor(factors, self.rows.device)[self._codes]
        return of_rows if self._sample_weight is None else of_rows * self._sample_weight

    def weight_sum(self, i: int) -> float:
        """Sum of the row weights in the i-th problem, rounded up."""
        return self._sizes(i).weight_sum

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
        """The i-th problem; several classes are trained together."""
        weighted = self._sample_weight is not None or (self.factors_in(i) != 1.0).any()
        problem = TensorProblem(
            self.rows, partial(self._signs, i),
            row_weights=partial(self._weights_in, i) if weighted else None,
            sizes=self._sizes(i), **objective.keywords,
        )  # fmt: skip
        if self.multilabel or len(self.positive) < _FEWEST or problem.free_intercept:
            return problem
        group = self._group
        if group is None or objective != self._objective or i not in group.numbers:
            at_once = int(MASKS * free_memory(self.rows.device) / self.n_rows)
            numbers = range(i, min(i + max(1, at_once), len(self.positive)))
            positive = np.array(self.positive[i : numbers.stop])
            problems = ClassProblems(
                self.rows, self._codes, len(self.classes), positive, self.factors[positive],
                self._sample_weight, objective,
            )  # fmt: skip
            group = self._group = ClassGroup(problems, i)
            self._objective = objective
        problem.group, problem.number = group, i
        return problem

    def _signs(self, i: int) -> Tensor:
        own = self._codes[i] if self.multilabel else self._codes == self.positive[i]
        return 2 * own.to(torch.int8) - 1

    def _sizes(self, i: int) -> Sizes:
        """The sizes of the i-th problem."""
        if self.multilabel:
            return sizes_of(self.rows, self._weights_in(i))
        n_active, least, most = self._by_class
        factors = self.factors_in(i)
        used = (factors > 0.0) & (n_active > 0)
        weight_sum = float((factors * self.totals)[used].sum())
        return Sizes(
            n_rows=self.n_rows,
            n_columns=self.n_columns,
            intercept_scaling=self.intercept_scaling,
            m=int(n_active[used].sum()),
            weight_sum=upper_sum(weight_sum, self.n_rows + 2),
            smallest_weight=float((factors * least).min(where=used, initial=math.inf)),
            largest_weight=float((factors * most).max(where=used, initial=0.0)),
            R=self.rows.longest,
        )

    @cached_property
    def _by_class(self) -> tuple[NDArray[np.int64], Vector, Vector]:
        """The number of rows of positive weight of each class, and their extreme weights."""
        n = len(self.classes)
        weights, codes = self._sample_weight, self._codes
        if weights is None:
            return codes.bincount(minlength=n).cpu().numpy(), np.ones(n), np.ones(n)
        active = weights > 0.0
        weights, codes = weights[active], codes[active]
        least = torch.full((n,), math.inf, dtype=torch.float64, device=codes.device)
        least.scatter_reduce_(0, codes, weights, "amin")
        most = torch.zeros_like(least).scatter_reduce_(0, codes, weights, "amax")
        return codes.bincount(minlength=n).cpu().numpy(), least.cpu().numpy(), most.cpu().numpy()

    def finish(self, i: int, problem: BaseProblem, result: Result) -> Result:
        """Release the memory of a group after its last problem."""
        if self._group is not None and i == self._group.numbers[-1]:
            self._group = None
        return result

    def primal_bound(self, problem: TensorProblem, w: Vector, team: Team = ALONE) -> Bound:
        """J(w), in one pass over the rows on their device."""
        return primal_bound(problem, w)
