"""Which rows are support vectors of the exact optimum, as far as intervals of its margins tell.

In every optimal dual point, a row with w*.y_k > 1 has alpha_k = 0. One with w*.y_k < 1 has
alpha_k = C s_k for the hinge, and 2 C s_k (1 - w*.y_k) for its square. That a margin is exactly one
follows from no interval. In docs/theory.md: "What a gap tells about the optimum".
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.enclosures import Vector


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
