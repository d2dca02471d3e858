"""Scores of rows, with NumPy and SciPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.matrices import checked_matrix

_ROWS_AT_ONCE = 8192


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
    n_rows, n_columns = X.shape
    n_features = coef.shape[1]
    if n_columns > n_features or (n_columns < n_features and not allow_fewer):
        hint = "" if n_columns > n_features else "; allow_fewer=True takes them as zero"
        raise ValueError(f"X has {n_columns} columns, the model {n_features}{hint}")
    weights = coef[:, :n_columns].T
    scores: NDArray[np.float64]
    if X.dtype == np.float64:
        scores = X @ weights + intercept
    else:
        scores = np.empty((n_rows, coef.shape[0]))
        # In chunks, to bound the size of the float64 copies.
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            scores[part] = X[part].astype(np.float64) @ weights + intercept
    if not np.isfinite(scores).all():
        k = int(np.argmin(np.isfinite(scores).all(axis=1)))
        raise ValueError(f"row {k} of X contains NaN, infinity, or values too large to add up")
    return scores
