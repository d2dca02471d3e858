"""The source of labelled rows in tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certsvm.certificates.rounding import Bound
from certsvm.fitting.folds import held_out_rows, row_positions
from certsvm.fitting.sources import ClassWeight, Source
from certsvm.problem.base import HINGE_OBJECTIVE, BaseProblem, Objective, Sizes
from certsvm.problem.rows import Vector
from certsvm.resources import ALONE, Team
from certsvm.solvers import Solver, Start
from certsvm.torch.batch import Batch
from certsvm.torch.data import as_tensor, encoded, float_rows, labels_of, weights_of
from certsvm.torch.newton import TensorNewton, primal_bound
from certsvm.torch.problems import TensorProblem, sizes_of
from certsvm.torch.rounds import Problems
from certsvm.torch.rows import TensorRows, free_memory
from certsvm.training.settings import Result
from certsvm.verification.optimum_intervals import RowSizes

# So many problems are trained together, at least, and so many that a byte for each of them and row
# takes no more than this share of the free memory.
_FEWEST, _MASKS = 3, 0.1


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
        self, X: Any, y: Any, sample_weight: Any = None, *, class_weight: ClassWeight = None,
        intercept_scaling: float = 0.0, device: torch.device | str | None = None,
    ) -> None:  # fmt: skip
        rows = TensorRows(float_rows(X), intercept_scaling=intercept_scaling, device=device)
        if rows.n_rows == 0 or rows.n_columns == 0:
            missing = "columns" if rows.n_rows else "rows"
            raise ValueError(f"X has no {missing}: shape {(rows.n_rows, rows.n_columns)}")
        y, weights = labels_of(y, rows.n_rows), None
        if sample_weight is not None:
            weights = weights_of(sample_weight, rows.n_rows, rows.device)
        if y.ndim == 2:
            codes = (as_tensor(y, rows.device).T == 1).to(torch.int8).contiguous()
            self._hold(rows, codes, np.arange(len(codes)), weights, class_weight)
            return
        classes, codes = encoded(y, rows.device)
        if classes.dtype.kind == "f" and not (classes % 1.0 == 0.0).all():
            raise ValueError("Unknown label type: y has quantities, or labels not finite")
        self._hold(rows, codes.int(), classes, weights, class_weight)

    def _hold(
        self, rows: TensorRows, codes: Tensor, classes: NDArray[Any], weights: Tensor | None,
        class_weight: ClassWeight, numbers: NDArray[np.int64] | None = None,
    ) -> None:  # fmt: skip
        """Hold rows with the code of each; or with a row of codes, 0 or 1, for each class."""
        self.rows, self.n_rows, self.n_columns = rows, rows.n_rows, rows.n_columns
        self.intercept_scaling, self._sample_weight = rows.intercept_scaling, weights
        multilabel = codes.ndim == 2
        self._codes = codes if multilabel else codes[None]
        # The codes of the classes.
        self._numbers = np.arange(classes.size) if numbers is None else numbers
        if multilabel:
            sums = [(row if weights is None else weights[row == 1]).sum() for row in codes]
            totals = torch.stack(sums).double().cpu().numpy()
        else:
            n_codes = int(self._numbers[-1]) + 1 if numbers is None else None
            counts = codes.bincount(weights, minlength=n_codes or 0)
            totals = counts.double().cpu().numpy()[self._numbers]
        super().__init__(classes, totals, class_weight, multilabel=multilabel)

    def set_class_weight(self, class_weight: ClassWeight) -> None:
        """Weigh the classes; problems trained together have the weights from before."""
        super().set_class_weight(class_weight)
        self.plan = Plan()

    def side(self, i: int) -> tuple[int, int]:
        """The column of codes of the i-th problem, and the code of its positive rows."""
        return (i, 1) if self.multilabel else (0, int(self._numbers[self.positive[i]]))

    def side_factors(self, i: int) -> tuple[float, float]:
        """The factors of the weights of positive rows and of others in the i-th problem."""
        factors, positive = self.factors_in(i), self.positive[i]
        # All of the rest have the same factor, that of the class before among them.
        return float(factors[positive]), float(factors[positive - 1])

    def _is_positive(self, i: int) -> Tensor:
        column, code = self.side(i)
        return self._codes[column] == code

    @property
    def weights(self) -> Tensor:
        """The weights of the rows, without factors of classes."""
        if self._sample_weight is None:
            return torch.ones(self.n_rows, dtype=torch.float64, device=self.rows.device)
        return self._sample_weight

    def _weights_in(self, i: int) -> Tensor:
        """The weight of each row in the i-th problem."""
        # Of plain numbers, PyTorch would make single precision.
        factors = self.weights.new_tensor(self.side_factors(i))
        return torch.where(self._is_positive(i), *factors) * self.weights

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
        """The i-th problem, perhaps one of a batch."""
        problem = TensorProblem(
            self.rows, lambda: 2 * self._is_positive(i).to(torch.int8) - 1,
            row_weights=partial(self._weights_in, i),
            sizes=self._sizes(i), **objective.keywords,
        )  # fmt: skip
        if not problem.free_intercept:
            problem.batch, problem.number = self.plan.batch_of(self, i, objective)
        return problem

    def _sizes(self, i: int) -> Sizes:
        """The sizes of the i-th problem."""
        if self.side_factors(i) == (1.0, 1.0):
            return self._whole
        return sizes_of(self.rows, self._weights_in(i))

    @cached_property
    def _whole(self) -> Sizes:
        """The sizes without factors of classes."""
        return sizes_of(self.rows, self.weights)

    def finish(self, i: int, problem: BaseProblem, result: Result) -> Result:
        """Release the memory of a batch after its last problem."""
        self.plan.release(problem)
        return result

    def primal_bound(self, problem: TensorProblem, w: Vector, team: Team = ALONE) -> Bound:
        """J(w), in one pass over the rows on their device."""
        return primal_bound(problem, w)

    @property
    def y(self) -> NDArray[Any]:
        """The labels, if each row has one, on the host."""
        labels: NDArray[Any] = self.classes[self._codes[0].cpu().numpy()]
        return labels

    @property
    def row_weights(self) -> Vector | None:
        """The weights of the rows, on the host; None if all are one."""
        return None if self._sample_weight is None else self._sample_weight.cpu().numpy()

    def folds(
        self, splits: Iterable[tuple[Any, Any]], weights: Vector | None, Cs: Sequence[float]
    ) -> list[TensorFold]:
        """Folds of a cross-validation, which are trained together at the values ``Cs``.

        ``splits`` are the positions of rows to train on and of those held out, and ``weights``
        those of all rows in the error.
        """
        folds = [TensorFold(self, *split, weights) for split in splits]
        plan = Plan([(fold, C) for C in Cs for fold in folds])
        for fold in folds:
            fold.plan = plan
        return folds


class TensorFold(TensorSource):
    """A fold of a cross-validation, as ``fitting.folds.Fold``, without a copy of rows.

    The rows held out have no weight in training.
    """

    def __init__(self, whole: TensorSource, train: Any, test: Any, weights: Vector | None) -> None:
        n, device = whole.n_rows, whole.rows.device
        self.test = row_positions(test, n, "held out")
        trained = torch.as_tensor(row_positions(train, n, "to train on"), device=device)
        of_rows = trained.bincount(minlength=n).double()
        if whole._sample_weight is not None:
            of_rows *= whole._sample_weight
        codes = whole._codes[0]
        present = codes[trained].bincount(minlength=whole.classes.size).cpu().numpy() > 0
        numbers = present.nonzero()[0]
        self._hold(whole.rows, codes, whole.classes[present], of_rows, whole.class_weight, numbers)
        self._where = torch.as_tensor(self.test, device=device)
        sizes = RowSizes(
            whole.rows.squared_norms[self._where].cpu().numpy(),
            np.full(self.test.size, self.dimension),
        )
        truth = np.where(present, present.cumsum() - 1, -1)[codes[self._where].cpu().numpy()]
        self.held_out = held_out_rows(sizes, truth, weights, self.test)

    def products(self, w: Vector) -> Vector:
        """Products of the rows held out with a weight vector."""
        return np.concatenate([block[:, 0].cpu().numpy() for block in self._scores(w[None])])

    def error(self, results: Sequence[Result]) -> float:
        """The share of the rows held out that the models of all classes get wrong, by weight."""
        scores = self._scores(np.array([result.w for result in results]))
        chosen = [s.argmax(1) if s.shape[1] > 1 else (s[:, 0] > 0.0).long() for s in scores]
        return self.held_out.error(torch.cat(chosen).cpu().numpy())

    def _scores(self, W: Vector) -> Iterator[Tensor]:
        """Products of the rows held out (rows) with weight vectors (columns), in blocks."""
        rows, d = self.rows, self.n_columns
        on_device = torch.as_tensor(W, device=rows.device)
        for which in self._where.split(rows.at_once):
            scores = rows.gathered(which).double() @ on_device[:, :d].T
            yield scores + rows.intercept_scaling * on_device[:, d:].sum(1)


Member: TypeAlias = tuple[TensorSource, int, Objective]
"""A source, one of its problems, and the objective."""


class Plan:
    """The order in which problems on the same rows are trained, and the batch that is in training.

    A batch has as many problems, from one on, as memory has room for.

    Parameters
    ----------
    order : sequence of tuple
        Sources and values of C; for others, a batch has problems of one source and C.
    """

    def __init__(self, order: Sequence[tuple[TensorSource, float]] = ()) -> None:
        self._order = order
        self._batch: Batch | None = None
        # The positions of sources, problems and objectives in the batch.
        self._members: dict[Member, int] = {}

    def batch_of(
        self, source: TensorSource, i: int, objective: Objective
    ) -> tuple[Batch | None, int]:
        """The batch of a problem, and its position there."""
        member = (source, i, objective)
        if self._batch is None or member not in self._members:
            planned = (source, objective.C) in self._order
            order = self._order if planned else [(source, objective.C)]
            members = [(s, j, objective.at(C)) for s, C in order for j in range(len(s.positive))]
            if len(members) < _FEWEST:
                return None, 0
            first = members.index(member)
            most = int(_MASKS * free_memory(source.rows.device) / source.n_rows)
            members = members[first : first + max(1, most)]
            self._members = {member: position for position, member in enumerate(members)}
            starts = None if planned or source.starts is None else source.starts[i:][: len(members)]
            loss = objective.loss
            self._batch = Batch(source.rows, loss, _problems(members), starts)
        return self._batch, self._members[member]

    def release(self, problem: BaseProblem) -> None:
        """Forget the batch if this problem, which has been trained, is its last."""
        if isinstance(problem, TensorProblem) and problem.number == len(self._members) - 1:
            self._batch, self._members = None, {}


def _problems(members: Sequence[Member]) -> Problems:
    """The problems of a batch, in float64."""
    source = members[0][0]
    sources = list(dict.fromkeys(source for source, _, _ in members))

    def each(values: Iterable[Any], dtype: torch.dtype) -> Tensor:
        return torch.tensor(list(values), dtype=dtype, device=source.rows.device)

    sides = each((source.side(i) for source, i, _ in members), torch.int32)
    column, positive = sides.T.contiguous()
    C = each((objective.C for _, _, objective in members), torch.float64)
    factors = each((source.side_factors(i) for source, i, _ in members), torch.float64)
    return Problems(
        source._codes, torch.stack([source.weights for source in sources]),
        members[0][2].loss.is_smooth, column, positive,
        fold=each((sources.index(source) for source, _, _ in members), torch.int32),
        factors=None if bool((factors == 1.0).all()) else factors, C=C, sigma=torch.zeros_like(C),
    )  # fmt: skip
