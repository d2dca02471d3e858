"""Sources of labelled rows: what the loop over classes needs to know of the data.

A source knows its classes and their weights, the shape of the data and what identifies it, and
makes the binary problem of each class at a given C. Rows in memory and streams are here; clusters
(``certsvm.dask``) and tensors (``certsvm.torch``) bring sources of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import tidy
from certsvm.certificates.primal import primal_bound
from certsvm.certificates.rounding import Bound
from certsvm.matrices import exact_labels
from certsvm.problem.base import HINGE_OBJECTIVE, BaseProblem, Objective, SummableProblem
from certsvm.problem.problems import Problem, StreamedProblem
from certsvm.problem.rows import Rows, Vector, dimension_of
from certsvm.resources import ALONE, Team
from certsvm.scalars import plain
from certsvm.solvers import Solver, Start, make_solver
from certsvm.solvers.block_dcd import cache_room
from certsvm.training.settings import Result
from certsvm.verification.verify import positive_classes

if TYPE_CHECKING:
    from certsvm.files.streams import BlockStream
    from certsvm.verification.evidence import Fingerprint

# Up to so many columns, Newton may be at work on a stream, with its matrices.
_NEWTON_COLUMNS = 5000

ClassWeight: TypeAlias = dict[Any, float] | str | None
"""Factors for the weights of each class's rows: by label, "balanced", or None for ones."""


Fit: TypeAlias = Callable[[int], Result]
"""Trains the i-th problem."""


class Source(ABC):
    """Labelled rows.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels, ascending.
    totals : ndarray of shape (n_classes,)
        The total weight of each class's rows.
    class_weight : dict, "balanced" or None
        Factors for the weights of each class's rows; with more than two classes, in the problem of
        that class only.
    multilabel : bool, default=False
        Whether a row may be of several classes or of none. Each class is then a problem, also if
        there are two.

    Attributes
    ----------
    classes, totals, multilabel : ndarray, ndarray, bool
        As given.
    factors : ndarray of shape (n_classes,)
        What ``class_weight`` stands for.
    problem_type : type
        The kind of problem that it makes.
    positive : list of int
        The position of the class on the positive side of each problem.
    labels : list
        These classes.
    n_rows, n_columns : int
        Shape of the data.
    intercept_scaling : float
        The augmentation rho; zero means that there is no intercept.
    feature_names : sequence of str, or None
        Names of the columns.
    origin : dict
        What a model has to know of the file that the rows come from, in types of JSON:
        "zero_based" of libsvm text, "one_hot" and "label" of a table.
    float32 : bool
        Whether the values are float32: whoever reads them from text has to round them.
    starts : sequence of Start or None
        Where the problems of the running fit begin, for sources that train several together.
    """

    problem_type: type[BaseProblem]
    n_rows: int
    n_columns: int
    intercept_scaling: float
    feature_names: Sequence[str] | None = None
    origin: Mapping[str, Any] = MappingProxyType({})
    float32 = False
    starts: Sequence[Start] | None = None

    def __init__(
        self, classes: NDArray[Any], totals: Vector, class_weight: ClassWeight = None, *,
        multilabel: bool = False,
    ) -> None:  # fmt: skip
        self.classes, self.totals, self.multilabel = classes, totals, multilabel
        self.positive = positive_classes(classes.size, multilabel=multilabel)
        self.labels = [classes[i] for i in self.positive]
        self.set_class_weight(class_weight)

    def set_class_weight(self, class_weight: ClassWeight) -> None:
        """Weigh the classes."""
        if self.multilabel and class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' is for one label a row: give factors, such as {0: 9.5}"
            )
        self.class_weight = class_weight
        self.factors = class_factors(class_weight, self.classes, self.totals)
        if self.multilabel:
            # A column of zeros, or of ones, is a problem like others.
            return
        # With more classes, each problem has the rows of the others, whatever their factors.
        weighed = self.totals * (self.factors if self.classes.size == 2 else 1.0)
        present = self.classes[weighed > 0]
        if present.size < 2:
            which = f"only one class, {tidy(present[0])}" if present.size else "no class at all"
            needed = "A classifier needs rows of positive weight of at least 2 classes"
            raise ValueError(f"{needed}, but the data contains {which}.")

    @property
    def dimension(self) -> int:
        """Length of weight vectors."""
        return dimension_of(self.n_columns, self.intercept_scaling)

    def factors_in(self, i: int) -> Vector:
        """The factors of the classes' rows in the i-th problem.

        With two classes, each keeps its factor. With more, the factor of the positive class
        multiplies its rows, and all others weigh 1, as in liblinear and scikit-learn: a factor
        moves the boundary of its own class and leaves the other problems alone.
        """
        if self.classes.size == 2 and not self.multilabel:
            return self.factors
        return np.where(np.arange(self.classes.size) == self.positive[i], self.factors, 1.0)

    def weight_sum(self, i: int) -> float:
        """Of the rows' weights in the i-th problem, added in any order."""
        return float(self.totals @ self.factors_in(i))

    @abstractmethod
    def problem(self, i: int, objective: Objective) -> BaseProblem:
        """The i-th problem: a class against all others."""

    def start(
        self, w: Vector, epochs: int, alpha: Any = None, smoothing: float | None = None
    ) -> Start:
        """A warm start from the end of an earlier fit, perhaps on another kind of data."""
        fits = isinstance(alpha, np.ndarray) and alpha.shape == (self.n_rows,)
        return Start(w, epochs, alpha if fits else None, smoothing)

    def scaled_start(self, end: Start, ratio: float) -> Start:
        """A warm start for ``ratio`` times the C at which an earlier fit ended."""
        # Steps of SGD shrink with the epochs. An answer for a larger C is longer; with steps as
        # small as it had, it would take too long to come down.
        epochs = max(1, round(end.epochs * min(1.0, ratio)))
        alpha = None if end.alpha is None else ratio * end.alpha
        return self.start(end.w, epochs, alpha, end.smoothing)

    def solver(self, solver: str | Solver, objective: Objective = HINGE_OBJECTIVE) -> Solver:
        """The solver for a name, on this kind of data and for this objective."""
        return make_solver(solver)

    def at_once(self, solver: Solver, n_jobs: int) -> int:
        """How many problems to train at the same time, each with a share of ``n_jobs``."""
        return 1

    def in_threads(self, fit: Fit, at_once: int, n_jobs: int) -> Fit:
        """How to call ``fit`` for each problem, ``at_once`` at a time, in threads of their own."""
        return fit

    def finish(self, i: int, problem: BaseProblem, result: Result) -> Result:
        """Called with a trained problem and its result; returns the result to report."""
        return result

    def primal_bound(self, problem: Any, w: Vector, team: Team = ALONE) -> Bound:
        """J(w) of one of the source's problems, in one pass over the rows."""
        return primal_bound(problem, w, team)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Of rows and labels; None where it cannot be had."""
        return None


class MemorySource(Source):
    """Rows in memory.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
        The rows.
    y : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Labels; or zeros and ones, which say whether a row is of each class.
    weights : ndarray of shape (n_rows,), default=None
        Weights >= 0 of the rows.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows.
    intercept_scaling : float, default=0.0
        Height of the constant column behind the intercept; 0 means no intercept.
    feature_names : sequence of str, default=None
        Names of the columns.
    origin : dict, default={}
        What a model has to know of the file that the rows come from.

    Attributes
    ----------
    X, y : array or sparse matrix, ndarray
        As given.
    row_weights : ndarray of shape (n_rows,) or None
        The weights, without those of classes.
    y_index : ndarray of shape (n_rows,)
        The position of each row's label among the classes, if each row has one.

    Examples
    --------
    >>> source = MemorySource(np.eye(3), np.array(["a", "b", "a"]))
    >>> [str(label) for label in source.labels], source.problem(0, Objective()).labels.tolist()
    (['b'], [-1.0, 1.0, -1.0])
    """

    problem_type = Problem

    def __init__(
        self, X: Any, y: NDArray[Any], weights: Vector | None = None, *,
        class_weight: ClassWeight = None, intercept_scaling: float = 0.0,
        feature_names: Sequence[str] | None = None,
        origin: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.X, self.y = X, exact_labels(y)
        self.row_weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        multilabel = self.y.ndim == 2
        if multilabel:
            refuse_other_indicators(self.y)
            classes = np.arange(self.y.shape[1])
            totals = self.y.sum(0) if weights is None else weights @ self.y
        else:
            classes, self.y_index = classes_of(self.y)
            totals = np.bincount(self.y_index, weights=weights, minlength=classes.size)
        super().__init__(classes, totals.astype(np.float64), class_weight, multilabel=multilabel)
        self.rows = Rows(X, intercept_scaling=intercept_scaling)
        self.n_rows, self.n_columns = self.rows.n_rows, self.rows.n_columns
        self.intercept_scaling = self.rows.intercept_scaling
        self.feature_names, self.origin = feature_names, origin
        self.float32 = getattr(X, "dtype", None) == np.float32

    def problem(self, i: int, objective: Objective) -> Problem:
        """The i-th problem."""
        own, factors, weights = self.positive[i], self.factors_in(i), self.row_weights
        in_class = self.y[:, i] == 1 if self.multilabel else self.y_index == own
        if not (factors == 1.0).all():
            # All of the rest have the same factor, that of the class before among them.
            of_rows: Vector = np.where(in_class, factors[own], factors[own - 1])
            weights = of_rows if weights is None else of_rows * weights
        signs = np.where(in_class, 1.0, -1.0)
        return Problem(self.rows, signs, weights=weights, **objective.keywords)

    def at_once(self, solver: Solver, n_jobs: int) -> int:
        """As many as there are threads."""
        return min(n_jobs, len(self.positive))

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Of rows and labels."""
        from certsvm.verification.evidence import Fingerprint

        return Fingerprint.of(self.X, self.y)


class StreamSource(Source):
    """Rows that are read anew in each pass.

    Parameters
    ----------
    stream : BlockStream
        The rows, with their ``intercept_scaling``.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows.
    """

    problem_type = StreamedProblem

    def __init__(self, stream: BlockStream, class_weight: ClassWeight = None) -> None:
        self.stream = stream
        totals = np.array([survey.weight_sum for survey in stream.surveys])
        super().__init__(stream.classes, totals, class_weight)
        self.n_rows, self.n_columns = stream.n_rows, stream.n_columns
        self.intercept_scaling = stream.intercept_scaling
        self.feature_names = getattr(stream.source, "feature_names", None)
        self.origin = getattr(stream.source, "origin", {})
        self.float32 = stream.float32

    def problem(self, i: int, objective: Objective) -> StreamedProblem:
        """The i-th problem."""
        factors = self.factors_in(i)
        return StreamedProblem(self.stream, self.positive[i], objective, class_factors=factors)

    def at_once(self, solver: Solver, n_jobs: int) -> int:
        """As many as memory holds, if a half of it is for caches; they make passes together."""
        # Vectors, up to five numbers per row, and Newton's matrices.
        numbers = solver.n_vectors * self.dimension + 5 * self.n_rows
        if solver.problem_type is SummableProblem and self.dimension <= _NEWTON_COLUMNS:
            numbers += 3 * self.dimension**2
        return max(1, min(len(self.positive), cache_room(self.stream) // (16 * numbers)))

    def in_threads(self, fit: Fit, at_once: int, n_jobs: int) -> Fit:
        """All make their passes together."""
        from certsvm.files.streams import SharedPasses

        n, room = len(self.positive), cache_room(self.stream) // at_once
        return SharedPasses(self.stream, n, at_once, n_jobs, room).member(fit)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Of rows and labels, however they are cut into blocks."""
        return self.stream.fingerprint


def refuse_other_indicators(Y: Any) -> None:
    """Raise a ValueError unless a matrix of labels, an array or a tensor, is of zeros and ones."""
    if not bool(((Y == 0) | (Y == 1)).all()):
        raise ValueError(
            f"y of shape {tuple(Y.shape)} must be zeros and ones, which say whether a row has each "
            "of the labels; several outputs of another kind need an estimator for each column"
        )


def classes_of(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels that occur, and the position of each row's label among them.

    Examples
    --------
    >>> classes_of(np.array([3, -1, 3]))
    (array([-1,  3]), array([1, 0, 1]))
    """
    if y.size and y.dtype.kind in "biuf":
        # Two numbers are the usual case, and need no sorting.
        least, largest = y.min(), y.max()
        second = y == largest
        if least < largest and (second | (y == least)).all():
            return np.array([least, largest], dtype=y.dtype), second.astype(np.intp)
    classes = np.unique(y)
    return classes, np.searchsorted(classes, y)


def class_factors(
    class_weight: ClassWeight, classes: NDArray[Any], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Factor for each class, in the order of ``classes``.

    "balanced" gives every class the same total weight, so that a row of weight two is the same as
    two rows.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        What the user asks for.
    classes : ndarray of shape (n_classes,)
        The labels.
    totals : ndarray of shape (n_classes,)
        The total weight of each class's rows.

    Examples
    --------
    >>> class_factors("balanced", np.array(["a", "b"]), np.array([3.0, 1.0]))
    array([0.66666667, 2.        ])
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        # A class without weight has no rows to multiply; any factor will do.
        balanced: Vector = totals.sum() / (classes.size * np.where(totals > 0.0, totals, 1.0))
        return balanced
    if not isinstance(class_weight, dict):
        raise ValueError(f'class_weight must be a dict, "balanced" or None, got {class_weight!r}')
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    # A class may be missing from the data (a fold of a cross-validation); a key that matches
    # nothing while a label has no key is a mistake.
    if unknown and any(label not in class_weight for label in known):
        keys = f"class_weight has keys {list(map(plain, unknown))!r} that are not labels"
        raise ValueError(f"{keys}; the labels are {known!r} (mind the type: '1' is not 1)")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in known])
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        shown = {plain(label): plain(weight) for label, weight in class_weight.items()}
        raise ValueError(f"class_weight must be finite and not negative, got {shown!r}")
    return factors
