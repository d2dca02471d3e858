"""Scores of rows, and what certificates tell about those of the exact optimum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.matrices import checked_matrix
from certsvm.verification.interval_arithmetic import Vector
from certsvm.verification.optimum_intervals import (
    Array,
    OptimumIntervals,
    RowSizes,
    status_of,
    unflippable,
)

_ROWS_AT_ONCE = 8192


def products(X: Any, coef: Any) -> NDArray[np.float64]:
    """``X @ coef.T`` in float64, of an array or a CSR matrix; ``coef`` may be sparse, too."""
    if X.dtype == np.float64:
        scores = X @ coef.T
        return scores.toarray() if sp.issparse(scores) else np.asarray(scores)
    scores = np.empty((X.shape[0], coef.shape[0]))
    # In blocks, to bound the size of the float64 copies.
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        scores[part] = products(X[part].astype(np.float64), coef)
    return scores


def linear_scores(
    X: Any, coef: NDArray[np.float64], intercept: NDArray[np.float64], *, allow_fewer: bool = False
) -> NDArray[np.float64]:
    """Scores ``X @ coef.T + intercept``, in float64.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows.
    coef : ndarray of shape (n_problems, n_features)
        Weights of the columns.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    allow_fewer : bool, default=False
        Whether X may have fewer columns than ``coef``, the rest being zero.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_problems)
        Finite; a ValueError names the first row whose scores are not.
    """
    X = checked_matrix(X)
    n_columns, n_features = X.shape[1], coef.shape[1]
    if n_columns > n_features or (n_columns < n_features and not allow_fewer):
        hint = "" if n_columns > n_features else "; predict(X, allow_fewer=True) takes them as zero"
        raise ValueError(f"X has {n_columns} columns, the model {n_features}{hint}")
    scores = products(X, coef[:, :n_columns]) + intercept
    if not np.isfinite(scores).all():
        k = int(np.argmin(np.isfinite(scores).all(axis=1)))
        raise ValueError(f"row {k} of X contains NaN, infinity, or values too large to add up")
    return scores


def is_stream(X: Any) -> bool:
    """Whether X is a source of blocks or an iterator over blocks, and not rows themselves."""
    return callable(X) or isinstance(X, Iterator)


def blocks_of(X: Any, y: Any = None, sample_weight: Any = None) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, labels and weights: of a stream, block by block; else all at once.

    Parameters
    ----------
    X : rows, callable or iterator
        A stream yields blocks ``X``, ``(X, y)`` or ``(X, y, weights)``. A callable begins a pass
        over one, as for ``fit_stream``.
    y, sample_weight : array-like, default=None
        None for a stream.

    Examples
    --------
    >>> [X for X, y, weights in blocks_of(iter([([[1.0]], [0]), [[2.0]]]))]
    [[[1.0]], [[2.0]]]
    """
    if not is_stream(X):
        yield X, y, sample_weight
        return
    if y is not None or sample_weight is not None:
        raise ValueError("a stream of blocks brings its own labels and weights: pass X alone")
    for block in X() if callable(X) else X:
        if isinstance(block, tuple):
            if not 1 <= len(block) <= 3:
                raise ValueError(
                    f"a block must be X, (X, y) or (X, y, weights), got {len(block)} parts"
                )
            yield (*block, None, None)[:3]
        else:
            yield block, None, None


def positive_classes(n_classes: int) -> list[int]:
    """The class on the positive side of each binary problem, by position."""
    return [1] if n_classes == 2 else list(range(n_classes))


def binary_problems(
    classes: NDArray[Any], class_weight: Vector, y: Any, given: Any, n_rows: int, *,
    multilabel: bool = False,
) -> Iterator[tuple[Vector, Vector]]:  # fmt: skip
    """Signs and weights of rows in each problem, of their labels and given weights (None: one)."""
    from certsvm.verification import verify

    given = verify.checked_weights(1.0 if given is None else given, n_rows)
    if multilabel:
        columns = verify.columns_of_labels(y, (n_rows, len(classes)))
        for labels, factor in zip(columns.T, class_weight, strict=True):
            factors = np.array([1.0, factor])
            yield from binary_problems(np.arange(2), factors, labels, given, n_rows)
        return
    position = verify.positions(classes, y, n_rows)
    for positive in positive_classes(len(classes)):
        signs = np.where(position == positive, 1.0, -1.0)
        yield signs, verify.weights_in_problem(class_weight, position, positive, given)


class OptimumMixin:
    """Intervals that contain what the exact optimum would answer.

    They follow from the certificates: the smaller the gap, the narrower. Where nothing is proved,
    as after ``partial_fit``, they are infinite. A solver without a dual bound leaves L = 0, so its
    intervals are finite, but wide. About an intercept without penalty
    (``penalize_intercept=False``) nothing is proved, nor about scores, so that only
    ``coef_interval`` answers.

    The certificates of a model from a file are claims, and intervals are as true as these: see
    ``verify_model``.
    """

    multilabel_ = False

    def _fitted(self, name: str) -> Any:
        """What a model has under this name, and an estimator under the same with an underscore."""
        return getattr(self, f"{name}_" if hasattr(self, f"{name}_") else name)

    def _optimum(self) -> OptimumIntervals:
        return OptimumIntervals(*map(self._fitted, ("coef", "intercept", "certificates")))

    def _scores_and_sizes(self, X: Any) -> tuple[Array, RowSizes]:
        """The scores of rows in each problem, and the sizes of the rows."""
        raise NotImplementedError

    def _to_host(self, values: Any) -> Any:
        """Labels or weights, where NumPy can read them."""
        return values

    def _like(self, X: Any, values: NDArray[Any], *, upwards: bool | None = None) -> Any:
        """An answer as what X is, where X is; ends of intervals are rounded outwards."""
        return values

    def decision_interval(self, X: Any) -> Any:
        """Intervals that contain ``decision_function`` of the exact optimum.

        The exact optimum is the minimiser of J for the training data, which training to any ``tol``
        approaches. It lies within ``sqrt(2 * gap)`` of the weights, by strong convexity. All
        rounding is allowed for.

        Parameters
        ----------
        X : rows, callable or iterator
            The rows, as for ``decision_function``. An iterator over blocks ``X``, ``(X, y)`` or
            ``(X, y, weights)``, or a function that returns one, such as
            ``certsvm.files.BlockFile``, is answered block by block.

        Returns
        -------
        low, high : ndarray, or tensor for a tensor, of shape (n_samples,) or (n_samples, n_classes)
            The ends; for a stream, an iterator over such pairs.

        Raises
        ------
        ValueError
            The intercept is not in the penalty.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from certsvm import LinearSVC
        >>> X, y = make_classification(random_state=0)
        >>> rough, fine = (LinearSVC(0.1, tol=tol, solver="dcd").fit(X, y) for tol in (0.1, 1e-9))
        >>> low, high = rough.decision_interval(X)
        >>> scores = fine.decision_function(X)
        >>> bool((low <= scores).all() and (scores <= high).all())
        True
        """
        optimum = self._optimum()
        if is_stream(X):
            return (self._answer(optimum, block) for block, *_ in blocks_of(X))
        return self._answer(optimum, X)

    def stability(self, X: Any, sample_weight: Any = None) -> float:
        """The share of predictions that more training could not flip.

        These rows have the same label under the model and under the exact optimum, which is proved
        by ``decision_interval``: of two classes, the interval excludes the other label; of several,
        the lowest score of the predicted class is above the highest of every other. If a row may
        have several labels, the intervals of all of them exclude zero.

        Parameters
        ----------
        X : rows, callable or iterator
            The rows, or a stream of blocks, as for ``decision_interval``.
        sample_weight : array-like or tensor of shape (n_samples,), default=None
            Weights of the rows; a stream brings its own.

        Returns
        -------
        share : float
            Between 0 and 1; 0 without certificates.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from certsvm import LinearSVC
        >>> X, y = make_classification(random_state=0)
        >>> LinearSVC(0.1, tol=1e-6, random_state=0).fit(X, y).stability(X) > 0.95
        True
        """
        from certsvm.verification.verify import checked_weights

        optimum = self._optimum()
        sure = total = 0.0
        for block, _, given in blocks_of(X, None, sample_weight):
            low, high = self._intervals(optimum, block)
            if self.multilabel_:
                surely = unflippable(low.ravel(), high.ravel()).reshape(low.shape).all(1)
            else:
                surely = unflippable(low, high)
            weights = checked_weights(1.0 if given is None else self._to_host(given), surely.size)
            sure += float(weights[surely].sum())
            total += float(weights.sum())
        return sure / total if total > 0.0 else 0.0

    def coef_interval(self) -> tuple[Array, Array]:
        """Intervals that contain the weights of the exact optimum.

        Returns
        -------
        low, high : ndarray of shape (n_problems, n_features)
            The ends, dense also after ``sparsify``; infinite without certificates.
        """
        return self._optimum().coef_intervals()

    def intercept_interval(self) -> tuple[Vector, Vector]:
        """Intervals that contain the intercepts of the exact optimum.

        Returns
        -------
        low, high : ndarray of shape (n_problems,)
            The ends; both zero if there is no intercept.
        """
        return self._optimum().intercept_intervals()

    def support_status(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Which training rows are surely support vectors of the exact optimum, or surely none.

        ``SupportStatus.NONE`` and ``SUPPORT`` are proved if the interval of the row's margin lies
        above or below one. They hold in every optimal dual point: the alpha of a row is zero, or,
        with the hinge, at its bound C times the weight.

        Parameters
        ----------
        X : rows, callable or iterator
            The training data, or a stream of blocks ``(X, y)`` or ``(X, y, weights)``.
        y : array-like or tensor of shape (n_samples,), default=None
            Their labels; None for a stream.
        sample_weight : array-like or tensor of shape (n_samples,), default=None
            Their weights, if there were weights in training.

        Returns
        -------
        status : ndarray, or tensor for a tensor, of int8, shape (n_samples,) or \
(n_samples, n_classes)
            Values of ``certsvm.SupportStatus``; for several classes, one for each problem. A stream
            is answered at its end, with one array.

        Raises
        ------
        ValueError
            These are not the training data: their loss is larger. Or the intercept is not in the
            penalty.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from certsvm import LinearSVC, SupportStatus
        >>> X, y = make_classification(random_state=0)
        >>> clf = LinearSVC(0.1, tol=1e-10, random_state=0).fit(X, y)
        >>> status = clf.support_status(X, y)
        >>> {kind.name: int((status == kind).sum()) for kind in SupportStatus}
        {'UNDECIDED': 14, 'NONE': 60, 'SUPPORT': 26}
        """
        optimum, classes = self._optimum(), self._fitted("classes")
        n_problems = optimum.intercept.size
        losses = np.zeros(n_problems)
        statuses: list[NDArray[np.int8]] = [np.empty((0, n_problems), dtype=np.int8)]
        for block, labels, given in blocks_of(X, y, sample_weight):
            if labels is None:
                raise ValueError("requires y to be passed, but the target y is None")
            scores, sizes = self._scores_and_sizes(block)
            low, high = optimum.score_intervals(scores, sizes)
            status = np.empty(scores.shape, dtype=np.int8)
            labels, given = self._to_host(labels), self._to_host(given)
            problems = binary_problems(
                classes, self._fitted("class_weight"), labels, given, len(scores),
                multilabel=self.multilabel_,
            )  # fmt: skip
            for i, (signs, weights) in enumerate(problems):
                status[:, i] = status_of(low[:, i], high[:, i], signs, weights)
                losses[i] += optimum.loss_of(i, signs * scores[:, i], weights)
            statuses.append(status)
        optimum.require_training_data(losses)
        every = np.concatenate(statuses)
        return self._like(X, every.ravel() if n_problems == 1 else every)

    def _answer(self, optimum: OptimumIntervals, X: Any) -> tuple[Any, Any]:
        low, high = self._intervals(optimum, X)
        return self._like(X, low, upwards=False), self._like(X, high, upwards=True)

    def _intervals(self, optimum: OptimumIntervals, X: Any) -> tuple[Array, Array]:
        low, high = optimum.score_intervals(*self._scores_and_sizes(X))
        return (low.ravel(), high.ravel()) if low.shape[1] == 1 else (low, high)
