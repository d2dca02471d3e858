"""Witnesses: compact dual points, from which dual bounds are recomputed.

Any alpha in the box 0 <= alpha_k <= C s_k proves the bound L(alpha) <= J_opt, whatever its origin.
So alpha need not be stored exactly: a rounded alpha in the box proves almost the same bound. The
box of the squared hinge has no upper end. If the intercept is free, verification balances alpha.

* ``Witness`` stores each alpha_k as a multiple of C s_k, in 8, 16 or 32 bits.
* ``WeightsWitness`` stores a weight vector, of which alpha is a function, row by row: its size does
  not depend on the number of rows.

Both are relative to the box, so that alpha is feasible for the C of the model and the weights of
the data, whatever the witness contains. Any alpha in the box is a dual point, however it was
rounded. But to tell whether a witness is what a certificate claims, its alpha must be known up to
an error (docs/verification.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.certificate import (
    HINGE_NAME,
    SQUARED_HINGE_NAME,
    Certificate,
    largest_scale,
)
from certsvm.matrices import read_only
from certsvm.verification.interval_arithmetic import (
    INFLATION,
    UNDERFLOW,
    UNIT_ROUNDOFF,
    RowBlock,
    Vector,
)

_CODES = {8: np.uint8, 16: np.uint16, 32: np.uint32}


@dataclass(frozen=True, eq=False)
class Witness:
    """alpha, quantised: alpha_k = scale * C s_k * code_k / (2**bits - 1).

    Rounding never takes alpha out of the box of the hinge: code / (2**bits - 1) and its product
    with a scale <= 1 are at most 1, exactly, since rounding keeps order and 1 is a float64. The
    same holds for the product of that with C s_k.

    Attributes
    ----------
    codes : ndarray of shape (n_problems, n_rows)
        Of type uint8, uint16 or uint32.
    scale : ndarray of shape (n_problems,)
        Finite and > 0; for the hinge, at most 1. A multiple s alpha is feasible too, and may prove
        more.

    Examples
    --------
    >>> box = np.array([0.5, 0.5, 2.0])
    >>> witness = Witness.quantise([[0.0, 0.5, 0.7]], box, bits=8)
    >>> witness.codes.tolist(), witness.alpha(0, box).round(3).tolist()
    ([[0, 255, 89]], [0.0, 0.5, 0.698])
    """

    form: ClassVar[str] = "quantised"

    codes: NDArray[np.unsignedinteger[Any]]
    scale: Vector

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        scale = np.asarray(self.scale, dtype=np.float64)
        if codes.ndim != 2 or codes.dtype not in (np.uint8, np.uint16, np.uint32):
            raise ValueError(
                "codes must be a matrix of uint8, uint16 or uint32, one row per problem; got "
                f"{codes.dtype} of shape {codes.shape}"
            )
        if scale.shape != (codes.shape[0],):
            raise ValueError(f"{codes.shape[0]} problems need as many scales, not {scale.shape}")
        # NaN must fail, so the comparisons are not negated.
        if not ((scale > 0) & (scale < np.inf)).all():
            raise ValueError(f"scales must be finite and > 0, got {scale}")
        object.__setattr__(self, "codes", read_only(codes))
        object.__setattr__(self, "scale", read_only(scale))

    def __repr__(self) -> str:
        bits = 8 * self.codes.itemsize
        return f"<Witness of {self.n_rows} rows and {self.n_problems} problems, {bits} bits each>"

    @classmethod
    def quantise(
        cls, alphas: ArrayLike, boxes: ArrayLike, bits: int = 8, *, loss: str = HINGE_NAME
    ) -> Witness:
        """Round each alpha_k to the nearest of 2**bits levels.

        For the hinge, the highest level is C s_k. Zero stays zero and C s_k stays C s_k, exactly.
        For its square, the highest level is the largest multiple of C s_k among a problem's alpha.

        Parameters
        ----------
        alphas : array-like of shape (n_problems, n_rows)
            In the box; zero where C s_k is.
        boxes : array-like of shape (n_rows,) or (n_problems, n_rows)
            C s_k.
        bits : {8, 16, 32}, default=8
            Bits for each alpha_k.
        loss : {"hinge", "squared_hinge"}, default="hinge"
            The loss, which says where the box ends.

        Returns
        -------
        witness : Witness
            With scale 1, or the largest multiple.
        """
        if bits not in _CODES:
            raise ValueError(f"bits must be 8, 16 or 32, got {bits!r}")
        alpha = np.asarray(alphas, dtype=np.float64)
        if alpha.ndim != 2:
            raise ValueError(f"alphas must be a matrix, one row per problem; got {alpha.shape}")
        box = np.broadcast_to(np.asarray(boxes, dtype=np.float64), alpha.shape)
        end = np.where(box > 0, np.inf, 0.0) if loss == SQUARED_HINGE_NAME else box
        finite = np.isfinite(box).all() and np.isfinite(alpha).all()
        if not (finite and ((alpha >= 0) & (alpha <= end)).all()):
            raise ValueError("alpha leaves its box, or C s_k is infinite")
        codes, scale = np.empty(alpha.shape, dtype=_CODES[bits]), np.ones(alpha.shape[0])
        for i in range(alpha.shape[0]):
            fraction = np.zeros(alpha.shape[1])
            with np.errstate(over="ignore"):
                np.divide(alpha[i], box[i], out=fraction, where=box[i] > 0)
            if loss == SQUARED_HINGE_NAME and (largest := float(fraction.max(initial=0.0))) > 0.0:
                scale[i] = largest
                fraction /= largest
            codes[i] = np.rint(fraction * (2**bits - 1))
        return cls(codes, scale)

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return int(self.codes.shape[0])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    @property
    def bits(self) -> int:
        """Bits for each alpha_k."""
        return 8 * self.codes.dtype.itemsize

    def alpha(self, i: int, box: Vector, loss: str = HINGE_NAME) -> Vector:
        """The i-th problem's alpha.

        Parameters
        ----------
        i : int
            Index of the problem.
        box : ndarray of shape (n_rows,)
            C s_k.
        loss : {"hinge", "squared_hinge"}, default="hinge"
            The loss, which says where the box ends.

        Returns
        -------
        alpha : ndarray of shape (n_rows,)
            In the box, without exception.
        """
        box = _checked_box(box)
        if box.size != self.n_rows:
            raise ValueError(f"the witness is about {self.n_rows} rows, not {box.size}")
        if not self.scale[i] <= largest_scale(loss):
            raise ValueError(
                f"a witness about the {loss} needs scales of at most 1, got {self.scale[i]}"
            )
        fraction = self.codes[i] / float(2**self.bits - 1)
        with np.errstate(over="ignore"):
            alpha: Vector = box * (self.scale[i] * fraction)
        return _finite(alpha) if loss == SQUARED_HINGE_NAME else np.minimum(alpha, box)

    def alpha_of(
        self, i: int, claimed: Certificate, rows: RowBlock, signs: Vector, weights: Vector,
        first: int,
    ) -> tuple[Vector, Vector]:  # fmt: skip
        """The i-th problem's alpha of a block of rows.

        Parameters
        ----------
        i : int
            Index of the problem.
        claimed : Certificate
            Its certificate; only C and the loss are used, since the witness has a scale of its own.
        rows : RowBlock
            The rows of the block; not used.
        signs : ndarray of shape (n_block,)
            +-1, the side of each row; not used.
        weights : ndarray of shape (n_block,)
            s_k.
        first : int
            Number of rows before the block.

        Returns
        -------
        alpha : ndarray of shape (n_block,)
            In the box, without exception.
        uncertainty : ndarray of shape (n_block,)
            Zero, since the format defines alpha by its evaluation in float64.
        """
        if first + weights.size > self.n_rows:
            raise ValueError(f"the witness is about {self.n_rows} rows, the data has more")
        block = Witness(self.codes[i : i + 1, first : first + weights.size], self.scale[i : i + 1])
        return block.alpha(0, claimed.C * weights, claimed.loss), np.zeros(weights.size)


@dataclass(frozen=True, eq=False)
class WeightsWitness:
    """alpha as a function of a weight vector v.

    For the hinge, alpha_k = clip(C s_k / 2 + sigma s_k (1 - v.y_k), 0, C s_k): rows well inside the
    margin of v are at the top of their box, rows well beyond it at the bottom. For its square,
    alpha_k = 2 C s_k max(0, 1 - v.y_k).

    Attributes
    ----------
    vectors : ndarray of shape (n_problems, dimension)
        v, with the weight of the augmentation last, if there is one.
    sigma : ndarray of shape (n_problems,)
        Slope of alpha between the ends of the box; finite and >= 0. The squared hinge has no use
        for it.

    Examples
    --------
    >>> witness = WeightsWitness(np.array([[1.0]]), np.array([2.0]))
    >>> rows = RowBlock(np.array([0.0, 0.9, 3.0]), np.arange(3), np.zeros(3, np.intp), 3, 1)
    >>> claimed, ones = Certificate(1.0, 0.5, target=0.01), np.ones(3)
    >>> witness.alpha_of(0, claimed, rows, ones, ones, first=0)[0].round(3).tolist()
    [1.0, 0.7, 0.0]
    """

    form: ClassVar[str] = "weights"

    vectors: Vector
    sigma: Vector

    def __post_init__(self) -> None:
        vectors = np.asarray(self.vectors, dtype=np.float64)
        sigma = np.asarray(self.sigma, dtype=np.float64)
        if vectors.ndim != 2 or sigma.shape != (vectors.shape[0],):
            raise ValueError(
                f"vectors of shape {vectors.shape} do not go with sigma of shape {sigma.shape}"
            )
        if not (np.isfinite(vectors).all() and np.isfinite(sigma).all() and (sigma >= 0).all()):
            raise ValueError("vectors and sigma must be finite, and sigma not negative")
        object.__setattr__(self, "vectors", read_only(vectors))
        object.__setattr__(self, "sigma", read_only(sigma))

    def __repr__(self) -> str:
        n_problems, n = self.vectors.shape
        return f"<WeightsWitness of {n_problems} problems with {n} weights each>"

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return int(self.vectors.shape[0])

    @property
    def n_rows(self) -> None:
        """None: alpha follows for any number of rows."""
        return None

    def alpha_of(
        self, i: int, claimed: Certificate, rows: RowBlock, signs: Vector, weights: Vector,
        first: int,
    ) -> tuple[Vector, Vector, Vector]:  # fmt: skip
        """The i-th problem's alpha of a block of rows, as in ``Witness.alpha_of``.

        ``first`` is not used. alpha is in the box if the scale of the certificate is not negative.
        It is uncertain by the rounding of v.y_k, except well beyond an end of the box. The third
        array counts the rounding of training, too.
        """
        v, n, scale = self.vectors[i], rows.n_columns, claimed.scale
        if v.size not in (n, n + 1):
            raise ValueError(f"the witness has {v.size} weights, the data {n} columns")
        margins, *errors = enclosed_margins(rows, signs, v, claimed.intercept_scaling)
        if not np.isfinite(margins).all():
            raise ValueError("the products of the witness with the rows are not finite")
        box, slope = _checked_box(claimed.C * weights), float(self.sigma[i])
        centre, end = 0.5 * box, box
        if claimed.squared:
            slope, centre, end = 2.0 * claimed.C, 0.0 * box, np.full(box.size, np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            shift = slope * (weights * (1.0 - margins))
            # 0 * inf is nan: a slope of zero shifts nothing.
            shift[np.isnan(shift)] = 0.0
            alpha = np.minimum(scale * np.clip(centre + shift, 0.0, end), end)
        own, trained = (
            response_uncertainty(centre, end, slope, weights, scale, margins, error)
            for error in errors
        )
        return _finite(alpha) if claimed.squared else alpha, own, trained


@np.errstate(all="ignore")
def enclosed_margins(
    rows: RowBlock, signs: Vector, v: Vector, intercept_scaling: float
) -> tuple[Vector, Vector, Vector]:
    """v.y_k of a block of rows, and bounds on the errors.

    ``v`` has an entry for each column, and perhaps one more for the constant column. The last
    bounds also contain what training has computed: a plain sum of n_k products and the constant,
    which rounds at most n_k + 2 times, in any order.
    """
    n = rows.n_columns
    constant = intercept_scaling * float(v[n]) if v.size > n else 0.0
    products, error = rows.products(v[:n], constant)
    counts = np.bincount(rows.rows, minlength=rows.n_rows) + 2.0
    sizes = np.bincount(rows.rows, np.abs(rows.values * v[rows.columns]), rows.n_rows)
    plain = UNIT_ROUNDOFF * counts * (sizes + abs(constant)) + counts * UNDERFLOW
    # Here, too, the constant is a rounded product.
    error = error + UNIT_ROUNDOFF * abs(constant) + UNDERFLOW
    return signs * products, error, error + INFLATION * plain


@np.errstate(all="ignore")
def response_uncertainty(
    centre: Vector, end: Vector, slope: float, weights: Vector, scale: float, margins: Vector,
    error: Vector,
) -> Vector:  # fmt: skip
    """A bound on the distance of two evaluations of scale * alpha in float64, from such margins.

    alpha_k = clip(centre_k + slope s_k (1 - v.y_k), 0, end_k). In each evaluation, the shift
    slope s_k (1 - v.y_k) goes through at most four roundings, one of which may be that of C s_k and
    underflow; the sum and the box go through one each, and so does the product with the scale. A
    row that is beyond an end of the box by more than that is at this end, which is zero or the
    rounded C s_k.
    """
    distance = 1.0 - margins
    shift = slope * (weights * distance)
    roundings = 8.0 * np.abs(shift) + 16.0 * centre + 2.0 * slope * weights
    uncertainty = slope * (weights * error) + UNIT_ROUNDOFF * roundings
    underflow = UNDERFLOW * (1.0 + slope) * (1.0 + np.abs(distance) + error)
    uncertainty = INFLATION * (uncertainty + underflow)
    unclipped = centre + shift
    # A box of a weight of zero is a point.
    uncertainty[(unclipped + uncertainty < 0.0) | (weights == 0.0)] = 0.0
    beyond = (unclipped - uncertainty > end) & (weights > 0.0)
    uncertainty[beyond] = 8.0 * UNIT_ROUNDOFF * end[beyond] + UNDERFLOW
    moved = (uncertainty != 0.0) & (scale != 0.0)
    return np.where(moved, scale * uncertainty + UNDERFLOW, 0.0)


def _finite(alpha: Vector) -> Vector:
    if not np.isfinite(alpha).all():
        raise ValueError("the alpha of a witness is beyond the largest number")
    return alpha


def _checked_box(box: Vector) -> Vector:
    box = np.asarray(box, dtype=np.float64)
    if box.ndim != 1 or not (np.isfinite(box).all() and (box >= 0).all()):
        raise ValueError("the box C s_k must be one finite number >= 0 for each row")
    return box
