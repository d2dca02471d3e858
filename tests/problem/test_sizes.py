"""Sizes of a problem, from its rows or from surveys of its classes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.sizes import ClassSurvey, sizes_of_classes

weights = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7])
rows = st.lists(st.tuples(st.integers(0, 2), weights), min_size=1, max_size=20)


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
