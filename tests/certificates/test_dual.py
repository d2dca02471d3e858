"""L and the points it is computed from, against exact rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import (
    AlphaSums,
    DualPoint,
    counts_point,
    dual_bound,
    dual_point,
    mixed_point,
    moved_point,
    moved_sum_point,
    point_of,
    shares_within,
    total,
)
from certsvm.certificates.rounding import Bound, length, moved_rounding
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from tests.problems import (
    Array,
    Case,
    cases,
    exact,
    exact_dot,
    exact_dual,
    exact_sum,
    squared_distance,
)

UNIT = 2.0**-53
seeds = st.integers(0, 2**32 - 1)


@given(cases(), st.integers(0, 2**32 - 1))
def test_the_best_multiple_of_a_dual_point(case: Case, seed: int) -> None:
    problem = case.problem()
    share = np.random.default_rng(seed).random(problem.rows.n_rows)
    alpha = case.C * case.row_weights() * share
    point = DualPoint(float(alpha.sum()), case.patterns().T @ alpha, "a test", w_rounding=1e-9)
    bound, scale = dual_bound(point)
    assert 0.0 <= scale <= 1.0
    assert bound.value >= 0.0
    assert exact(bound.low) <= exact_dual(case, [exact(scale) * exact(a) for a in alpha])
    for other in np.linspace(0, 1, 11):
        multiple = DualPoint(other * point.alpha_sum, other * point.w, "a test")
        assert dual_bound(multiple, scaled=False)[0].value <= bound.value * (1 + 1e-9) + 1e-9


def test_rounding_in_w_lowers_the_bound() -> None:
    point = DualPoint(10.0, np.array([3.0, 0.0]), "a test", w_rounding=0.5)
    bound, _ = dual_bound(point, scaled=False)
    assert bound.value == 5.5
    assert bound.low <= 10.0 - 0.5 * 3.5**2


def test_rounding_in_the_sum_lowers_the_bound() -> None:
    point = DualPoint(10.0, np.array([3.0, 0.0]), "a test", alpha_sum_rounding=0.5)
    assert dual_bound(point, scaled=False)[0].low <= 5.0
    half = DualPoint(4.5, np.array([3.0, 0.0]), "a test", alpha_sum_rounding=0.5)
    bound, scale = dual_bound(half)
    assert scale == 0.5
    assert bound.low <= 0.5 * 4.0 - 0.5 * 0.25 * 9.0


def test_the_arithmetic_of_the_bound_itself_rounds() -> None:
    for A, x in np.random.default_rng(0).uniform(1.0, 2.0, (20_000, 2)):
        bound, scale = dual_bound(DualPoint(A, np.array([x]), "a test"))
        value = exact(scale) * exact(A) - exact(scale) ** 2 * exact(x) ** 2 / 2
        assert abs(exact(bound.value) - value) <= exact(bound.rounding)


def test_a_sum_over_many_rows_is_within_its_allowance() -> None:
    rng = np.random.default_rng(0)
    case = Case(rng.standard_normal((3000, 2)), rng.choice([-1.0, 1.0], 3000), None, 1.0, 0.0,
                "csr-float64-int32")  # fmt: skip
    alpha = rng.random(3000)
    point = dual_point(case.problem(), alpha, "a test")
    errors = [
        abs(exact(value) - exact_dot(alpha, column))
        for value, column in zip(point.w, case.patterns().T, strict=True)
    ]
    assert 0 < max(errors) <= Fraction(point.w_rounding)
    assert point.w_rounding < 1e-9


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
    for value, column in zip(point.w, case.patterns().T, strict=True):
        assert abs(exact(value) - exact_dot(alpha, column)) <= exact(point.w_rounding)
    bound, scale = dual_bound(point)
    assert exact(bound.low) <= exact_dual(case, [exact(scale) * exact(a) for a in alpha])


def test_moving_pays_for_what_was_there_and_for_itself() -> None:
    problem = Problem(Rows(np.array([[3.0, 4.0], [0.0, 2.0]])), [1, 1])
    point = dual_point(problem, np.array([0.5, 0.25]), "a test")
    change = np.array([-0.25, 0.5])
    moved = moved_point(problem, point, change, np.array([0.25, 0.75]))
    # Lengths 5 and 2, and w = (0.75, 2.5).
    added = UNIT * (4 * (0.25 * 5 + 0.5 * 2) + np.hypot(0.75, 2.5))
    assert point.w_rounding + added <= moved.w_rounding <= 1e-14


def norm_above(vector: list[Fraction]) -> float:
    """Its length, rounded up."""
    return math.sqrt(float(sum((v * v for v in vector), Fraction(0)))) * (1 + 1e-12)


@given(seeds, st.integers(1, 300))
def test_sums_in_pairs(seed: int, n: int) -> None:
    alpha = np.random.default_rng(seed).random(n) ** 8
    bound = total(alpha)
    assert abs(exact(bound.value) - exact_sum(alpha)) <= exact(bound.rounding)


def test_sums_in_pairs_that_lose_a_unit_each_time() -> None:
    alpha = np.append(1.0, np.full(6, UNIT))
    bound = total(alpha)
    assert abs(exact(bound.value) - exact_sum(alpha)) <= exact(bound.rounding) < 1e-13


def test_a_sum_of_rows_that_loses_a_unit_each_time() -> None:
    """Each chunk's sum is some rows long, and so is the sum of chunks."""
    n = 2500
    case = Case(np.ones((n, 1)), np.ones(n), None, 1.0, 0.0, "dense-float64-int32")
    alpha = np.full(n, 0.99 * UNIT)
    alpha[0] = 1.0
    point = dual_point(case.problem(), alpha, "a test")
    error = abs(exact(point.w[0]) - exact_sum(alpha))
    assert 20 * UNIT < error <= exact(point.w_rounding)


@given(cases(), seeds)
def test_a_point_whose_w_was_kept(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    alpha = case.C * case.row_weights() * rng.random(len(case.labels))
    w = case.patterns().T @ alpha + 1e-3 * rng.standard_normal(case.patterns().shape[1])
    expected = [exact_dot(alpha, column) for column in case.patterns().T]
    off = norm_above([exact(a) - b for a, b in zip(w, expected, strict=True)])
    point = point_of(case.problem(), alpha, w, off, "a test", keep_alpha=True)
    assert squared_distance(point.w, expected) <= exact(point.w_rounding) ** 2
    bound, scale = dual_bound(point)
    assert exact(bound.low) <= exact_dual(case, [exact(scale) * exact(a) for a in alpha])
    assert abs(exact(point.alpha_sum) - exact_sum(alpha)) <= exact(point.alpha_sum_rounding)
    assert point.alpha is not None
    kept = point.alpha()
    np.testing.assert_array_equal(kept, alpha)
    assert kept is not alpha
    assert point_of(case.problem(), alpha, w, off, "a test", keep_alpha=False).alpha is None


def test_a_known_point_whose_sum_was_moved() -> None:
    point = DualPoint(1.0, np.array([1.0, 0.0]), "a test", w_rounding=0.25)
    w = np.array([3.0, 4.0])
    moved = moved_sum_point(point, w, AlphaSums(Bound(2.0, 0.125)), 7, 6.0)
    assert (moved.alpha_sum, moved.alpha_sum_rounding, moved.source) == (2.0, 0.125, "a test")
    assert moved.w_rounding == 0.25 + moved_rounding(7, 6.0, w)
    assert moved.alpha is None


@given(seeds, st.integers(1, 1000), st.floats(0.01, 100.0), st.sampled_from([0.0, 1e-6]))
def test_counts_over_a_number(seed: int, T: int, C: float, off_by: float) -> None:
    """With a as good as a float64 can be, what is left is the rounding of the factor."""
    rng = np.random.default_rng(seed)
    counts, weights = rng.integers(0, T + 1, 5), rng.random(5)
    rows = rng.standard_normal((5, 3))
    mass = [int(n) * exact(s) for n, s in zip(counts, weights, strict=True)]
    exact_a = [
        sum((m * exact(y) for m, y in zip(mass, column, strict=True)), Fraction(0))
        for column in rows.T
    ]
    a = np.array([float(v) for v in exact_a]) + off_by
    off = norm_above([exact(v) - e for v, e in zip(a, exact_a, strict=True)])
    counted = weights * counts
    count_sum = Bound(float(sum(mass)), UNIT * float(sum(mass)))
    alphas = [Fraction(C) / T * m for m in mass]
    w = [Fraction(C) / T * v for v in exact_a]
    for size in (length(a), float(counted @ np.linalg.norm(rows, axis=1))):
        point = counts_point(C / T, count_sum, a, off, size, "a test", lambda: counted)
        assert abs(exact(point.alpha_sum) - sum(alphas)) <= exact(point.alpha_sum_rounding)
        assert squared_distance(point.w, w) <= exact(point.w_rounding) ** 2
        assert point.alpha is not None


def test_the_factor_of_counts_is_rounded_twice() -> None:
    """Its quotient and its product: neither may be left out."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for C, T in rng.uniform(1.0, 2.0, (2000, 2)):
        point = counts_point(C / T, Bound(1.7, 0.0), np.array([1.7]), 0.0, 1.7, "a test")
        expected = exact(C) / exact(T) * exact(1.7)
        error = abs(exact(point.w[0]) - expected)
        assert error <= exact(point.w_rounding)
        assert abs(exact(point.alpha_sum) - expected) <= exact(point.alpha_sum_rounding)
        worst = max(worst, float(error / expected))
    assert worst > 1.1 * UNIT


def mixtures(seed: int, n: int) -> tuple[Array, Array]:
    """Shares, and three columns of vectors."""
    rng = np.random.default_rng(seed)
    return rng.random(n), rng.standard_normal((n, 3))


@given(seeds, st.integers(1, 40), st.sampled_from([0.0, 1e-12, 1e-3]))
def test_a_mixture_has_the_errors_of_its_parts(seed: int, n: int, off: float) -> None:
    shares, vectors = mixtures(seed, n)
    rng = np.random.default_rng(seed)
    # All off in about the same direction: errors then add up, and do not cancel.
    direction = np.array([1.0, 1e-3, 0.0])
    true = [
        [exact(v) + exact(off * d) for v, d in zip(vector, direction, strict=True)]
        for vector in vectors
    ]
    sums = rng.random((n, 7))
    alpha_sums = np.array([total(row).value for row in sums])
    lengths = np.linalg.norm(vectors, axis=1)
    roundings = np.full(n, off * length(direction))
    point = mixed_point(shares, alpha_sums, vectors, lengths, roundings, "a test")
    w = [
        sum((exact(share) * vector[j] for share, vector in zip(shares, true, strict=True)),
            Fraction(0)) for j in range(3)
    ]  # fmt: skip
    assert squared_distance(point.w, w) <= exact(point.w_rounding) ** 2
    mass = sum(
        (exact(share) * exact_sum(row) for share, row in zip(shares, sums, strict=True)),
        Fraction(0),
    )
    assert abs(exact(point.alpha_sum) - mass) <= exact(point.alpha_sum_rounding)
    assert point.w_rounding <= 1.03 * float(shares @ roundings) + 1e-12


@given(seeds, st.integers(1, 30), st.floats(0.01, 100.0), st.sampled_from([0.5, 1.0, 1.0 + 1e-15]))
def test_shares_are_within_their_sum_exactly(seed: int, n: int, most: float, size: float) -> None:
    shares, _ = mixtures(seed, n)
    shares *= size * most / shares.sum()
    within = shares_within(shares, most)
    assert exact_sum(within) <= exact(most)
    np.testing.assert_allclose(within, shares, rtol=1e-14)
    if exact_sum(shares) < exact(most) * (1 - exact(1e-12)):
        np.testing.assert_array_equal(within, shares)
