"""Scores of rows, with NumPy and SciPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

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
    X = _matrix(X)
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


def _matrix(X: Any) -> Any:
    """X as a numeric array, or as CSR whose indices are all in range."""
    if not sp.issparse(X):
        X = np.asarray(X)
        if X.dtype.kind not in "biuf":
            X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if not sp.issparse(X):
        return X
    X = X if X.format == "csr" else X.tocsr()
    # check_format may change the index type of the matrix, so it gets a copy of X's structure.
    checked = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    checked.check_format(full_check=True)
    return checked
