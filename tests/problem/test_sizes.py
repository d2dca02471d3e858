"""Sizes of a problem, from its rows or from surveys of its classes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.sizes import ClassSurvey, Sizes, one_against_rest, sizes_of_classes

weights = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7])
rows = st.lists(st.tuples(st.integers(0, 2), weights), min_size=1, max_size=20)


def sizes(**changes: float) -> Sizes:
    values = {"n_rows": 4, "n_columns": 2, "intercept_scaling": 0.0, "m": 3, "weight_sum": 3.0,
              "smallest_weight": 1.0, "largest_weight": 1.0, "R": 1.0}  # fmt: skip
    return Sizes(**(values | changes))  # type: ignore[arg-type]


def test_the_intercept_adds_a_dimension() -> None:
    assert (sizes().dimension, sizes(intercept_scaling=0.3).dimension) == (2, 3)


def test_some_row_needs_a_positive_weight() -> None:
    with pytest.raises(ValueError, match="nothing to learn from"):
        sizes(m=0)


@pytest.mark.parametrize(
    ("C", "changes"),
    [
        (1e145, {}),
        (1e-145, {}),
        (1.0, {"largest_weight": 1e145}),
        (1.0, {"smallest_weight": 1e-145}),
        (1.0, {"R": 1e145}),
        (1e80, {"largest_weight": 1e80}),
        (1e-80, {"smallest_weight": 1e-80}),
    ],
)
def test_numbers_out_of_range_are_refused(C: float, changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="Rescale"):
        sizes(**changes).require_representable(C)


@pytest.mark.parametrize("C", [1e-100, 1.0, 1e100])
def test_numbers_in_range_are_accepted(C: float) -> None:
    sizes().require_representable(C)


@given(rows, st.lists(st.integers(0, 20), max_size=3), st.lists(weights, min_size=3, max_size=3))
def test_surveys_of_blocks_give_the_sizes_of_all_rows(
    rows: list[tuple[int, float]], cuts: list[int], factors: list[float]
) -> None:
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    surveys = [ClassSurvey() for _ in range(3)]
    for first, last in itertools.pairwise(edges):
        for i, survey in enumerate(surveys):
            block = np.array([s for label, s in rows[first:last] if label == i])
            survey.add(block.size, block)
    row_weights = np.array([s * factors[label] for label, s in rows])
    positive = row_weights[row_weights > 0]
    arguments = (surveys, np.array(factors), 5, 0.0, 2.0)
    if not positive.size:
        with pytest.raises(ValueError, match="nothing to learn from"):
            sizes_of_classes(*arguments)
        return
    result = sizes_of_classes(*arguments)
    assert (result.n_rows, result.m) == (len(rows), positive.size)
    assert result.weight_sum == pytest.approx(positive.sum())
    assert result.smallest_weight == positive.min()
    assert result.largest_weight == positive.max()


def test_rows_without_weights_weigh_one() -> None:
    survey = ClassSurvey()
    survey.add(0, None)
    assert (survey.n_active, survey.smallest, survey.largest) == (0, math.inf, 0.0)
    survey.add(3, None)
    assert (survey.n_rows, survey.n_active, survey.weight_sum) == (3, 3, 3.0)
    assert (survey.smallest, survey.largest) == (1.0, 1.0)


def test_one_class_against_the_rest() -> None:
    factors = np.array([1.0, 2.0, 3.0])
    assert one_against_rest(factors, 1).tolist() == [-1.0, 2.0, -3.0]
    assert factors.tolist() == [1.0, 2.0, 3.0]
