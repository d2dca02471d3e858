"""Positive definite systems, by LAPACK, by threads and by the kernel, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from certsvm.parallel import Team
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Newton
from certsvm.solvers.second_order import systems
from certsvm.solvers.second_order.systems import require_small_systems, solve


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("n", [0, 3, 32, 33, 100, 211])
def test_the_solution(n: int, n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "_LEAST_SHARED", 60)
    monkeypatch.setattr(systems, "_BLOCK", 32)
    rng = np.random.default_rng(n)
    B, b = rng.standard_normal((n, n + 2)), rng.standard_normal(n)
    A = B @ B.T + np.eye(n)
    lower = np.tril(A) + np.triu(np.full((n, n), 7.0), 1)
    with Team(n_jobs) as team:
        x = solve(lower, b, team)
    assert x is not None
    np.testing.assert_allclose(A @ x, b, atol=1e-8)


@pytest.mark.parametrize("n", [0, 3, 32, 33, 100])
def test_several_right_hand_sides(n: int) -> None:
    rng = np.random.default_rng(n)
    B, b = rng.standard_normal((n, n + 2)), rng.standard_normal((n, 2))
    A = B @ B.T + np.eye(n)
    x = solve(np.tril(A), b)
    assert x is not None
    assert x.shape == (n, 2)
    np.testing.assert_allclose(A @ x, b, atol=1e-8)
    if n:
        assert solve(-np.eye(n), b) is None


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n", [5, 80])
def test_no_solution(n: int, n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "_LEAST_SHARED", 60)
    monkeypatch.setattr(systems, "_BLOCK", 32)
    A = np.eye(n)
    A[-1, -1] = -1.0
    with Team(n_jobs) as team:
        assert solve(A, np.ones(n), team) is None


def test_the_bits_do_not_depend_on_how_many_threads_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "_LEAST_SHARED", 60)
    monkeypatch.setattr(systems, "_BLOCK", 16)
    B = np.random.default_rng(0).standard_normal((90, 100))
    A = B @ B.T
    with Team(2) as two, Team(4) as four:
        x, other = (solve(np.tril(A), np.ones(90), team) for team in (two, four))
    assert x is not None
    np.testing.assert_array_equal(x, other)


def test_too_large_systems() -> None:
    problem = Problem(Rows(np.eye(3), intercept_scaling=1.0), [1, -1, 1])
    require_small_systems(problem, 4, 4, Newton())
    with pytest.raises(ValueError, match=r"Newton: X has 3 rows and 4 columns .* max_size = 3"):
        require_small_systems(problem, 4, 3, Newton())
