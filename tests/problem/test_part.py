"""Parts: labels, weights and the quantities that rounding is proportional to."""

import pickle

import numpy as np
import pytest
from hypothesis import given

from certsvm.problem.part import Part
from certsvm.problem.rows import Rows
from tests.problems import Case, cases

ROWS = Rows(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]))


@given(cases())
def test_roundings_are_those_of_the_rows(case: Case) -> None:
    part = case.problem()
    patterns, weights = case.patterns(), case.row_weights()
    stored = [np.count_nonzero(row) if case.form.startswith("csr") else row.size for row in case.X]
    n = np.array(stored) + (case.intercept_scaling > 0)
    sizes = (n + 2) * np.linalg.norm(patterns, axis=1)
    np.testing.assert_allclose(part.loss_roundings, weights * sizes)
    assert part.largest_rounding == pytest.approx(sizes[weights > 0].max(initial=0.0))


def test_arrays_are_writeable_after_unpickling() -> None:
    part = Part(ROWS, np.array([2.0, 0.0, -0.5]), first=10)
    part.signed_weights.flags.writeable = False
    again = pickle.loads(pickle.dumps(part))
    assert again.signed_weights.flags.writeable
    assert not again.rows.arrays.values.flags.writeable
    assert again.signed_weights.tolist() == [2.0, 0.0, -0.5]
    assert again.span == part.span
    np.testing.assert_array_equal(again.rows.matrix, part.rows.matrix)
