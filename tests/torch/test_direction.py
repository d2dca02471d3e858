"""Newton's direction on tensors: how accurate it is, and when more care is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import certsvm.torch.direction as direction_module
import certsvm.torch.rows as rows_module
from certsvm.solvers.second_order.smoothing import STEPS
from certsvm.torch import TensorProblem, TensorRows
from certsvm.torch.direction import Directions
from tests.torch.problems import device, host


def problem(weighted: bool, intercept_scaling: float = 0.5, scale: float = 1.0) -> TensorProblem:
    """Whether its intercept is free, the ridge says."""
    rng = np.random.default_rng(0)
    X = scale * (rng.standard_normal((200, 5)) + 3.0)
    weights = device(rng.uniform(0.5, 2.0, 200)) if weighted else None
    rows = TensorRows(device(X), intercept_scaling=intercept_scaling)
    return TensorProblem(rows, device(np.where(X[:, 0] > 3.0, 1.0, -1.0)), row_weights=weights)


def expected(of: TensorProblem, free: Any, slope: float, gradient: Any, ridge: float) -> Any:
    X = host(of.rows.gathered(device(np.arange(200))))
    if of.intercept_scaling:
        X = np.column_stack([X, np.full(200, of.intercept_scaling)])
    H = np.eye(of.dimension) + slope * (X[free].T * of.weights[free]) @ X[free]
    H[-1, -1] += ridge - 1.0
    return np.linalg.solve(H, -gradient)


def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Gram matrix as a GPU makes it."""

    def gram(rows: torch.Tensor) -> torch.Tensor:
        half = rows.to(torch.bfloat16).float()
        return (half.T @ half).double()

    monkeypatch.setattr(rows_module, "_gram", gram)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("intercept_scaling", "ridge"), [(0.0, 1.0), (0.5, 1.0), (0.5, 1e-3)])
@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("at_once", [64, 2**16])
def test_it_solves_the_system(
    monkeypatch: pytest.MonkeyPatch,
    weighted: bool,
    intercept_scaling: float,
    ridge: float,
    exactly: bool,
    at_once: int,
) -> None:
    monkeypatch.setattr(direction_module, "GATHERED", at_once)
    coarse(monkeypatch)
    of = problem(weighted, intercept_scaling)
    free = np.arange(0, 200, 2)
    gradient = np.random.default_rng(1).standard_normal(of.dimension)
    directions = Directions(of)
    directions.exact = exactly
    ours = host(directions.find(device(free), 0.3, device(gradient), ridge))
    exact = expected(of, free, 0.3, gradient, ridge)
    error = np.linalg.norm(ours - exact) / np.linalg.norm(exact)
    assert error < (1e-10 if exactly else 0.3)
    assert (error > 1e-4) == (not exactly)


def test_a_failure_is_no_number_and_two_leave_the_diagonal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = problem(False)
    minus = device(-5.0 * np.eye(6))
    monkeypatch.setattr(TensorRows, "gram", lambda *given, **options: minus.clone())
    free, gradient = device(np.arange(10)), device(np.ones(6))
    directions = Directions(of)
    for _ in range(2):
        assert bool(directions.find(free, 1.0, gradient).isnan().all())
        directions.failed()
        assert directions.exact
    np.testing.assert_allclose(host(directions.find(free, 1.0, gradient)), np.full(6, 0.25))
    directions.judge(STEPS - 1.0, 0)
    assert bool(directions.find(free, 1.0, gradient).isnan().all())
