"""Weights of linear classifiers, as they are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def dense(weights: Any) -> NDArray[Any]:
    """Weights as an array, such as ``coef_`` after ``sparsify``; an array is not copied.

    Examples
    --------
    >>> dense(sp.csr_matrix([[0.0, 2.0]]))
    array([[0., 2.]])
    """
    return weights.toarray() if sp.issparse(weights) else np.asarray(weights)
