"""A free intercept in the second-order method."""

import numpy as np
import pytest

from certsvm.certificates.dual import dual_bound, dual_sums, row_sums
from certsvm.kernels.losses import LOSSES, Loss
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows, Vector
from certsvm.solvers.second_order.intercept import (
    cost_of_balance,
    gradient_at,
    intercept_ridge,
)

both_losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def some_problem(*, penalize_intercept: bool = False, loss: Loss = LOSSES["hinge"]) -> Problem:
    rng = np.random.default_rng(0)
    rows = Rows(rng.standard_normal((40, 3)), intercept_scaling=2.0)
    labels = np.where(np.arange(40) % 3, 1.0, -1.0)
    return Problem(rows, labels, C=0.7, loss=loss, penalize_intercept=penalize_intercept)


def smooth_value(problem: Problem, w: Vector, *, squared: bool) -> tuple[float, Vector]:
    """J of the squared hinge, or a smoothed hinge, and alpha at w."""
    X = np.column_stack([problem.rows.matrix, np.full(problem.n_rows, 2.0)])
    below = np.maximum(0.0, 1.0 - problem.labels * (X @ w))
    regularised = problem.regularised(w)
    C = problem.C if squared else 0.5 * problem.C
    value = 0.5 * regularised @ regularised + C * (below**2).sum()
    return float(value), 2.0 * C * below


@pytest.mark.parametrize("penalize_intercept", [True, False])
@pytest.mark.parametrize("squared", [True, False])
def test_the_gradient_is_that_of_the_objective(penalize_intercept: bool, squared: bool) -> None:
    problem = some_problem(penalize_intercept=penalize_intercept)
    w = np.array([0.3, -0.2, 0.1, 0.4])
    alpha = smooth_value(problem, w, squared=squared)[1]
    gradient = gradient_at(problem, w, row_sums(problem, alpha).w)
    for j in range(4):
        step = 1e-6 * np.eye(4)[j]
        ends = [smooth_value(problem, w + sign * step, squared=squared)[0] for sign in (1, -1)]
        assert gradient[j] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)


@both_losses
def test_balancing_costs_about_as_much_as_is_said(loss: Loss) -> None:
    """Near the optimum, the Lagrange function falls to L by no more than a few times the cost."""
    problem = some_problem(loss=loss)
    w = np.array([0.1, 0.0, 0.0, 0.3])
    alpha = np.full(problem.n_rows, 0.1)
    alpha[problem.labels > 0] *= 1.01 * (problem.labels < 0).sum() / (problem.labels > 0).sum()
    unbalanced = row_sums(problem, alpha).point("a test")
    balanced = dual_sums(problem, alpha).point("a test")
    cost = cost_of_balance(problem, w, float(unbalanced.w[-1]))
    lost = unbalanced.alpha_sum - balanced.alpha_sum
    assert 0.0 < lost <= cost
    assert dual_bound(balanced)[0].value > 0.0


def test_the_ridge_limits_a_step_and_vanishes_with_the_gradient() -> None:
    problem = some_problem()
    w = np.array([0.0, 0.0, 0.0, 3.0])
    ridges = [intercept_ridge(problem, w, np.array([0.0, 0.0, 0.0, g])) for g in (8.0, -8.0, 8e-9)]
    np.testing.assert_allclose(ridges, [0.2, 0.2, 0.2e-9])
    # Alone, the step is the gradient over the ridge: ten times the size of the intercept.
    assert 8.0 / ridges[0] == pytest.approx(10.0 * (1.0 + 3.0))
    # Without a gradient there is no step, whatever the ridge.
    assert intercept_ridge(problem, w, np.zeros(4)) == 1.0
