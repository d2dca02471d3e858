"""Pegasos with the arithmetic of its published program: the scale of w is never folded in.

w is kept as scale times v, beside |w|^2. A step shrinks w by 1 - 1/t, t = 2, 3, ..., and a
projection to the ball of radius 1/sqrt(lambda) by radius / |w|; both multiply the scale and |w|^2.
An update adds y_k / (lambda t scale) to v. While |y_k| / (lambda t) is large against the radius,
each step is projected, and the scale shrinks by a factor of about R sqrt(C m) / t each time. After
R sqrt(C m) steps it is exp(-R sqrt(C m)) or so, if the program gets there: when v exceeds the range
of the numbers, the product with it that |w|^2 needs is infinite or undefined.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def steps_until_failure(
    X: sp.csr_matrix, y: NDArray[np.float64], C: float, steps: int, seed: int = 0
) -> int | None:
    """The first step after which w or |w|^2 is not finite; None if there is none."""
    rng = np.random.default_rng(seed)
    m = X.shape[0]
    scale, v, squared_norm = np.float64(1.0), np.zeros(X.shape[1]), np.float64(0.0)
    with np.errstate(all="ignore"):
        for t in range(2, steps + 2):
            k = int(rng.integers(m))
            row = slice(X.indptr[k], X.indptr[k + 1])
            values, columns = X.data[row], X.indices[row]
            margin = y[k] * (values @ (scale * v[columns]))
            shrinking = 1.0 - 1.0 / t
            scale *= shrinking
            squared_norm *= shrinking**2
            if margin < 1.0:
                update = C * m / t * y[k] * values
                squared_norm += update @ update + 2.0 * scale * (v[columns] @ update)
                v[columns] += update / scale
            if squared_norm > C * m:
                projection = np.sqrt(C * m / squared_norm)
                scale *= projection
                squared_norm *= projection**2
            if not (np.isfinite(squared_norm) and np.isfinite(scale * v[columns]).all()):
                return t - 1
    return None
