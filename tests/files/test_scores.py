"""Scores of rows, sparse and dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.files.test_model import small


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
