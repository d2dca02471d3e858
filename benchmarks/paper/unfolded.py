"""Pegasos as in its published program: the scale of w is never folded into the vector.

w is kept as scale times v. A step shrinks w by 1 - 1/t, and a projection to the ball of radius
1/sqrt(lambda) by radius / |w|; both multiply the scale, and an update adds y_k / (lambda t scale)
to v. While |y_k| / (lambda t) is large against the radius each step is projected, and the scale
shrinks by a factor of about R sqrt(C m) / t each time. After R sqrt(C m) steps it is
exp(-R sqrt(C m)) or so, which beyond some 700 is zero in double precision.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def steps_until_failure(
    X: sp.csr_matrix, y: NDArray[np.float64], C: float, steps: int, seed: int = 0
) -> int | None:
    """The first step at which w is not finite or vanishes; None if there is none."""
    rng = np.random.default_rng(seed)
    m = X.shape[0]
    radius = np.sqrt(C * m)
    scale, v, squared_norm = 1.0, np.zeros(X.shape[1]), 0.0
    with np.errstate(all="ignore"):
        for t in range(1, steps + 1):
            k = int(rng.integers(m))
            row = slice(X.indptr[k], X.indptr[k + 1])
            values, columns = X.data[row], X.indices[row]
            product = y[k] * values @ v[columns]
            margin = scale * product
            if t > 1:
                scale *= 1.0 - 1.0 / t
            if margin < 1.0:
                step = C * m / (np.float64(t) * scale)
                v[columns] += step * y[k] * values
                squared_norm += step * (2.0 * product + step * (values @ values))
            length = scale * np.sqrt(squared_norm)
            if length > radius:
                scale *= radius / length
            if not np.isfinite(length) or scale == 0.0:
                return t
    return None
