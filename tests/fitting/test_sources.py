"""Sources: class weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.fitting.sources import MemorySource, class_factors
from certsvm.problem.base import Objective


def test_class_weights_may_be_set_afterwards() -> None:
    source = MemorySource(np.eye(3), np.array([0, 1, 1]))
    source.set_class_weight({0: 3.0, 1: 1.0})
    assert source.problem(0, Objective()).weights.tolist() == [3.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="only one class, 1 among the rows of positive weight"):
        source.set_class_weight({0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match="no class at all"):
        source.set_class_weight({0: 0.0, 1: 0.0})


@given(st.lists(st.floats(0.01, 100.0), min_size=2, max_size=6))
def test_balanced_classes_weigh_the_same_and_as_much_in_all(totals: list[float]) -> None:
    weights = np.array(totals)
    balanced = weights * class_factors("balanced", np.arange(weights.size), weights)
    np.testing.assert_allclose(balanced, weights.sum() / weights.size)


def test_a_key_may_be_missing_from_the_data() -> None:
    assert class_factors({0: 2.0, 1: 3.0, 5: 4.0}, np.array([0, 1]), np.ones(2)).tolist() == [2, 3]
