"""Scores of rows, with NumPy and SciPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.matrices import checked_matrix

_ROWS_AT_ONCE = 8192


def products(X: Any, coef: Any) -> NDArray[np.float64]:
    """``X @ coef.T`` in float64, of an array or a CSR matrix; ``coef`` may be sparse, too."""
    if X.dtype == np.float64:
        scores = X @ coef.T
        return scores.toarray() if sp.issparse(scores) else np.asarray(scores)
    scores = np.empty((X.shape[0], coef.shape[0]))
    # In blocks, to bound the size of the float64 copies.
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        scores[part] = products(X[part].astype(np.float64), coef)
    return scores


def linear_scores(
    X: Any, coef: NDArray[np.float64], intercept: NDArray[np.float64], *, allow_fewer: bool = False
) -> NDArray[np.float64]:
    """Scores ``X @ coef.T + intercept``, in float64.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows.
    coef : ndarray of shape (n_problems, n_features)
        Weights of the columns.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    allow_fewer : bool, default=False
        Whether X may have fewer columns than ``coef``, the rest being zero.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_problems)
        Finite; a ValueError names the first row whose scores are not.
    """
    X = checked_matrix(X)
    n_columns, n_features = X.shape[1], coef.shape[1]
    if n_columns > n_features or (n_columns < n_features and not allow_fewer):
        hint = "" if n_columns > n_features else "; predict(X, allow_fewer=True) takes them as zero"
        raise ValueError(f"X has {n_columns} columns, the model {n_features}{hint}")
    scores = products(X, coef[:, :n_columns]) + intercept
    if not np.isfinite(scores).all():
        k = int(np.argmin(np.isfinite(scores).all(axis=1)))
        raise ValueError(f"row {k} of X contains NaN, infinity, or values too large to add up")
    return scores
