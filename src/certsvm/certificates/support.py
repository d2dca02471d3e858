"""Which rows are support vectors of the exact optimum, as far as a certificate proves it.

The margins of the exact optimum w* decide, and intervals of them prove (``balls``): a row with
w*.y_k > 1 has alpha_k = 0 in every optimal dual point. For the squared hinge, alpha_k = 2 C s_k
max(0, 1 - w*.y_k): a row with w*.y_k < 1 is a support vector, and there is no end of a box at which
it could be bounded. For the hinge, it has alpha_k = C s_k, and the others need more:

That a row is free, 0 < alpha_k < C s_k, makes its margin exactly one, which no interval proves. But
all rows together prove it: let U be the undecided rows and z the sum of C s_k y_k over the bounded
ones. Every optimal alpha satisfies

    sum over U of alpha_k y_k = w* - z.

That determines alpha of every row of U that is not a combination of the others, up to an error that
is proportional to the radius of the ball around w (``free_rows``).
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from certsvm.certificates.balls import Array, Balls, RowSizes, row_sizes
from certsvm.certificates.certificate import Certificate
from certsvm.certificates.enclosures import INFLATION, UNIT_ROUNDOFF, Vector

# Whether the box of a loss has no end. The losses themselves are compiled, and this module is not.
_SMOOTH = {"hinge": False, "squared_hinge": True}
# With more undecided rows none is proved to be free: how many are kept, how many values of them,
# and how many different ones, whose Gram matrix is inverted.
_MOST_ROWS, _MOST_VALUES, _MOST_DIFFERENT = 1 << 14, 1 << 25, 2048
# Squared sine of the angle to a combination of rows, below which a row counts as one.
_DEPENDENT = 1e-10
# Relative differences between the objective of the given rows and the certificate's: for the same
# rows, and for rows of which some are surely others.
_SAME, _OTHER = 1e-9, 1e-6


class SupportStatus(IntEnum):
    """What is proved about a row and the exact optimum.

    ``NONE``: surely no support vector, alpha = 0. ``FREE``: surely a free one, 0 < alpha < C s.
    ``BOUNDED``: surely a bounded one, alpha = C s. ``UNDECIDED``: none of these is proved. For the
    squared hinge alpha has no upper end: every support vector is free, and none is bounded.
    """

    UNDECIDED = -1
    NONE = 0
    FREE = 1
    BOUNDED = 2


class ScoredRows(Protocol):
    """A block of rows and their scores, wherever the rows are."""

    @property
    def scores(self) -> Array:
        """Scores in each problem, in float64."""

    @property
    def sizes(self) -> RowSizes:
        """What their rounding error depends on."""

    def combination(self, a: Vector) -> Vector:
        """sum_k a_k x_k, in float64, added in any order."""

    def take(self, which: NDArray[np.intp]) -> Any:
        """Some rows, as an array or CSR matrix of float64 without doubly stored columns."""


def status_of(
    low: Vector, high: Vector, signs: Vector, weights: Vector, *, smooth: bool = False
) -> NDArray[np.int8]:
    """The status of rows in one problem, from intervals of their scores alone.

    Parameters
    ----------
    low, high : ndarray of shape (n_rows,)
        Intervals that contain the scores of the exact optimum.
    signs : ndarray of shape (n_rows,)
        Labels, +1 or -1.
    weights : ndarray of shape (n_rows,)
        Row weights. The box of a row without weight is the point zero.
    smooth : bool, default=False
        Whether the loss is the squared hinge. With the hinge, the status is never ``FREE``.

    Examples
    --------
    >>> ends = np.array([1.1, 0.5, 0.5, 0.5]), np.array([1.2, 0.9, 1.0, 0.9])
    >>> status_of(*ends, np.ones(4), np.array([1.0, 1.0, 1.0, 0.0])).tolist()
    [0, 2, -1, 0]
    >>> status_of(*ends, np.ones(4), np.array([1.0, 1.0, 1.0, 0.0]), smooth=True).tolist()
    [0, 1, -1, 0]
    """
    least, most = np.where(signs > 0, low, -high), np.where(signs > 0, high, -low)
    status = np.full(least.size, SupportStatus.UNDECIDED, dtype=np.int8)
    status[most < 1.0] = SupportStatus.FREE if smooth else SupportStatus.BOUNDED
    status[(least > 1.0) | (weights == 0.0)] = SupportStatus.NONE
    return status


class SupportSurvey:
    """The status of all rows in one problem, collected block by block.

    Parameters
    ----------
    balls : Balls
        Where the optima are.
    i : int
        The problem.
    certificate : Certificate or None
        Its certificate.
    n_rows : int or None
        The number of rows that the certificate is about, if it is known. Without all of them, no
        row is proved to be free with the hinge loss.
    """

    def __init__(
        self, balls: Balls, i: int, certificate: Certificate | None, n_rows: int | None
    ) -> None:
        self._balls, self._i, self._certificate, self._n_rows = balls, i, certificate, n_rows
        self._smooth = certificate is not None and _SMOOTH[certificate.loss]
        self._statuses: list[NDArray[np.int8]] = []
        self._count = self._additions = 0
        self._losses = self._path = self._constant = 0.0
        self._sum = np.zeros(balls.coef.shape[1])
        # Undecided rows: their places, signs, boxes and, as long as they are few, themselves.
        self._places: list[NDArray[np.intp]] = []
        self._signs: list[Vector] = []
        self._boxes: list[Vector] = []
        proves_more = certificate is not None and not self._smooth
        self._rows: list[Any] | None = [] if proves_more else None
        self._kept = self._values = 0

    @np.errstate(all="ignore")
    def add(
        self, rows: ScoredRows, low: Vector, high: Vector, signs: Vector, weights: Vector
    ) -> None:
        """Add a block, given the intervals of its scores in this problem."""
        status = status_of(low, high, signs, weights, smooth=self._smooth)
        first, self._count = self._count, self._count + status.size
        self._statuses.append(status)
        if self._certificate is None:
            return
        distances = np.maximum(0.0, 1.0 - signs * rows.scores[:, self._i])
        self._losses += float(weights @ (distances**2 if self._smooth else distances))
        if self._smooth:
            return
        box = self._certificate.C * weights
        bounded = status == SupportStatus.BOUNDED
        if bounded.any():
            rho = float(self._balls.intercept_scaling[self._i])
            a = np.where(bounded, signs * box, 0.0)
            self._sum += rows.combination(a)
            self._constant += float(a.sum())
            self._path += float(np.abs(a) @ np.hypot(rows.sizes.norms, rho))
            self._additions = max(self._additions, int(bounded.sum()))
        undecided = np.flatnonzero(status == SupportStatus.UNDECIDED)
        self._kept += undecided.size
        self._values += int(rows.sizes.counts[undecided].sum())
        if self._rows is None or self._kept > _MOST_ROWS or self._values > _MOST_VALUES:
            self._rows = None
        elif undecided.size:
            self._rows.append(rows.take(undecided))
            self._places.append(first + undecided)
            self._signs.append(signs[undecided])
            self._boxes.append(box[undecided])

    def finish(self) -> NDArray[np.int8]:
        """The status of all rows, in their order.

        Raises
        ------
        ValueError
            The loss of the rows exceeds what the certificate claims for all of them.
        """
        status = np.concatenate(self._statuses) if self._statuses else np.zeros(0, dtype=np.int8)
        if self._all_rows_are_here() and self._rows:
            sparse = sp.issparse(self._rows[0])
            rows = sp.vstack(self._rows, "csr") if sparse else np.concatenate(self._rows)
            free = self._free(rows)
            status[np.concatenate(self._places)[free]] = SupportStatus.FREE
        return status

    def _all_rows_are_here(self) -> bool:
        """Whether these are the rows of the certificate, as far as number and J can tell."""
        c = self._certificate
        if c is None:
            return False
        w = self._weight_vector()
        J = 0.5 * float(w @ w) + c.C * self._losses
        excess = J - c.primal
        if excess > 4.0 * c.primal_rounding + _OTHER * abs(c.primal):
            raise ValueError(
                f"these are not the rows, labels and weights that the model was trained on: the "
                f"objective is {J:.6g} here and {c.primal:.6g} in the certificate"
            )
        same = abs(excess) <= c.primal_rounding + _SAME * abs(c.primal)
        return same and self._count == self._n_rows

    def _weight_vector(self) -> Vector:
        """The centre w, with the entry of the constant column if there is one."""
        balls, i = self._balls, self._i
        rho = float(balls.intercept_scaling[i])
        return np.append(balls.coef[i], float(balls.intercept[i]) / rho if rho > 0.0 else 0.0)

    @np.errstate(all="ignore")
    def _free(self, rows: Any) -> NDArray[np.bool_]:
        signs, boxes = np.concatenate(self._signs), np.concatenate(self._boxes)
        rho = float(self._balls.intercept_scaling[self._i])
        z = np.append(self._sum, rho * self._constant)
        # The box, its product with the row and the sum in the block are rounded, and so are the
        # sums over the blocks: an entry goes through no more than this.
        additions = self._additions + len(self._statuses) + 8
        off_z = INFLATION * UNIT_ROUNDOFF * additions * self._path
        w, r = self._weight_vector(), float(self._balls.radii[self._i])
        # Equal rows share the sum of their alphas, and this says nothing about one of them.
        first, group = _groups(rows, signs)
        counts = np.bincount(group)
        shared: Vector = np.bincount(group, boxes).astype(np.float64, copy=False)
        if first.size > _MOST_DIFFERENT:
            return np.zeros(signs.size, dtype=np.bool_)
        free = free_rows(rows[first], rho, signs[first], shared, w, z, r, off_z)
        alone: NDArray[np.bool_] = (free & (counts == 1))[group]
        return alone


def _groups(rows: Any, signs: Vector) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each group of equal rows with equal signs, and the group of each row."""
    places: dict[tuple[Any, ...], int] = {}
    first: list[int] = []
    group = np.empty(signs.size, dtype=np.intp)
    for k, sign in enumerate(signs.tolist()):
        if sp.issparse(rows):
            part = slice(rows.indptr[k], rows.indptr[k + 1])
            key: tuple[Any, ...] = (rows.indices[part].tobytes(), rows.data[part].tobytes(), sign)
        else:
            key = (rows[k].tobytes(), sign)
        if key not in places:
            places[key] = len(first)
            first.append(k)
        group[k] = places[key]
    return np.array(first, dtype=np.intp), group


@np.errstate(all="ignore")
def free_rows(
    rows: Any, rho: float, signs: Vector, boxes: Vector, w: Vector, z: Vector, radius: float,
    off_z: float,
) -> NDArray[np.bool_]:  # fmt: skip
    """Rows with 0 < alpha_k < C s_k in every alpha of the box with sum_k alpha_k y_k = w* - z.

    Let Y be rows that are linearly independent, D the others, alpha_Y and alpha_D what belongs to
    them, H an approximate inverse of G = Y Y', and a an approximate solution for alpha_D in the
    middle m of its box. The error e = alpha_Y - a satisfies

        G e = Y d,  d = w* - z - D' alpha_D - Y' a,   hence   e = H Y d - (H G - I) e.

    All terms are bounded, with their rounding: that of alpha_D - m is |H Y D'| m. It is zero, but
    for rounding, for a row that is no part of a combination that equals another row.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_columns)
        The rows x_k, without the constant column.
    rho : float
        Height of the constant column; zero if there is none.
    signs, boxes : ndarray of shape (n_rows,)
        Labels, +1 or -1, and C s_k.
    w, z : ndarray of shape (n_columns + 1,)
        The centre of the ball that contains w*, and the sum over all other rows.
    radius, off_z : float
        Bounds on |w - w*| and on the error of z.

    Returns
    -------
    free : ndarray of bool of shape (n_rows,)
        For which rows it is proved.
    """
    n, u = rows.shape[0], INFLATION * UNIT_ROUNDOFF
    free = np.zeros(n, dtype=np.bool_)
    sizes = row_sizes(rows)
    lengths = np.sqrt(sizes.norms**2 + rho**2) * (1.0 + 8.0 * UNIT_ROUNDOFF)
    terms = int(sizes.counts.max(initial=0)) + 1
    products = rows @ rows.T
    products = products.toarray() if sp.issparse(products) else products
    gram = np.outer(signs, signs) * (products + rho**2)
    if not (np.isfinite(gram).all() and math.isfinite(radius)):
        return free
    # A choice that is not independent does no harm: it is noticed below.
    scaled = gram / np.outer(lengths, lengths)
    _, order, rank, _ = dpstrf(scaled, tol=_DEPENDENT)
    chosen, others = order[:rank] - 1, order[rank:] - 1
    G, across = gram[np.ix_(chosen, chosen)], gram[np.ix_(chosen, others)]
    try:
        H = np.linalg.inv(G)
    except np.linalg.LinAlgError:
        return free
    middle = np.zeros(n)
    middle[others] = 0.5 * boxes[others]

    def applied(v: Vector) -> Vector:
        """Y v."""
        products: Vector = signs * (rows @ v[:-1] + rho * v[-1])
        return np.asarray(products[chosen])

    def combined(a: Vector) -> Vector:
        """The sum of the rows, each times its sign and its a."""
        return np.append((signs * a) @ rows, rho * float(signs @ a))

    q = w - z - combined(middle)
    a = H @ applied(q)
    alpha = middle.copy()
    alpha[chosen] = a
    rest = w - z - combined(alpha)
    # Errors of w, whose last entry was rounded, of z, and of sums and differences.
    off = off_z + u * (6.0 * _length(w) + 4.0 * _length(z))
    off = off + u * (n + 8.0) * float(np.abs(alpha) @ lengths)
    # Of a product with all of Y, in units of |H| times the lengths of the rows.
    spread = np.abs(H) @ lengths[chosen]
    roundings = u * (terms + 2 * n + 8)
    distances = np.sqrt(np.maximum(0.0, np.einsum("ij,ij->i", H @ G, H)) + roundings * spread**2)
    bound = distances * (radius + off)
    bound = bound + np.abs(H @ applied(rest)) + roundings * spread * _length(rest)
    bound = bound + np.abs(H @ across) @ middle[others]
    bound = bound + roundings * spread * float(lengths @ middle)
    identity = np.abs(H @ G - np.eye(rank)).sum(axis=1)
    identity = identity + roundings * spread * lengths[chosen].sum() + u * n
    if not (np.isfinite(bound).all() and identity.max(initial=0.0) < 0.5):
        return free
    largest = float(bound.max(initial=0.0)) / (1.0 - INFLATION * float(identity.max(initial=0.0)))
    error = INFLATION * (bound + identity * largest)
    free[chosen] = (a - error > 0.0) & (a + error < boxes[chosen] * (1.0 - 4.0 * UNIT_ROUNDOFF))
    return free


def _length(v: Vector) -> float:
    return float(np.sqrt(v @ v))
