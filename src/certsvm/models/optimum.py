"""What the certificates of a classifier tell about the exact optimum of its training problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.certificates.balls import Array, Balls, row_blocks, row_sizes, unflippable
from certsvm.certificates.certificate import Certificate
from certsvm.certificates.enclosures import Vector
from certsvm.certificates.support import ScoredRows, SupportSurvey
from certsvm.certificates.verification import (
    checked_weights,
    positions,
    weights_in_problem,
)
from certsvm.matrices import exact_labels


class MatrixRows:
    """A block of an array or a CSR matrix, with its scores.

    Columns that the model has and the rows have not are zero.
    """

    def __init__(self, rows: Any, scores: Array, n_features: int) -> None:
        self._rows, self.scores, self.sizes = rows, scores, row_sizes(rows)
        self._missing = n_features - rows.shape[1]

    def combination(self, a: Vector) -> Vector:
        """sum_k a_k x_k."""
        return np.pad(a @ self._rows, (0, self._missing))

    def take(self, which: NDArray[np.intp]) -> Any:
        """Copies of some rows."""
        rows = self._rows[which]
        if not sp.issparse(rows):
            return np.pad(rows, ((0, 0), (0, self._missing)))
        rows.resize(rows.shape[0], rows.shape[1] + self._missing)
        return rows


def scored_blocks(X: Any, scores: Array, n_features: int) -> Iterator[MatrixRows]:
    """The rows of an array or CSR matrix from ``added_up``, in blocks with their scores."""
    first = 0
    for rows in row_blocks(X):
        last = first + rows.shape[0]
        yield MatrixRows(rows, scores[first:last], n_features)
        first = last


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
        Takes rows, wherever they are, and yields them in blocks with their scores.
    """

    def __init__(
        self,
        coef: Any,
        intercept: Vector,
        certificates: Sequence[Certificate] | None,
        scored: Callable[[Any], Iterable[ScoredRows]],
    ) -> None:
        self.balls = Balls(coef, intercept, certificates)
        self._certificates, self._scored = certificates, scored

    def decision_interval(self, X: Any) -> tuple[Array, Array]:
        """Intervals that contain the scores of rows, of the shape of ``decision_function``."""
        shape = (0, self.balls.intercept.size)
        lows, highs = [np.zeros(shape)], [np.zeros(shape)]
        for rows in self._scored(X):
            low, high = self.balls.score_intervals(rows.scores, rows.sizes)
            lows.append(low)
            highs.append(high)
        low, high = np.concatenate(lows), np.concatenate(highs)
        return (low.ravel(), high.ravel()) if shape[1] == 1 else (low, high)

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
        n_rows: int | None,
    ) -> NDArray[np.int8]:
        """The status of all training rows, one column for each problem.

        ``n_rows`` is the number of rows of the training data; None if it is unknown.
        """
        n_problems = self.balls.intercept.size
        proofs: Sequence[Certificate | None] = self._certificates or [None] * n_problems
        surveys = [SupportSurvey(self.balls, i, proofs[i], n_rows) for i in range(n_problems)]
        for block, labels, given in blocks_of(X, y, sample_weight):
            if labels is None:
                raise ValueError("requires y to be passed, but the target y is None")
            first, labels = 0, exact_labels(labels).ravel()
            position = positions(classes, labels, labels.size)
            given = checked_weights(np.ones(labels.size) if given is None else given, labels.size)
            for rows in self._scored(block):
                low, high = self.balls.score_intervals(rows.scores, rows.sizes)
                part = slice(first, first + len(low))
                first += len(low)
                if first > labels.size:
                    break
                for i, survey in enumerate(surveys):
                    positive = 1 if n_problems == 1 else i
                    signs = np.where(position[part] == positive, 1.0, -1.0)
                    weights = weights_in_problem(
                        class_weight, position[part], positive, given[part]
                    )
                    survey.add(rows, low[:, i], high[:, i], signs, weights)
            if first != labels.size:
                raise ValueError(f"X has not as many rows as y, which has {labels.size} labels")
        status = np.stack([survey.finish() for survey in surveys], axis=1)
        return status.ravel() if n_problems == 1 else status
