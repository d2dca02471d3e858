"""Scores of rows, sparse and dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from certsvm.files.scores import linear_scores
from tests.files.test_model import small

rows = hnp.arrays(np.float64, (5, 3), elements=st.integers(-9, 9).map(float))
weights = hnp.arrays(np.float64, (2, 3), elements=st.integers(-9, 9).map(float))


@given(rows, weights)
def test_sparse_and_dense_rows_have_the_same_scores(X: Any, coef: Any) -> None:
    intercept = np.array([0.5, -2.0])
    # Small integers add up exactly, in any order.
    expected = X @ coef.T + intercept
    for matrix in (X, sp.csr_matrix(X), sp.csc_array(X), X.astype(np.int16), X.tolist()):
        np.testing.assert_array_equal(linear_scores(matrix, coef, intercept), expected)


def test_numbers_of_columns() -> None:
    model = small()
    for X in (np.ones((3, 1)), sp.csr_array(np.ones((3, 1)))):
        with pytest.raises(ValueError, match=r"1 columns, the model 2; .*allow_fewer"):
            model.decision_function(X)
        assert model.decision_function(X, allow_fewer=True).tolist() == [1.5] * 3
        assert model.predict(X, allow_fewer=True).tolist() == [1] * 3
    with pytest.raises(ValueError, match=r"3 columns, the model 2$"):
        model.predict(np.ones((3, 3)), allow_fewer=True)
    with pytest.raises(ValueError, match="two dimensions"):
        model.predict(np.ones(2))
    assert model.predict(np.ones((0, 2))).shape == (0,)


def test_rows_that_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="row 1 of X contains NaN"):
        small().predict([[1.0, 1.0], [np.nan, 1.0]])
    broken = sp.csr_array(np.eye(2))
    broken.indices[0] = 1_000_000_000
    with pytest.raises(ValueError, match="broken CSR matrix: it has an index of 1000000000"):
        small().predict(broken)
