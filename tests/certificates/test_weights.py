from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from certsvm.certificates.weights import dense


def test_arrays_are_not_copied() -> None:
    coef = np.eye(2)
    assert dense(coef) is coef


def test_sparse_weights_become_an_array() -> None:
    coef = np.array([[0.0, 2.0, 0.0]])
    for form in (sp.csr_matrix, sp.csr_array, sp.coo_array):
        again = dense(form(coef))
        assert type(again) is np.ndarray
        np.testing.assert_array_equal(again, coef)
