"""Scores of rows, without a copy of the data."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import validate_data

from certsvm.matrices import checked_csr, refuse_broken

_ROWS_AT_ONCE = 8192


def to_numpy() -> AbstractContextManager[None]:
    """Where scikit-learn converts all arrays to NumPy's, whatever ``array_api_dispatch`` says."""
    context: AbstractContextManager[None] = config_context(array_api_dispatch=False)
    return context


def safe_to_read(X: Any) -> Any:
    """X itself, safe to read; a sparse matrix as CSR.

    SciPy's conversion adds up values that are stored twice in their own type: of single precision,
    of eight bits, or of one. Verification would find other rows.
    """
    if sp.issparse(X):
        return checked_csr(X)
    refuse_broken(X)
    return X


def rows_to_score(estimator: Any, X: Any) -> Any:
    """X as an array or CSR matrix with the columns that the estimator was fitted on."""
    with to_numpy():
        return validate_data(
            estimator,
            safe_to_read(X),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=False,
        )


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
