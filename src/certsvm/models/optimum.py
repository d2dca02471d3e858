"""What the certificates of a classifier tell about the exact optimum of its training problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.balls import Array, Balls, RowSizes, unflippable
from certsvm.certificates.certificate import Certificate
from certsvm.certificates.enclosures import Vector
from certsvm.certificates.support import status_of
from certsvm.certificates.verification import (
    checked_weights,
    positions,
    weights_in_problem,
)
from certsvm.matrices import exact_labels


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


class Optimum:
    """What is proved about the exact optimum: the methods of ``LinearSVC`` and ``Model``.

    Parameters
    ----------
    coef, intercept : ndarray or sparse matrix, ndarray
        The weights.
    certificates : sequence of Certificate, or None
        One for each row of ``coef``; None or empty if nothing is proved.
    scored : callable
        Takes rows, wherever they are, and returns their scores in each problem and their sizes.
    """

    def __init__(
        self,
        coef: Any,
        intercept: Vector,
        certificates: Sequence[Certificate] | None,
        scored: Callable[[Any], tuple[Array, RowSizes]],
    ) -> None:
        self.balls = Balls(coef, intercept, certificates)
        self._scored = scored

    def decision_interval(self, X: Any) -> tuple[Array, Array]:
        """Intervals that contain the scores of rows, of the shape of ``decision_function``."""
        low, high = self.balls.score_intervals(*self._scored(X))
        return (low.ravel(), high.ravel()) if low.shape[1] == 1 else (low, high)

    def stability(self, X: Any, sample_weight: Any = None) -> float:
        """The share of rows, or of their weight, whose label is that of the optimum."""
        sure = total = 0.0
        for block, _, given in blocks_of(X, None, sample_weight):
            surely = unflippable(*self.decision_interval(block))
            weights = np.ones(surely.size) if given is None else checked_weights(given, surely.size)
            sure += float(weights[surely].sum())
            total += float(weights.sum())
        return sure / total if total > 0.0 else 0.0

    def support_status(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        classes: NDArray[Any],
        class_weight: Vector,
    ) -> NDArray[np.int8]:
        """The status of training rows, one column for each problem."""
        n_problems = self.balls.intercept.size
        statuses = [np.zeros((0, n_problems), dtype=np.int8)]
        losses = np.zeros(n_problems)
        for block, labels, given in blocks_of(X, y, sample_weight):
            if labels is None:
                raise ValueError("requires y to be passed, but the target y is None")
            labels = exact_labels(labels).ravel()
            position = positions(classes, labels, labels.size)
            given = checked_weights(np.ones(labels.size) if given is None else given, labels.size)
            scores, sizes = self._scored(block)
            if len(scores) != labels.size:
                raise ValueError(f"X has not as many rows as y, which has {labels.size} labels")
            low, high = self.balls.score_intervals(scores, sizes)
            status = np.empty(scores.shape, dtype=np.int8)
            for i in range(n_problems):
                positive = 1 if n_problems == 1 else i
                signs = np.where(position == positive, 1.0, -1.0)
                weights = weights_in_problem(class_weight, position, positive, given)
                status[:, i] = status_of(low[:, i], high[:, i], signs, weights)
                losses[i] += self.balls.loss_of(i, signs * scores[:, i], weights)
            statuses.append(status)
        self.balls.require_training_data(losses)
        status = np.concatenate(statuses)
        return status.ravel() if n_problems == 1 else status
