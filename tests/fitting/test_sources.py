"""Sources: the same problems from memory and from a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.streams import BlockStream
from certsvm.fitting.sources import MemorySource, StreamSource, class_factors, classes_of
from certsvm.problem.objective import Objective
from certsvm.solvers import DCD
from tests.problems import cases


def both(X: Any, y: Any, weights: Any, **how: Any) -> tuple[MemorySource, StreamSource]:
    rho = how.pop("intercept_scaling", 0.0)
    stream = BlockStream(lambda: [(X, y, weights)], intercept_scaling=rho)
    return MemorySource(X, y, weights, intercept_scaling=rho, **how), StreamSource(stream, **how)


@given(case=cases(), balanced=st.booleans())
def test_a_stream_makes_the_same_problems(case: Any, balanced: bool) -> None:
    y, weights = case.labels, case.weights
    totals = np.bincount((y > 0).astype(int), weights=weights, minlength=2)
    if not (totals > 0).all():
        return
    memory, stream = both(
        case.X, y, weights, class_weight="balanced" if balanced else None,
        intercept_scaling=case.intercept_scaling,
    )  # fmt: skip
    assert memory.labels == stream.labels
    assert memory.fingerprint == stream.fingerprint
    np.testing.assert_allclose(memory.factors, stream.factors)
    assert memory.weight_sum(0) == pytest.approx(stream.weight_sum(0))
    one, other = memory.problem(0, Objective(0.5)), stream.problem(0, Objective(0.5))
    (part,) = other.parts()
    np.testing.assert_allclose(one.signed_weights, part.signed_weights)
    for name in ("C", "m", "R", "n_rows", "dimension", "intercept_scaling"):
        assert getattr(one, name) == pytest.approx(getattr(other, name)), name


def test_class_weights_may_be_set_afterwards() -> None:
    source = MemorySource(np.eye(3), np.array([0, 1, 1]))
    source.set_class_weight({0: 3.0, 1: 1.0})
    assert source.problem(0, Objective()).weights.tolist() == [3.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="only one class, '1' among the rows of positive weight"):
        source.set_class_weight({0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match="no class at all"):
        source.set_class_weight({0: 0.0, 1: 0.0})


def test_several_classes_share_threads_in_memory_only() -> None:
    memory, stream = both(np.eye(3), np.array([0, 1, 2]), None)
    assert memory.at_once(DCD(), 2) == 2
    assert memory.at_once(DCD(), 8) == 3
    assert stream.at_once(DCD(), 8) == 1


def test_a_start_of_other_rows_is_a_weight_vector_only() -> None:
    source = MemorySource(np.eye(3), np.array([0, 1, 1]))
    w = np.ones(3)
    assert source.start(w, 2, np.ones(3)).alpha is not None
    assert source.start(w, 2, np.ones(4)).alpha is None
    assert source.start(w, 2, "a tensor").alpha is None


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
