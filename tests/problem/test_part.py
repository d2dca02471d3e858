"""Parts: labels, weights and the quantities that rounding is proportional to."""

import pickle

import numpy as np
import pytest
from hypothesis import given

from certsvm.problem import part as part_module
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows
from tests.problems import Case, cases

ROWS = Rows(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]))


def test_labels_and_weights() -> None:
    part = Part(ROWS, np.array([2.0, 0.0, -0.5]), first=10)
    assert part.labels.tolist() == [1, 0, -1]
    assert part.weights.tolist() == [2.0, 0.0, 0.5]
    assert part.active.tolist() == [0, 2]
    assert part.span == slice(10, 13)


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


@pytest.mark.parametrize("values_per_call", [1, 7, 1000])
def test_slices_cover_the_order_once(values_per_call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_module, "_VALUES_PER_CALL", values_per_call)
    order = np.random.default_rng(0).permutation(100)
    slices = list(Part(ROWS, np.ones(3)).slices(order))
    assert np.concatenate(slices).tolist() == order.tolist()
    assert max(map(len, slices)) == min(100, max(1, values_per_call // 2))
