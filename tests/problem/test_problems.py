"""Problems in memory and on streams: weights, sizes, what is refused, and the same passes."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.primal import primal_bound
from certsvm.files.streams import BlockStream
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem, StreamedProblem
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


row = st.tuples(
    st.lists(st.integers(-2, 2), min_size=2, max_size=2),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)


@given(
    st.lists(row, min_size=3, max_size=12),
    st.lists(st.integers(1, 11), max_size=3),
    st.integers(0, 2),
    st.booleans(),
)
def test_it_agrees_with_the_problem_in_memory(
    data: list[Any], cuts: list[int], positive: int, weighted: bool
) -> None:
    X = np.array([x for x, _, _ in data], dtype=np.float64)
    y = np.array([label for _, label, _ in data])
    # Every class and a positive weight must occur.
    y[:3] = 0, 1, 2
    s = np.array([weight for _, _, weight in data]) if weighted else np.ones(len(y))
    s[0] = 1.0
    factors = np.array([1.0, 0.5, 2.0])
    edges = sorted({0, *(cut for cut in cuts if cut < len(y)), len(y)})
    blocks = [
        (X[a:b], y[a:b], s[a:b]) if weighted else (X[a:b], y[a:b])
        for a, b in itertools.pairwise(edges)
    ]
    stream = BlockStream(lambda: blocks, intercept_scaling=0.5, read_ahead=False)
    streamed = StreamedProblem(stream, positive, Objective(C=2.0), class_factors=factors)
    labels, weights = np.where(y == positive, 1, -1), s * factors[y]
    whole = Problem(Rows(X, intercept_scaling=0.5), labels, C=2.0, weights=weights)
    for name in ("n_rows", "m", "dimension", "C", "lambda_", "R", "largest_weight"):
        assert getattr(streamed, name) == getattr(whole, name), name
    assert streamed.weight_sum == pytest.approx(whole.weight_sum)
    np.testing.assert_array_equal(streamed.weights, whole.weights)
    parts = list(streamed.parts())
    assert [part.span for part in parts] == [slice(a, b) for a, b in itertools.pairwise(edges)]
    np.testing.assert_array_equal(
        np.concatenate([part.signed_weights for part in parts]), whole.signed_weights
    )
    w = np.array([0.5, -1.0, 0.25])
    ours, theirs = primal_bound(streamed, w), primal_bound(whole, w)
    assert ours.low <= theirs.high
    assert theirs.low <= ours.high
