"""J against exact rational arithmetic: its allowance for rounding is honest."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows
from certsvm.certificates.dual import dual_point
from certsvm.certificates.primal import Products, primal_bound
from certsvm.certificates.rounding import length, per_size
from certsvm.kernels.losses import loss_named
from certsvm.resources import Team
from tests.problems import Case, cases, exact, exact_dot, exact_objective

LOSSES = ("hinge", "squared_hinge")
all_cases = cases(losses=LOSSES, free_intercepts=True)


@given(all_cases, st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_primal_is_within_its_allowance(case: Case, seed: int, size: float) -> None:
    problem = case.problem()
    w = size * np.random.default_rng(seed).standard_normal(problem.rows.dimension)
    bound = primal_bound(problem, w)
    error = abs(Fraction(bound.value) - exact_objective(case, w))
    assert error <= Fraction(bound.rounding)
    # Under the square, an error in a product is multiplied by the margin's violation.
    sizes = size if case.loss == "hinge" else size * size
    assert bound.rounding <= 1e-12 * (bound.value + size + sizes)


@given(all_cases, st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6), st.integers(0, 12))
def test_primal_from_mixed_products(case: Case, seed: int, size: float, mixtures: int) -> None:
    """Coefficients of both signs and several sizes: cancellation must be paid for."""
    problem = case.problem()
    rng = np.random.default_rng(seed)
    products = Products(problem, size * rng.standard_normal(problem.rows.dimension))
    for _ in range(mixtures):
        other = Products(problem, size * rng.standard_normal(problem.rows.dimension))
        a, b = rng.standard_normal(2) * rng.choice([1e-3, 1.0, 30.0], 2)
        products.mix(a, b, other)
    bound = products.primal_bound()
    error = exact(bound.value) - exact_objective(case, products.w)
    assert abs(error) <= exact(bound.rounding)
    for value, pattern, s in zip(products.values, case.patterns(), problem.weights, strict=True):
        if s > 0:
            expected = exact_dot(pattern, products.w)
            allowed = per_size(products.error) * (np.count_nonzero(pattern) + 3) * length(pattern)
            assert abs(exact(value) - expected) <= exact(allowed + 1e-300)
        else:
            assert value == 1.0


def test_a_square_just_short_of_the_margin_has_a_loss() -> None:
    """It is less than a unit roundoff of one, but C is large; so is the error in it."""
    problem = Problem(Rows(np.ones((1, 1))), [1], C=1e30, loss=loss_named("squared_hinge"))
    for short in (2.0**-40, 2.0**-52, 0.0):
        w = np.array([1.0 - short])
        bound = primal_bound(problem, w)
        expected = exact(w[0]) ** 2 / 2 + exact(1e30) * exact(short) ** 2
        assert abs(exact(bound.value) - expected) <= exact(bound.rounding)
    # A row exactly on the margin may have a loss of its rounding errors, squared.
    assert 0.0 < bound.rounding <= 1e4


@pytest.mark.parametrize("loss", LOSSES)
def test_the_arithmetic_of_a_loss_rounds(loss: str) -> None:
    """Products so small that they do not: what is left is the loss, its square, its weight, C."""
    worst, w = 0.0, np.array([1e-9])
    for s, C, x in np.random.default_rng(0).uniform(1.0, 2.0, (3000, 3)):
        case = Case(np.array([[x]]), np.array([-1.0]), np.array([s]), C, loss=loss)
        bound = primal_bound(case.problem(), w)
        error = abs(exact(bound.value) - exact_objective(case, w))
        assert error <= exact(bound.rounding)
        worst = max(worst, float(error) / bound.value)
    assert worst > 1.2 * 2.0**-53


@pytest.mark.parametrize("size", [1e150, 1e160, 1e200, 1e300])
def test_squares_that_overflow_are_no_value(size: float) -> None:
    problem = Problem(
        Rows(np.eye(2), intercept_scaling=1.0), [1, -1], loss=loss_named("squared_hinge"),
        penalize_intercept=False,
    )  # fmt: skip
    bound = primal_bound(problem, np.array([0.0, 0.0, -size]))
    expected = (1 + exact(size)) ** 2
    if np.isfinite(bound.high):
        assert abs(exact(bound.value) - expected) <= exact(bound.rounding)
    assert np.isfinite(bound.high) == (size < 1e154)


@pytest.mark.parametrize("n_jobs", [2, 3, 7])
def test_threads_do_not_change_a_bit(n_jobs: int) -> None:
    rng = np.random.default_rng(0)
    problem = Problem(Rows(rng.standard_normal((60_001, 40))), rng.choice([-1, 1], 60_001))
    w = rng.standard_normal(40)
    alpha = rng.random(60_001)
    alone = dual_point(problem, alpha, "a test")
    with Team(n_jobs) as team:
        assert primal_bound(problem, w, team) == primal_bound(problem, w)
        products = Products(problem, w, team)
        assert products.primal_bound(team) == Products(problem, w).primal_bound()
        # A sum of vectors is put together from as many parts as there are threads.
        shared = dual_point(problem, alpha, "a test", team)
        again = dual_point(problem, alpha, "a test", team)
    np.testing.assert_array_equal(shared.w, again.w)
    assert np.linalg.norm(shared.w - alone.w) <= shared.w_rounding + alone.w_rounding
