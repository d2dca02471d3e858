"""Parts: labels, weights and the quantities that rounding is proportional to."""

import pickle

import numpy as np

from certsvm.problem.rows import Part, Rows

ROWS = Rows(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]))


def test_arrays_are_writeable_after_unpickling() -> None:
    part = Part(ROWS, np.array([2.0, 0.0, -0.5]), first=10)
    part.signed_weights.flags.writeable = False
    again = pickle.loads(pickle.dumps(part))
    assert again.signed_weights.flags.writeable
    assert not again.rows.arrays.values.flags.writeable
    assert again.signed_weights.tolist() == [2.0, 0.0, -0.5]
    assert again.span == part.span
    np.testing.assert_array_equal(again.rows.matrix, part.rows.matrix)
