"""Rows to be scored, without a copy of the data."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.utils.validation import validate_data

from certsvm.matrices import checked_csr, refuse_broken


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
