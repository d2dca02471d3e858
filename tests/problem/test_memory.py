from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from tests.problems import Case, cases

ROWS = Rows(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]))


def test_rows_without_weight_count_as_absent() -> None:
    problem = Problem(ROWS, [1, -1, 1], C=0.5, weights=[0.0, 2.0, 3.0])
    assert problem.m == 2
    assert problem.lambda_ == 1.0
    assert problem.R == 2.0
    assert problem.active.tolist() == [1, 2]
    assert problem.signed_weights.tolist() == [0, -2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"C": -1.0}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"C": float("inf")}, "C must be"),
        ({"C": 1e308}, "leave the range"),
        ({"C": 5e-324}, "leave the range"),
        ({"C": 1e155}, "Rescale"),
        ({"C": 1e-149, "weights": [1e-165, 1e-165, 1e-166]}, "Rescale"),
        ({"weights": [1e300, 1, 1]}, "Rescale"),
        ({"labels": [1, 0, 1]}, r"\+1 or -1, and there is 0: .* np.where\(y == positive, 1, -1\)"),
        ({"labels": [1, -1]}, r"labels must have shape \(3,\)"),
        ({"weights": [1, -1, 1]}, "not negative"),
        ({"weights": [1, float("nan"), 1]}, "finite"),
        ({"weights": [1, 1]}, r"weights must have shape \(3,\)"),
        ({"weights": [0, 0, 0]}, "no row has a positive weight"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(ROWS, **({"labels": [1, -1, 1]} | arguments))


@given(cases(weighted=True), st.integers(0, 9))
def test_a_sample_keeps_the_weight_of_the_loss(case: Case, seed: int) -> None:
    problem = case.problem()
    which = np.random.default_rng(seed).permutation(problem.active)[: 1 + seed % problem.m]
    sample = problem.sample(which)
    assert sample.m == which.size
    assert sample.C * sample.weight_sum == pytest.approx(problem.C * problem.weight_sum)
    np.testing.assert_array_equal(sample.signed_weights, problem.signed_weights[which])
