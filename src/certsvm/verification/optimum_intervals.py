"""Balls that contain the exact optimum, and the intervals that follow from them.

J is 1-strongly convex, so its minimiser w* is no further from w than the gap allows:

    |w - w*|^2 <= 2 (J(w) - J(w*)) <= 2 (J(w) - L(alpha)).

The certificate of w has all that this takes. A product with any row y then differs from the one at
the optimum by at most the radius times |y|, and an entry of w by at most the radius. With an
intercept, w and y include the constant column, and the intercept is rho times the last entry of w.

The intervals of the margins tell support vectors. In every optimal dual point, a row with
w*.y_k > 1 has alpha_k = 0. One with w*.y_k < 1 has alpha_k = C s_k for the hinge, and
2 C s_k (1 - w*.y_k) for its square. That a margin is exactly one follows from no interval.

If the intercept is free, J is strongly convex in the other entries only. The ball is then one of
coefficients, and nothing is known of intercepts and scores.

This module has the allowances for rounding, with NumPy alone. In docs/theory.md: "What a gap tells
about the optimum".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.certificates.certificate import Certificate
from certsvm.matrices import dense
from certsvm.verification.interval_arithmetic import (
    INFLATION,
    UNDERFLOW,
    UNIT_ROUNDOFF,
    Interval,
    Vector,
)
from certsvm.verification.verify import binary_problems, checked_weights, fitted

Array: TypeAlias = NDArray[np.float64]

# What underflow can take from the root of a sum of squares, many times over.
_TINY = 2.0**-490
_ROWS_AT_ONCE = 16_384
# Relative to J: rows whose objective exceeds that of the certificate by more are surely others.
_OTHER = 1e-6


def radius(c: Certificate) -> float:
    """An upper bound on the distance to the exact optimum; infinite if nothing is known.

    Both rounding allowances are counted against it. Where there is no dual bound, L(0) = 0 is one.

    Examples
    --------
    >>> radius(Certificate(primal=3.0, dual=1.0, target=0.01))
    2.0000000000000004
    >>> radius(Certificate(primal=3.0, dual=4.0, target=0.01))
    inf
    """
    numbers = (c.primal, c.dual, c.primal_rounding, c.dual_rounding)
    if not all(map(math.isfinite, numbers)):
        return math.inf
    primal, dual, above, below = map(Fraction, numbers)
    gap = primal + above - max(Fraction(0), dual - below)
    # A lower bound above the upper one is a contradiction, from which nothing follows.
    if gap < 0:
        return math.inf
    twice = Interval.of(2 * gap, 2 * gap).high
    return math.nextafter(math.sqrt(twice), math.inf) if twice > 0.0 else 0.0


class RowSizes(NamedTuple):
    """What the rounding error of a product with a row depends on.

    Attributes
    ----------
    squares : ndarray of shape (n_rows,)
        Sums of squares, as computed in float64 in any order.
    counts : ndarray of shape (n_rows,)
        Numbers of values; a row with none is zero.
    """

    squares: Vector
    counts: NDArray[np.int64]

    @property
    def norms(self) -> Vector:
        """Upper bounds on the norms."""
        norms: Vector = _root(self.squares, self.counts, self.counts > 0)
        return norms


def _root(squares: Any, counts: Any, occupied: Any) -> Any:
    """An upper bound on the root of a sum of squares, of which each rounds once or twice."""
    return np.sqrt(squares) * (1.0 + UNIT_ROUNDOFF * (2.0 * counts + 16.0)) + _TINY * occupied


@np.errstate(all="ignore")
def row_sizes(X: Any) -> RowSizes:
    """The sizes of the rows of an array or a CSR matrix that stores no column twice.

    Examples
    --------
    >>> row_sizes(np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]))
    RowSizes(squares=array([25.,  0.]), counts=array([2, 0]))
    """
    squares, counts = np.zeros(X.shape[0]), np.zeros(X.shape[0], dtype=np.int64)
    # In blocks, to bound the size of the float64 copies.
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        rows = X[part].astype(np.float64, copy=False)
        if sp.issparse(rows):
            counts[part] = np.diff(rows.indptr)
            row = np.repeat(np.arange(rows.shape[0]), counts[part])
            squares[part] = np.bincount(row, rows.data * rows.data, rows.shape[0])
        else:
            counts[part] = np.count_nonzero(rows, axis=1)
            squares[part] = np.einsum("ij,ij->i", rows, rows)
    return RowSizes(squares, counts)


class OptimumIntervals:
    """A ball for each binary problem that contains its exact optimum, and what follows from it.

    Parameters
    ----------
    coef : ndarray or sparse matrix of shape (n_problems, n_features)
        Weights of the columns.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    certificates : sequence of Certificate, or None
        One for each problem; None or empty if nothing is proved.

    Attributes
    ----------
    radii : ndarray of shape (n_problems,)
        Upper bounds on the distances to the optima, in the space that includes the constant column
        unless the intercept is free.
    intercept_scaling : ndarray of shape (n_problems,)
        The heights rho of the constant column.

    Examples
    --------
    >>> certificate = Certificate(primal=1.0, dual=0.5, target=0.5)
    >>> optimum = OptimumIntervals(np.array([[2.0, 0.0]]), np.zeros(1), [certificate])
    >>> rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    >>> low, high = optimum.score_intervals(rows @ optimum.coef.T, row_sizes(rows))
    >>> low.round(9).tolist(), high.round(9).tolist()
    ([[1.0], [0.0]], [[11.0], [0.0]])
    """

    def __init__(
        self, coef: Any, intercept: Any, certificates: Sequence[Certificate] | None
    ) -> None:
        self.coef: Array = np.asarray(dense(coef), dtype=np.float64)
        self.intercept: Vector = np.asarray(intercept, dtype=np.float64)
        # Without certificates, J may be anything, and L is zero.
        proofs = certificates or [Certificate(math.inf, 0.0, 0.0)] * self.intercept.size
        self.certificates = proofs
        self.radii: Vector = np.array(list(map(radius, proofs)))
        self.intercept_scaling: Vector = np.array([float(c.intercept_scaling) for c in proofs])
        self._free = any(proof.free_intercept for proof in proofs)
        # Without a constant column, no weight vector of the problem has an intercept.
        self.radii[(self.intercept_scaling == 0.0) & (self.intercept != 0.0)] = math.inf
        self._lengths = row_sizes(self.coef).norms

    @np.errstate(all="ignore")
    def score_intervals(self, scores: Array, sizes: RowSizes) -> tuple[Array, Array]:
        """Intervals that contain the scores of the exact optimum.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_problems)
            ``X @ coef.T + intercept``, as computed in float64 in any order.
        sizes : RowSizes
            Of the same rows.

        Returns
        -------
        low, high : ndarray of shape (n_rows, n_problems)
            The ends; infinite where nothing is known.

        Raises
        ------
        ValueError
            An intercept is free.
        """
        if self._free:
            raise ValueError(
                "nothing is proved about the intercept of the exact optimum, nor about scores, "
                "since the intercept is free: coef_interval has all that is proved"
            )
        rho, low, high = self.intercept_scaling, np.empty_like(scores), np.empty_like(scores)
        for first in range(0, len(scores), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            here, counts = scores[part], sizes.counts[part, np.newaxis]
            squares, norms = sizes.squares[part, np.newaxis], sizes.norms[part, np.newaxis]
            augmented = _root(squares + rho * rho, counts, (counts > 0) | (rho > 0.0))
            # The product goes through as many roundings as there are values, or one more if they
            # were converted to float64. The intercept was rounded, and so is the sum with it.
            roundings = (counts + 4.0) * self._lengths * norms + 4.0 * np.abs(self.intercept)
            roundings = INFLATION * UNIT_ROUNDOFF * roundings
            roundings = roundings + (counts + 4.0) * UNDERFLOW * (augmented > 0.0)
            half = (1.0 + 8.0 * UNIT_ROUNDOFF) * (self.radii * augmented) + roundings
            # The ends are rounded as well.
            half = half + 4.0 * UNIT_ROUNDOFF * (np.abs(here) + half)
            unknown = ~np.isfinite(here) | ~np.isfinite(half)
            low[part] = np.where(unknown, -math.inf, here - half)
            high[part] = np.where(unknown, math.inf, here + half)
        return low, high

    def coef_intervals(self) -> tuple[Array, Array]:
        """Intervals that contain the weights of the exact optimum."""
        radii = self.radii[:, np.newaxis]
        low: Array = np.nextafter(self.coef - radii, -math.inf)
        high: Array = np.nextafter(self.coef + radii, math.inf)
        return low, high

    def intercept_intervals(self) -> tuple[Vector, Vector]:
        """Intervals that contain the intercepts of the exact optimum; zero where there is none.

        They are the scores of a row of zeros. A ValueError tells that an intercept is free.
        """
        zeros = RowSizes(np.zeros(1), np.zeros(1, dtype=np.int64))
        low, high = self.score_intervals(self.intercept[np.newaxis], zeros)
        return low[0], high[0]

    def require_training_data(self, losses: Vector) -> None:
        """Raise a ValueError if the loss of some rows exceeds what a certificate says of all."""
        for i, certificate in enumerate(self.certificates):
            rho = float(self.intercept_scaling[i])
            last = float(self.intercept[i]) / rho if rho > 0.0 else 0.0
            square = float(self.coef[i] @ self.coef[i]) + last * last
            J = 0.5 * square + float(certificate.C) * float(losses[i])
            allowance = 4.0 * certificate.primal_rounding + _OTHER * abs(certificate.primal)
            if J - certificate.primal > allowance:
                other = f"J is {J:.6g} here and {certificate.primal:.6g} in the certificate"
                raise ValueError(f"these are not the data that the model was trained on: {other}")


def in_single(ends: Array, *, upwards: bool) -> NDArray[np.float32]:
    """Ends of intervals in float32, rounded away from the interval.

    Examples
    --------
    >>> bool(in_single(np.array([1.0 + 1e-12]), upwards=True)[0] > 1.0)
    True
    >>> in_single(np.array([1.0 + 1e-12]), upwards=False).tolist()
    [1.0]
    """
    with np.errstate(over="ignore"):
        single = ends.astype(np.float32)
    inside = single < ends if upwards else single > ends
    away = np.float32(math.inf if upwards else -math.inf)
    rounded: NDArray[np.float32] = np.where(inside, np.nextafter(single, away), single)
    return rounded


def unflippable(low: Array, high: Array) -> NDArray[np.bool_]:
    """Rows whose label is the same for all scores in the intervals.

    Parameters
    ----------
    low, high : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Of two classes, the intervals of the score of the second; else of each.

    Examples
    --------
    >>> unflippable(np.array([0.1, -0.1, -2.0]), np.array([0.5, 0.1, 0.0])).tolist()
    [True, False, True]
    >>> unflippable(np.array([[0.2, -1.0], [0.2, -1.0]]), np.array([[0.4, 0.1], [0.4, 0.3]]))
    array([ True, False])
    """
    if low.ndim == 1:
        # A score of zero is one of the first class.
        either: NDArray[np.bool_] = (low > 0.0) | (high <= 0.0)
        return either
    winner = low.argmax(axis=1)[:, np.newaxis]
    least = np.take_along_axis(low, winner, axis=1)
    column = np.arange(low.shape[1])
    # Of equal scores, the first wins.
    beaten = (high < least) | ((high == least) & (column > winner)) | (column == winner)
    surely: NDArray[np.bool_] = beaten.all(axis=1)
    return surely


class SupportStatus(IntEnum):
    """What is proved about a row and the exact optimum.

    ``NONE``: surely no support vector, alpha = 0. ``SUPPORT``: surely a support vector, with a
    margin below one; with the hinge, alpha is at its bound C s. ``UNDECIDED``: neither is proved,
    as of all rows whose margin is exactly one.
    """

    UNDECIDED = -1
    NONE = 0
    SUPPORT = 1


def status_of(low: Vector, high: Vector, signs: Vector, weights: Vector) -> NDArray[np.int8]:
    """The status of rows in one problem.

    Parameters
    ----------
    low, high : ndarray of shape (n_rows,)
        Intervals that contain the scores of the exact optimum.
    signs : ndarray of shape (n_rows,)
        Labels, +1 or -1.
    weights : ndarray of shape (n_rows,)
        Row weights. A row without weight has alpha = 0.

    Examples
    --------
    >>> ends = np.array([1.1, 0.5, 0.5, 0.5]), np.array([1.2, 0.9, 1.0, 0.9])
    >>> status_of(*ends, np.ones(4), np.array([1.0, 1.0, 1.0, 0.0])).tolist()
    [0, 1, -1, 0]
    """
    least, most = np.where(signs > 0, low, -high), np.where(signs > 0, high, -low)
    status = np.full(least.size, SupportStatus.UNDECIDED, dtype=np.int8)
    status[most < 1.0] = SupportStatus.SUPPORT
    status[(least > 1.0) | (weights == 0.0)] = SupportStatus.NONE
    return status


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
        parts = block if isinstance(block, tuple) else (block,)
        if not 1 <= len(parts) <= 3:
            got = f"got {len(parts)} parts"
            raise ValueError(f"a block must be X, (X, y) or (X, y, weights), {got}")
        yield (*parts, None, None)[:3]


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

    def _optimum(self) -> OptimumIntervals:
        names = ("coef", "intercept", "certificates")
        return OptimumIntervals(*(fitted(self, name) for name in names))

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
        optimum = self._optimum()
        sure = total = 0.0
        for block, _, given in blocks_of(X, None, sample_weight):
            low, high = self._intervals(optimum, block)
            if self.multilabel_:
                surely = unflippable(low.ravel(), high.ravel()).reshape(low.shape).all(1)
            else:
                surely = unflippable(low, high)
            weights = checked_weights(self._to_host(given), surely.size)
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
        optimum = self._optimum()
        classes, class_weight = fitted(self, "classes"), fitted(self, "class_weight")
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
                classes, class_weight, labels, given, len(scores), multilabel=self.multilabel_
            )
            for i, (signs, weights) in enumerate(problems):
                status[:, i] = status_of(low[:, i], high[:, i], signs, weights)
                distances = np.maximum(0.0, 1.0 - signs * scores[:, i])
                power = 2 if optimum.certificates[i].squared else 1
                with np.errstate(all="ignore"):
                    losses[i] += float(weights @ distances**power)
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
