"""Bands: what two certified fits prove about errors on held-out rows, for every C between them.

For any convex loss, any w, and any feasible alpha with v = sum_k alpha_k y_k, the gap is at least
|w - w*|^2 / 2, which J exceeds its minimum by, plus |v - w*|^2 / 2, which the minimum exceeds L by.
Hence

    |c - w*|^2 <= J(w) - L(alpha) - 1/4 |w - v|^2,         c = (w + v) / 2.

With fits at C_1 and C_2, whose balls have centres c_1 and c_2 and squared radii r_1 and r_2, the
chord between them (``certificates.path_bounds``) gives for C(t) = (1-t) C_1 + t C_2 the ball

    c(t) = (1-t) c_1 + t c_2,
    r(t) = (1-t) r_1 + t r_2 + t (1-t) [(C_2 - C_1)(l_1 - l_2) - |c_1 - c_2|^2],

where l is the loss of w. The product of c(t) with a row is linear in t. On a piece of the chord it
lies between its values at the ends, and w*'s differs by at most the norm of the row times the
largest radius on the piece. w* is a combination of training rows, so that columns in which all of
them are zero can be left out of the row. docs/theory.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import DualVector
from certsvm.certificates.path_bounds import ChordEnd, squared_distance
from certsvm.certificates.rounding import SLACK, UNDERFLOW, Bound, length, units
from certsvm.kernels.jit import kernel, reordering_kernel
from certsvm.kernels.rows import Vector

# More than the roundings of shares, of a quadratic in t and of its maximum.
_ROUNDINGS = 64
# More than the roundings of a mixed product and of the ends of its interval.
_MORE_ROUNDINGS = 16.0


@dataclass(frozen=True)
class OptimumBall:
    """A ball that contains the exact optimum at one C.

    Attributes
    ----------
    C : float
        Weight of the loss.
    centre : ndarray of shape (dimension,)
        (w + v) / 2, as computed.
    error : float
        A bound on the distance to the exact (w + v) / 2.
    square : float
        An upper bound on the squared radius around the exact centre; infinite if unknown.
    loss : Bound
        The loss of w.
    """

    C: float
    centre: Vector
    error: float
    square: float
    loss: Bound

    @classmethod
    def of(
        cls, certificate: Certificate, w: Vector, vector: DualVector | None = None
    ) -> OptimumBall:
        """The ball of a fit.

        Without the vector of its dual point, the dual point is zero, which is always feasible.

        Examples
        --------
        One row y = 1 at C = 1/2, where w = alpha = 1/2 is optimal.

        >>> w = np.array([0.5])
        >>> certificate = Certificate(primal=0.375, dual=0.375, target=0.01, C=0.5)
        >>> ball = OptimumBall.of(certificate, w, DualVector(w, 0.0))
        >>> ball.centre.tolist(), ball.square < 1e-12, round(ball.loss.value, 9)
        ([0.5], True, 0.5)
        """
        v = DualVector(np.zeros_like(w), 0.0) if vector is None else vector
        end = ChordEnd(certificate, w, v)
        primal, dual = end.primal, Bound(0.0, 0.0) if vector is None else end.dual
        gap = primal.high - dual.low
        gap += units(4, abs(primal.value) + abs(dual.value))
        apart = squared_distance(w, v.v, v.rounding)
        square = gap - 0.25 * apart.low + units(4, abs(gap) + apart.high)
        # A lower bound above the upper one is a contradiction, from which nothing follows. The
        # exact radius is not below |w - v| / 2, so that here only rounding can be negative.
        square = max(square, 0.0) if gap >= 0.0 else math.inf
        error = 0.5 * v.rounding + units(4, length(w) + length(v.v))
        finite = math.isfinite(square + end.loss.high - end.loss.low + error)
        # The ball does not contain an intercept that is free.
        if certificate.free_intercept or not finite:
            square = math.inf
        return cls(certificate.C, 0.5 * (w + v.v), SLACK * error, square, end.loss)


class ChordBalls:
    """Balls that contain the exact optimum, for every C between two fits of one problem.

    Parameters
    ----------
    first, last : OptimumBall
        The balls of the fits; twice the same for one C.
    """

    def __init__(self, first: OptimumBall, last: OptimumBall) -> None:
        self.first, self.last = first, last
        self.error = max(first.error, last.error)
        self.size = length(first.centre) + length(last.centre)
        step = last.C - first.C
        self._bulge = self._size = 0.0
        if step > 0.0:
            apart = squared_distance(first.centre, last.centre, first.error + last.error)
            fall = first.loss.high - last.loss.low
            self._bulge = step * fall - apart.low
            self._bulge += units(8, step * (abs(first.loss.high) + abs(last.loss.low)))
            self._bulge += units(8, apart.high)
            self._size = abs(self._bulge)
        self._size += first.square + last.square

    def radii(self, starts: Vector, ends: Vector) -> Vector:
        """The largest radius on each piece, from t in ``starts`` to t in ``ends``.

        Parameters
        ----------
        starts, ends : ndarray of shape (n_pieces,)
            Values of t, each off by a few unit roundoffs at most.

        Returns
        -------
        radii : ndarray of shape (n_pieces,)
            Upper bounds; infinite if nothing is known.
        """
        if not math.isfinite(self._size):
            return np.full(starts.size, math.inf)
        squares = np.maximum(self._square(starts), self._square(ends))
        if self._bulge > 0.0:
            # Of a concave parabola, the largest value may be inside.
            slope = self.last.square - self.first.square
            top = 0.5 + 0.5 * slope / self._bulge
            squares = np.maximum(squares, self._square(np.clip(top, starts, ends)))
        squares = np.maximum(squares, 0.0) + units(_ROUNDINGS, self._size)
        radii: Vector = np.sqrt(squares) * (1.0 + units(4, 1.0))
        return radii

    def _square(self, t: Vector) -> Vector:
        s = 1.0 - t
        return s * self.first.square + t * self.last.square + s * t * self._bulge


def shares(first: float, last: float, edges: Vector) -> NDArray[np.float64]:
    """1 - t and t at both ends of each piece; a row for each, off by a few unit roundoffs.

    Examples
    --------
    >>> shares(1.0, 3.0, np.array([1.0, 2.0, 3.0])).tolist()
    [[1.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.0, 1.0]]
    """
    if last == first:
        return np.tile([1.0, 0.0, 1.0, 0.0], (edges.size - 1, 1))
    s, t = (last - edges) / (last - first), (edges - first) / (last - first)
    return np.column_stack([s[:-1], t[:-1], s[1:], t[1:]])


class HeldOutRows:
    """What the bounds need of the rows that a fold was not trained on.

    Parameters
    ----------
    norms : ndarray of shape (n_rows,)
        Upper bounds on the norms of the augmented rows, without the columns in which all training
        rows are zero.
    counts : ndarray of shape (n_rows,)
        Their numbers of values.
    truth : ndarray of shape (n_rows,)
        The position of each row's class among those of the training rows; -1 if it is not there.
    weights : ndarray of shape (n_rows,)
        The weight of each row in the error.
    """

    def __init__(
        self, norms: Vector, counts: NDArray[np.int64], truth: NDArray[np.int64], weights: Vector
    ) -> None:
        self.truth, self.weights = truth, weights
        self._norms: Vector = norms
        self._counts: Vector = counts + np.float64(_MORE_ROUNDINGS)
        self._total = float(weights.sum())
        # A row of zeros has scores of zero, even if nothing is known of w: the first class wins.
        # A class that is not among the training rows never does.
        zero = self._norms == 0.0
        self._right = float(weights[zero & (truth == 0)].sum())
        self._wrong = float(weights[(zero & (truth != 0)) | (truth < 0)].sum())
        self._others = np.flatnonzero(~zero & (truth >= 0))

    def error_bounds(
        self,
        balls: Sequence[ChordBalls],
        first: NDArray[np.float64],
        last: NDArray[np.float64],
        edges: Vector,
    ) -> tuple[Vector, Vector]:
        """Bounds on the error of the exact optimum, for every C in each piece of a chord.

        Parameters
        ----------
        balls : sequence of ChordBalls
            One for each problem.
        first, last : ndarray of shape (n_problems, n_rows)
            Products of the rows with the centres at the ends of the chord, as computed in float64.
        edges : ndarray of shape (n_pieces + 1,)
            The values of C at which pieces begin and end, ascending.

        Returns
        -------
        low, high : ndarray of shape (n_pieces,)
            Between 0 and 1.

        Examples
        --------
        Two rows, of which the second is too near to the boundary.

        >>> ball = OptimumBall(1.0, np.array([1.0]), 0.0, square=0.01, loss=Bound(1.0, 0.0))
        >>> rows = HeldOutRows(norms=np.array([1.0, 1.0]), counts=np.array([1, 1]),
        ...                    truth=np.array([0, 0]), weights=np.ones(2))
        >>> products = np.array([[1.0, 0.05]])
        >>> edges = np.array([1.0, 1.0])
        >>> low, high = rows.error_bounds([ChordBalls(ball, ball)], products, products, edges)
        >>> low.round(9).tolist(), high.round(9).tolist()
        ([0.5], [1.0])
        """
        mixed = shares(balls[0].first.C, balls[0].last.C, edges)
        n_pieces = edges.size - 1
        radii = np.empty((len(balls), n_pieces))
        for j, chord in enumerate(balls):
            known = chord.radii(mixed[:, 1], mixed[:, 3]) + chord.error
            radii[j] = known * (1.0 + units(8, 1.0)) + math.sqrt(UNDERFLOW)
        others = self._others
        norms, weights, truth = self._norms[others], self.weights[others], self.truth[others]
        # A product is off by a unit of |c| |x| for each value of the row, and for what follows.
        sizes = np.array([[units(1, chord.size)] for chord in balls])
        roundings = sizes * (self._counts[others] * norms)
        first, last = first[:, others], last[:, others]
        right, wrong = np.full(n_pieces, self._right), np.full(n_pieces, self._wrong)
        if len(balls) == 1:
            signs = np.where(truth == 1, 1.0, -1.0)
            count_of_two(
                signs * first[0], signs * last[0], norms, roundings[0], weights, mixed, radii[0],
                right, wrong,
            )  # fmt: skip
        else:
            count_of_several(
                first, last, norms, roundings, truth, weights, mixed, radii,
                np.empty(len(balls)), np.empty(len(balls)), right, wrong,
            )  # fmt: skip
        # Sums of nonnegative weights in any order, and their ratio.
        allowed = units(2 * self.weights.size + 8, 1.0)
        low: Vector = wrong / self._total * (1.0 - allowed)
        high: Vector = 1.0 - right / self._total * (1.0 - allowed)
        return low, np.minimum(high + units(2, 1.0), 1.0)

    def error(self, predicted: NDArray[Any]) -> float:
        """The error of a model that predicts these positions of classes."""
        return float(self.weights[predicted != self.truth].sum()) / self._total

    def distance(self, products: NDArray[np.float64], share: float) -> float:
        """The radius at which a given share of the rows, by weight, is open."""
        if len(products) == 1:
            apart = np.abs(products[0])
        else:
            ordered = np.partition(products, -2, axis=0)
            apart = 0.5 * (ordered[-1] - ordered[-2])
        distances = apart[self._others] / self._norms[self._others]
        order = np.argsort(distances)
        weights = np.cumsum(self.weights[self._others][order])
        within = int(np.searchsorted(weights, share * self._total, side="right"))
        return float(distances[order[within]]) if within < order.size else math.inf


def mean_bounds(bounds: Sequence[tuple[Vector, Vector]]) -> tuple[Vector, Vector]:
    """Bounds on the mean of several errors between 0 and 1, each of which is bounded.

    Examples
    --------
    >>> low, high = mean_bounds([(np.array([0.1]), np.array([0.2]))] * 2)
    >>> bool(0.0999 < low[0] <= 0.1), bool(0.2 <= high[0] < 0.2001)
    (True, True)
    """
    allowed = units(len(bounds) + 4, 1.0)
    low, high = np.mean(bounds, axis=0)
    return low * (1.0 - allowed), np.minimum(high * (1.0 + allowed), 1.0)


@reordering_kernel
def count_of_two(
    first: Vector, last: Vector, norms: Vector, roundings: Vector, weights: Vector,
    shares: NDArray[np.float64], radii: Vector, right: Vector, wrong: Vector,
) -> None:  # fmt: skip
    """Add the weights of the rows that are surely right, and surely wrong, on each piece.

    The products are multiplied with the row's label, +1 or -1. On piece p, the centre's product
    with row i is between its values at the two ends, which are mixed from ``first[i]`` and
    ``last[i]`` by ``shares[p]``. The optimum's differs by at most norms[i] radii[p] + roundings[i].
    Comparisons fail for NaN, so that such a row counts as neither.
    """
    for p in range(right.size):
        s_a, t_a, s_b, t_b = shares[p, 0], shares[p, 1], shares[p, 2], shares[p, 3]
        radius = radii[p]
        sure_right, sure_wrong = 0.0, 0.0
        for i in range(first.size):
            a = s_a * first[i] + t_a * last[i]
            b = s_b * first[i] + t_b * last[i]
            half = norms[i] * radius + roundings[i]
            sure_right += weights[i] if min(a, b) > half else 0.0
            sure_wrong += weights[i] if max(a, b) < -half else 0.0
        right[p] += sure_right
        wrong[p] += sure_wrong


@kernel
def count_of_several(
    first: NDArray[np.float64], last: NDArray[np.float64], norms: Vector,
    roundings: NDArray[np.float64], truth: NDArray[np.int64], weights: Vector,
    shares: NDArray[np.float64], radii: NDArray[np.float64], lows: Vector, highs: Vector,
    right: Vector, wrong: Vector,
) -> None:  # fmt: skip
    """The same for several classes, each with a score; the largest wins.

    The products are those of class j, ``first[j]`` and ``last[j]``, without labels; ``truth`` is
    the row's class. ``lows`` and ``highs`` have room for a number per class.
    """
    n_classes, n_rows = first.shape
    for p in range(right.size):
        for i in range(n_rows):
            for j in range(n_classes):
                a = shares[p, 0] * first[j, i] + shares[p, 1] * last[j, i]
                b = shares[p, 2] * first[j, i] + shares[p, 3] * last[j, i]
                half = norms[i] * radii[j, p] + roundings[j, i]
                lows[j] = min(a, b) - half
                highs[j] = max(a, b) + half
            k = truth[i]
            is_right, is_wrong = True, False
            for j in range(n_classes):
                if j != k:
                    is_right = is_right and lows[k] > highs[j]
                    is_wrong = is_wrong or lows[j] > highs[k]
            if is_right:
                right[p] += weights[i]
            elif is_wrong:
                wrong[p] += weights[i]
