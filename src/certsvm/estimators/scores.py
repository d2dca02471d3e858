"""Scores of rows, without a copy of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

_ROWS_AT_ONCE = 8192


def scores_of(X: Any, coef: NDArray[np.float64] | sp.csr_matrix) -> NDArray[np.float64]:
    """``X @ coef.T``; float32 is widened a block of rows at a time, not all at once."""
    if X.dtype == np.float64:
        scores: NDArray[np.float64] = safe_sparse_dot(X, coef.T, dense_output=True)
        return scores
    scores = np.empty((X.shape[0], coef.shape[0]))
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        wide = X[part].astype(np.float64)
        scores[part] = safe_sparse_dot(wide, coef.T, dense_output=True)
    return scores
