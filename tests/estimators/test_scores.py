"""Scores of rows, in float64 and without a copy of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.estimators import scores
from certsvm.estimators.scores import scores_of


@given(
    n=st.integers(0, 30), classes=st.integers(1, 3), dtype=st.sampled_from(["f4", "f8"]),
    form=st.sampled_from([np.asarray, sp.csr_matrix, sp.csr_array]),
    weights=st.sampled_from([np.asarray, sp.csr_matrix]),
)  # fmt: skip
def test_scores_are_those_of_float64(
    n: int, classes: int, dtype: str, form: Any, weights: Any
) -> None:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 4)).astype(dtype)
    coef = rng.standard_normal((classes, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "_ROWS_AT_ONCE", 7)
        values = scores_of(form(X), weights(coef))
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, X.astype(np.float64) @ coef.T, rtol=1e-12, atol=1e-12)
