"""Orders of visits: always a permutation, in blocks where that does no harm."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows
from certsvm.solvers.order import Order, neighbours_are_alike
from tests.problems import Case, cases


@given(cases(), st.integers(0, 400), st.booleans(), st.integers(0, 2**32 - 1))
def test_an_order_is_a_permutation(case: Case, size: int, shuffled: bool, seed: int) -> None:
    rows = 3 * np.arange(size)
    order = Order(case.problem(), np.random.default_rng(seed), shuffled=shuffled).permuted(rows)
    np.testing.assert_array_equal(np.sort(order), rows)


def large(sorted_by_class: bool) -> Problem:
    rng = np.random.default_rng(0)
    labels = np.repeat([1.0, -1.0], 200_000)
    X = 0.1 * rng.standard_normal((400_000, 8))
    X[labels > 0, 0] += 1.0
    X[labels < 0, 1] += 1.0
    order = np.arange(400_000) if sorted_by_class else rng.permutation(400_000)
    return Problem(Rows(sp.csr_matrix(X[order])), labels[order])


@pytest.mark.parametrize("sorted_by_class", [True, False])
def test_a_sample_tells_whether_neighbours_are_alike(sorted_by_class: bool) -> None:
    problem = large(sorted_by_class)
    for seed in range(5):
        assert neighbours_are_alike(problem, np.random.default_rng(seed)) == sorted_by_class
    order = Order(problem, np.random.default_rng(0))
    assert order.in_order != sorted_by_class
    together = np.mean(np.diff(order.permuted(problem.active)) == 1)
    assert together < 0.01 if sorted_by_class else together > 0.9
