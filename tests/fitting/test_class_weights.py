"""Weights of classes, from the totals of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.fitting.sources import class_factors, classes_of


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=20))
def test_labels_as_positions(labels: list[str]) -> None:
    classes, index = classes_of(np.array(labels))
    assert classes.tolist() == sorted(set(labels))
    assert classes[index].tolist() == labels


@given(st.lists(st.floats(0.01, 100.0), min_size=2, max_size=6))
def test_balanced_classes_weigh_the_same_and_as_much_in_all(totals: list[float]) -> None:
    weights = np.array(totals)
    balanced = weights * class_factors("balanced", np.arange(weights.size), weights)
    np.testing.assert_allclose(balanced, weights.sum() / weights.size)


def test_a_class_without_weight_is_left_alone() -> None:
    assert class_factors("balanced", np.arange(2), np.array([0.0, 4.0])).tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("balance", "class_weight must be"),
        ({"1": 2.0}, "mind the type"),
        ({0: -1.0}, "not negative"),
        ({0: np.inf}, "finite"),
    ],
)
def test_bad_weights(class_weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        class_factors(class_weight, np.array([0, 1]), np.ones(2))


def test_a_key_may_be_missing_from_the_data() -> None:
    assert class_factors({0: 2.0, 1: 3.0, 5: 4.0}, np.array([0, 1]), np.ones(2)).tolist() == [2, 3]
