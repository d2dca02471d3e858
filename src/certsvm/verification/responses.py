"""How far rounding moves a dual point that is a function of a weight vector.

    alpha_k = clip(C s_k / 2 + sigma s_k (1 - v.y_k), 0, C s_k)    for the hinge,
    alpha_k = 2 C s_k max(0, 1 - v.y_k)                            for its square.

Any alpha in the box is a dual point, however it was rounded. But to tell whether a witness is what
a certificate claims, its alpha must be known up to an error (docs/verification.md).
"""

from __future__ import annotations

import numpy as np

from certsvm.verification.interval_arithmetic import (
    INFLATION,
    UNDERFLOW,
    UNIT_ROUNDOFF,
    RowBlock,
    Vector,
)


@np.errstate(all="ignore")
def enclosed_margins(
    rows: RowBlock, signs: Vector, v: Vector, intercept_scaling: float, *, as_trained: bool = False
) -> tuple[Vector, Vector]:
    """v.y_k of a block of rows, and bounds on the errors.

    ``v`` has an entry for each column, and perhaps one more for the constant column. With
    ``as_trained``, the bounds also contain what training has computed: a plain sum of n_k products
    and the constant, which rounds at most n_k + 2 times, in any order.
    """
    n = rows.n_columns
    constant = intercept_scaling * float(v[n]) if v.size > n else 0.0
    products, error = rows.products(v[:n], constant)
    if as_trained:
        counts = np.bincount(rows.rows, minlength=rows.n_rows) + 2.0
        sizes = np.bincount(rows.rows, np.abs(rows.values * v[rows.columns]), rows.n_rows)
        plain = UNIT_ROUNDOFF * counts * (sizes + abs(constant)) + counts * UNDERFLOW
        error = error + INFLATION * plain
    # Here, too, the constant is a rounded product.
    return signs * products, error + UNIT_ROUNDOFF * abs(constant) + UNDERFLOW


@np.errstate(all="ignore")
def response_uncertainty(
    box: Vector, weights: Vector, sigma: float, scale: float, margins: Vector, error: Vector
) -> Vector:
    """A bound on the distance of two evaluations of scale * alpha in float64, from such margins.

    In each, the shift sigma s_k (1 - v.y_k) goes through three roundings, the sum and the box
    through one each, and so does the product with the scale. A row that is beyond an end of the box
    by more than that is at this end, which is zero or the rounded C s_k.
    """
    shift = sigma * (weights * (1.0 - margins))
    roundings = 8.0 * np.abs(shift) + 2.0 * sigma * weights + 8.0 * box
    uncertainty = sigma * (weights * error) + UNIT_ROUNDOFF * roundings
    uncertainty = INFLATION * uncertainty + UNDERFLOW * (1.0 + sigma)
    unclipped = 0.5 * box + shift
    # A box of a weight of zero is a point.
    uncertainty[(unclipped + uncertainty < 0.0) | (weights == 0.0)] = 0.0
    beyond = (unclipped - uncertainty > box) & (weights > 0.0)
    uncertainty[beyond] = 8.0 * UNIT_ROUNDOFF * box[beyond] + UNDERFLOW
    moved = (uncertainty != 0.0) & (scale != 0.0)
    return np.where(moved, scale * uncertainty + UNDERFLOW, 0.0)


@np.errstate(all="ignore")
def squared_response_uncertainty(
    box: Vector, weights: Vector, scale: float, margins: Vector, error: Vector
) -> Vector:
    """The same for the squared hinge.

    C s_k, the difference, their product and that with the scale round once each, in either
    evaluation. A row that is beyond the margin by more than the error has no alpha.
    """
    distance = 1.0 - margins
    rounded = UNIT_ROUNDOFF * np.abs(distance)
    none = distance + INFLATION * (error + 2.0 * rounded) < 0.0
    moved = 2.0 * error * (1.0 + UNIT_ROUNDOFF) + 16.0 * rounded
    # C s_k may have underflowed.
    uncertainty = INFLATION * (box * moved + UNDERFLOW * (1.0 + np.abs(distance) + error))
    none |= (weights == 0.0) | (scale == 0.0)
    return np.where(none, 0.0, scale * uncertainty + UNDERFLOW)
