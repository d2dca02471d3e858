"""What a fitted ``LinearSVC`` can tell about the exact optimum of its training problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from certsvm.certificates.balls import Array, RowSizes, added_up, row_sizes
from certsvm.certificates.certificate import Certificate
from certsvm.estimators import tensors
from certsvm.estimators.scores import rows_to_score, scores_of
from certsvm.models.optimum import Optimum, blocks_of, is_stream


class OptimumMixin:
    """Intervals that contain what the exact optimum would answer.

    They follow from ``certificates_``: the smaller the gap, the narrower. Where nothing is proved,
    as after ``partial_fit``, they are infinite. A solver without a dual bound leaves L = 0, so its
    intervals are finite, but wide. About an intercept without penalty
    (``penalize_intercept=False``) nothing is proved, nor about scores, so that only
    ``coef_interval`` answers.
    """

    coef_: NDArray[np.float64] | sp.csr_matrix
    intercept_: NDArray[np.float64]
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    certificates_: list[Certificate] | None
    n_features_in_: int

    def decision_interval(self, X: Any) -> Any:
        """Intervals that contain ``decision_function`` of the exact optimum.

        The exact optimum is the minimiser of J for the training data, which training to any ``tol``
        approaches. It lies within ``sqrt(2 * gap)`` of the weights, by strong convexity. All
        rounding is allowed for.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), callable or \
iterator
            The rows. An iterator over blocks ``X``, ``(X, y)`` or ``(X, y, weights)``, or a
            function that returns one, such as ``certsvm.data.BlockFile``, is answered block by
            block.

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
        check_is_fitted(self)
        optimum = self._optimum()
        if is_stream(X):
            return (_in_kind(block, optimum) for block, _, _ in blocks_of(X))
        return _in_kind(X, optimum)

    def stability(self, X: Any, sample_weight: Any = None) -> float:
        """The share of predictions that more training could not flip.

        These rows have the same label under the model and under the exact optimum, which is proved
        by ``decision_interval``: of two classes, the interval excludes the other label; of several,
        the lowest score of the predicted class is above the highest of every other.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), callable or \
iterator
            The rows, or a stream of blocks as for ``decision_interval``.
        sample_weight : array-like or tensor of shape (n_samples,), default=None
            Weights of the rows; a stream brings its own.

        Returns
        -------
        share : float
            Between 0 and 1; 0 after ``partial_fit``, which proves nothing.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from certsvm import LinearSVC
        >>> X, y = make_classification(random_state=0)
        >>> LinearSVC(0.1, tol=1e-6, random_state=0).fit(X, y).stability(X) > 0.95
        True
        """
        check_is_fitted(self)
        return self._optimum().stability(_on_host(X), tensors.on_host(sample_weight))

    def coef_interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Intervals that contain ``coef_`` of the exact optimum.

        Returns
        -------
        low, high : ndarray of the shape of ``coef_``
            The ends, dense also after ``sparsify``.
        """
        check_is_fitted(self)
        return self._optimum().balls.coef_intervals()

    def intercept_interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Intervals that contain ``intercept_`` of the exact optimum.

        Returns
        -------
        low, high : ndarray of the shape of ``intercept_``
            The ends; both zero if there is no intercept.
        """
        check_is_fitted(self)
        return self._optimum().balls.intercept_intervals()

    def support_status(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Which training rows are surely support vectors of the exact optimum, or surely none.

        ``SupportStatus.NONE`` and ``SUPPORT`` are proved if the interval of the row's margin lies
        above or below one. They hold in every optimal dual point: the alpha of a row is zero, or,
        with the hinge, at its bound C times the weight.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), callable or \
iterator
            The training data, or a stream of blocks ``(X, y)`` or ``(X, y, weights)``.
        y : array-like or tensor of shape (n_samples,), default=None
            Their labels; None for a stream.
        sample_weight : array-like or tensor of shape (n_samples,), default=None
            Their weights, if the classifier was fitted with weights.

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
        check_is_fitted(self)
        status = self._optimum().support_status(
            _on_host(X),
            tensors.on_host(y),
            tensors.on_host(sample_weight),
            classes=self.classes_,
            class_weight=self.class_weight_,
        )
        return tensors.answer(X, status) if tensors.are_tensors(X) else status

    def _optimum(self) -> Optimum:
        """What the certificates tell."""
        return Optimum(self.coef_, self.intercept_, self.certificates_, self._scored)

    def _scored(self, X: Any) -> tuple[Array, RowSizes]:
        """The scores of rows, and their sizes."""
        if tensors.are_tensors(X):
            return tensors.scored(self, X)
        X = added_up(rows_to_score(self, X))
        return scores_of(X, self.coef_) + self.intercept_, row_sizes(X)


def _on_host(X: Any) -> Any:
    """A stream with its labels and weights on the host; rows as they are."""
    if not is_stream(X):
        return X
    return ((block, *map(tensors.on_host, rest)) for block, *rest in blocks_of(X))


def _in_kind(X: Any, optimum: Optimum) -> tuple[Any, Any]:
    """Intervals of the scores of X: for a tensor, tensors."""
    low, high = optimum.decision_interval(X)
    if not tensors.are_tensors(X):
        return low, high
    return tensors.end_of_interval(X, low, upwards=False), tensors.end_of_interval(
        X, high, upwards=True
    )
