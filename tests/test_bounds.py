"""J and L against exact rational arithmetic: the rounding allowances are honest."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.best import BestBounds
from certsvm.certificates.dual import DualPoint, dual_bound, dual_point, moved_point
from certsvm.certificates.primal import Products, primal_bound
from certsvm.certificates.rounding import Bound
from certsvm.parallel import Team
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from tests.problems import Case, cases, exact_dual, exact_objective


@given(cases(), st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_primal_is_within_its_allowance_of_the_exact_value(
    case: Case, seed: int, size: float
) -> None:
    problem = case.problem()
    w = size * np.random.default_rng(seed).standard_normal(problem.rows.dimension)
    bound = primal_bound(problem, w)
    error = abs(Fraction(bound.value) - exact_objective(case, w))
    assert error <= Fraction(bound.rounding)
    assert bound.rounding <= 1e-12 * (bound.value + size)


@given(cases(), st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6), st.integers(0, 12))
def test_primal_from_products_that_were_mixed_many_times(
    case: Case, seed: int, size: float, mixtures: int
) -> None:
    """Coefficients of both signs and several sizes: cancellation must be paid for."""
    problem = case.problem()
    rng = np.random.default_rng(seed)
    products = Products(problem, size * rng.standard_normal(problem.rows.dimension))
    for _ in range(mixtures):
        other = Products(problem, size * rng.standard_normal(problem.rows.dimension))
        a, b = rng.standard_normal(2) * rng.choice([1e-3, 1.0, 30.0], 2)
        products.mix(a, b, other)
    bound = products.primal_bound()
    exact = exact_objective(case, products.w)
    assert abs(Fraction(bound.value) - exact) <= Fraction(bound.rounding)
    for value, pattern, s in zip(products.values, case.patterns(), problem.weights, strict=True):
        expected = sum(
            (
                Fraction(float(x)) * Fraction(float(v))
                for x, v in zip(pattern, products.w, strict=True)
            ),
            Fraction(0),
        )
        if s > 0:
            allowed = products.error * 2.0**-53 * (np.count_nonzero(pattern) + 3)
            assert (
                abs(float(Fraction(float(value)) - expected))
                <= allowed * np.linalg.norm(pattern) + 1e-300
            )
        else:
            assert value == 1.0


@given(cases(), st.integers(0, 2**32 - 1))
def test_the_best_multiple_of_a_dual_point(case: Case, seed: int) -> None:
    problem = case.problem()
    share = np.random.default_rng(seed).random(problem.rows.n_rows)
    alpha = case.C * case.row_weights() * share
    point = DualPoint(float(alpha.sum()), case.patterns().T @ alpha, "a test", w_rounding=1e-9)
    bound, scale = dual_bound(point)
    assert 0.0 <= scale <= 1.0
    assert bound.value >= 0.0
    exact = exact_dual(case, [Fraction(float(scale)) * Fraction(float(a)) for a in alpha])
    assert Fraction(bound.low) <= exact
    for other in np.linspace(0, 1, 11):
        multiple = DualPoint(other * point.alpha_sum, other * point.w, "a test")
        assert dual_bound(multiple, scaled=False)[0].value <= bound.value * (1 + 1e-9) + 1e-9


def test_rounding_in_w_lowers_the_bound() -> None:
    point = DualPoint(10.0, np.array([3.0, 0.0]), "a test", w_rounding=0.5)
    bound, _ = dual_bound(point, scaled=False)
    assert bound.value == 5.5
    assert bound.low <= 10.0 - 0.5 * 3.5**2


def test_a_sum_over_many_rows_is_within_its_allowance() -> None:
    rng = np.random.default_rng(0)
    case = Case(rng.standard_normal((3000, 2)), rng.choice([-1.0, 1.0], 3000), None, 1.0, 0.0,
                "csr-float64-int32")  # fmt: skip
    alpha = rng.random(3000)
    point = dual_point(case.problem(), alpha, "a test")
    errors = []
    for j in range(2):
        exact = sum(
            (Fraction(float(a)) * Fraction(float(y)) for a, y in
             zip(alpha, case.patterns()[:, j], strict=True)), Fraction(0),
        )  # fmt: skip
        errors.append(abs(Fraction(float(point.w[j])) - exact))
    assert 0 < max(errors) <= Fraction(point.w_rounding)
    assert point.w_rounding < 1e-9


def test_a_row_just_short_of_its_margin_has_a_loss() -> None:
    problem = Problem(Rows(np.ones((1, 1))), [1], C=1e6)
    w = np.array([1.0 - 2.0**-40])
    bound = primal_bound(problem, w)
    exact = Fraction(float(w[0])) ** 2 / 2 + 10**6 * (1 - Fraction(float(w[0])))
    assert abs(Fraction(bound.value) - exact) <= Fraction(bound.rounding)
    beyond = primal_bound(problem, np.array([1.0 + 2.0**-40]))
    assert beyond.rounding < 1e-13


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


def test_the_ledger_keeps_the_best_of_each_kind() -> None:
    problem = Problem(Rows(np.eye(2)), [1, -1])
    ledger = BestBounds(problem, 0.1)
    first, second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    ledger.offer_primal(first, Bound(2.0, 0.0))
    ledger.offer_primal(second, Bound(3.0, 0.0))
    assert ledger.w is not None
    assert ledger.w.tolist() == first.tolist()
    ledger.offer_dual(DualPoint(1.5, np.zeros(2), "good"))
    ledger.offer_dual(DualPoint(1.0, np.zeros(2), "worse"))
    certificate = ledger.certificate()
    assert (certificate.primal, certificate.dual, certificate.bound) == (2.0, 1.5, "good")


def test_the_published_ledger_keeps_the_latest() -> None:
    problem = Problem(Rows(np.eye(2)), [1, -1])
    ledger = BestBounds(problem, 0.1, keep_best=False)
    ledger.offer_dual(DualPoint(1.5, np.zeros(2), "good"))
    ledger.offer_dual(DualPoint(1.0, np.array([2.0, 0.0]), "negative"))
    assert ledger.certificate().dual == -1.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_ledger_ignores_what_is_no_number(value: float) -> None:
    ledger = BestBounds(Problem(Rows(np.eye(2)), [1, -1]), 0.1)
    ledger.offer_dual(DualPoint(value, np.zeros(2), "bad"))
    assert ledger.certificate().dual == 0.0
    ledger.offer_primal(np.zeros(2), Bound(value, 0.0))
    assert not ledger.certificate().met


def test_mixing_pays_for_both_parts_and_for_itself() -> None:
    problem = Problem(Rows(np.eye(2)), [1, -1])
    one, other = Products(problem, np.array([3.0, 4.0])), Products(problem, np.array([0.0, 2.0]))
    expected = 2.0 * one.error + 0.5 * other.error + 2.0 * (2.0 * 5.0 + 0.5 * 2.0)
    one.mix(2.0, -0.5, other)
    assert expected <= one.error <= 1.02 * expected


@given(cases(), st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_a_point_that_was_moved_many_times(case: Case, seed: int, moves: int) -> None:
    problem = case.problem()
    rng = np.random.default_rng(seed)
    box = case.C * problem.weights
    alpha = box * rng.random(box.size)
    point = dual_point(problem, alpha, "a test")
    for _ in range(moves):
        moved = np.where(rng.random(box.size) < 0.5, alpha, box * rng.random(box.size))
        point = moved_point(problem, point, moved - alpha, moved)
        alpha = moved
    assert point.alpha_sum == pytest.approx(float(alpha.sum()), rel=1e-14)
    exact = [Fraction(float(a)) for a in alpha]
    for j, value in enumerate(point.w):
        column = [Fraction(float(x)) for x in case.patterns()[:, j]]
        total = sum((a * x for a, x in zip(exact, column, strict=True)), Fraction(0))
        assert abs(Fraction(float(value)) - total) <= Fraction(point.w_rounding)
    bound, _ = dual_bound(point)
    assert Fraction(bound.low) <= exact_dual(case, [Fraction(s) for s in _scaled(point, exact)])


def _scaled(point: DualPoint, alpha: list[Fraction]) -> list[Fraction]:
    scale = Fraction(dual_bound(point)[1])
    return [scale * a for a in alpha]


def test_moving_pays_for_what_was_there_and_for_itself() -> None:
    problem = Problem(Rows(np.array([[3.0, 4.0], [0.0, 2.0]])), [1, 1])
    point = dual_point(problem, np.array([0.5, 0.25]), "a test")
    change = np.array([-0.25, 0.5])
    moved = moved_point(problem, point, change, np.array([0.25, 0.75]))
    # Lengths 5 and 2, and w = (0.75, 2.5).
    unit = 2.0**-53
    own = unit * (4 * (0.25 * 5 + 0.5 * 2) + np.hypot(0.75, 2.5))
    assert point.w_rounding + own <= moved.w_rounding <= 1e-14
