"""Batches of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from certsvm.files.batch import Batch, joined


def batch(n_rows: int, *, sparse: bool, weighted: bool, width: int = 4) -> Batch:
    rng = np.random.default_rng(n_rows)
    X: Any = rng.choice([0.0, 1.0, 2.5], (n_rows, width))
    weights = rng.random(n_rows) if weighted else None
    return Batch(sp.csr_matrix(X) if sparse else X, rng.integers(0, 3, n_rows), weights)


def dense(rows: Batch) -> Any:
    return rows.X.toarray() if sp.issparse(rows.X) else rows.X


@settings(max_examples=30)
@given(st.lists(st.integers(0, 6), max_size=4), st.booleans(), st.booleans())
def test_cut_and_joined_again(cuts: list[int], sparse: bool, weighted: bool) -> None:
    whole = batch(6, sparse=sparse, weighted=weighted)
    pieces = list(whole.cut(np.array([0, *sorted(cuts), 6])))
    assert len(pieces) == len(cuts) + 1
    again = joined(pieces)
    np.testing.assert_array_equal(dense(again), dense(whole))
    np.testing.assert_array_equal(again.y, whole.y)
    assert (again.weights is None) == (not weighted)
    if weighted:
        np.testing.assert_array_equal(again.weights, whole.weights)
    assert again.n_values == sum(piece.n_values for piece in pieces)


def test_joined_rows_are_as_wide_as_the_widest() -> None:
    parts = [batch(2, sparse=True, weighted=False, width=width) for width in (3, 5, 1)]
    X = joined(parts).X
    assert X.shape == (6, 5)
    for k, part in enumerate(parts):
        width = part.X.shape[1]
        np.testing.assert_array_equal(X[2 * k : 2 * k + 2, :width].toarray(), dense(part))
        assert X[2 * k : 2 * k + 2, width:].nnz == 0
