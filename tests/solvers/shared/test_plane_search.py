"""The search in the plane of two weight vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.primal import Products
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers.shared.plane_search import best_combination
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_a_combination_is_not_worse_than_its_parts(case: Case, seed: int) -> None:
    problem = case.problem()
    rng = np.random.default_rng(seed)
    u, v = (Products(problem, rng.standard_normal(problem.rows.dimension)) for _ in range(2))
    a, b = best_combination(problem, u, v)
    parts = min(p.primal_bound().value for p in (u, v))
    mixed = u.copy()
    mixed.mix(a, b, v)
    assert mixed.primal_bound().value <= parts * (1 + 1e-9) + 1e-12


def test_a_combination_finds_the_best_multiple() -> None:
    """One row, u = v = the optimum times two: half of it is best."""
    problem = Problem(Rows(np.array([[1.0, 0.0], [0.0, 0.0]])), [1, 1], C=10.0)
    u = Products(problem, np.array([2.0, 0.0]))
    a, b = best_combination(problem, u, u.copy())
    assert (a + b) * 2.0 == pytest.approx(1.0, abs=0.02)


def test_zero_vectors_can_be_combined() -> None:
    problem = noisy(50)
    zero = Products(problem, np.zeros(problem.rows.dimension))
    a, b = best_combination(problem, zero, zero.copy())
    assert np.isfinite([a, b]).all()
