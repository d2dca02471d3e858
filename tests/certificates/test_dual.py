"""L and the points it is computed from, against exact rational arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows
from certsvm.certificates import dual
from certsvm.certificates.rounding import Bound, length
from certsvm.kernels.losses import loss_named
from tests import problems
from tests.problems import Array, Case, cases, exact, exact_dual, exact_sum, squared_distance

UNIT = 2.0**-53


def sum_of(value: float, rounding: float = 0.0) -> dual.AlphaSums:
    return dual.AlphaSums(Bound(value, rounding))


seeds = st.integers(0, 2**32 - 1)
LOSSES = ("hinge", "squared_hinge")
either_loss = cases(losses=LOSSES)
free = cases(losses=LOSSES, free_intercepts=True).filter(lambda case: case.free_intercept)


@given(either_loss, st.integers(0, 2**32 - 1))
def test_the_best_multiple_of_a_dual_point(case: Case, seed: int) -> None:
    problem = case.problem()
    share = np.random.default_rng(seed).random(problem.rows.n_rows)
    alpha = case.C * case.row_weights() * share
    penalty = dual.dual_sum(problem, alpha).penalty
    most = problem.loss.largest_multiple
    sums, w = sum_of(alpha.sum())._replace(penalty=penalty), case.patterns().T @ alpha
    point = dual.DualPoint(sums, w, "a test", most=most, w_rounding=1e-9)
    bound, scale = dual.dual_bound(point)
    assert 0.0 <= scale <= most
    assert bound.value >= 0.0
    assert exact(bound.low) <= exact_dual(case, [exact(scale) * exact(a) for a in alpha])
    for other in np.linspace(0, min(most, 2.0 * scale), 11):
        other_penalty = Bound(other**2 * penalty.value, 0.0)
        sums = sum_of(other * point.alpha_sum)._replace(penalty=other_penalty)
        multiple = dual.DualPoint(sums, other * point.w, "a test")
        assert dual.dual_bound(multiple, scaled=False)[0].value <= bound.value * (1 + 1e-9) + 1e-9


def test_the_arithmetic_of_the_bound_itself_rounds() -> None:
    for A, x in np.random.default_rng(0).uniform(1.0, 2.0, (20_000, 2)):
        bound, scale = dual.dual_bound(dual.DualPoint(sum_of(A), np.array([x]), "a test"))
        value = exact(scale) * exact(A) - exact(scale) ** 2 * exact(x) ** 2 / 2
        assert abs(exact(bound.value) - value) <= exact(bound.rounding)


@given(seeds, st.integers(1, 300))
def test_sums_in_pairs(seed: int, n: int) -> None:
    alpha = np.random.default_rng(seed).random(n) ** 8
    bound = dual.total(alpha)
    assert abs(exact(bound.value) - exact_sum(alpha)) <= exact(bound.rounding)


def test_a_sum_of_rows_that_loses_a_unit_each_time() -> None:
    """Each chunk's sum is some rows long, and so is the sum of chunks."""
    n = 2500
    case = Case(np.ones((n, 1)), np.ones(n))
    alpha = np.full(n, 0.99 * UNIT)
    alpha[0] = 1.0
    point = dual.dual_point(case.problem(), alpha, "a test")
    error = abs(exact(point.w[0]) - exact_sum(alpha))
    assert 20 * UNIT < error <= exact(point.w_rounding)


@given(seeds, st.integers(1, 1000), st.floats(0.01, 100.0), st.sampled_from([0.0, 1e-6]))
def test_counts_over_a_number(seed: int, T: int, C: float, off_by: float) -> None:
    """With a as good as a float64 can be, what is left is the rounding of the factor."""
    rng = np.random.default_rng(seed)
    counts, weights = rng.integers(0, T + 1, 5), rng.random(5)
    rows = rng.standard_normal((5, 3))
    mass = [int(n) * exact(s) for n, s in zip(counts, weights, strict=True)]
    exact_a = [problems.exact_dot(mass, column) for column in rows.T]
    a = np.array([float(v) for v in exact_a]) + off_by
    off = math.sqrt(float(squared_distance(a, exact_a))) * (1 + 1e-12)
    counted = weights * counts
    count_sum = Bound(float(sum(mass)), UNIT * float(sum(mass)))
    alphas = [Fraction(C) / T * m for m in mass]
    w = [Fraction(C) / T * v for v in exact_a]
    for size in (length(a), float(counted @ np.linalg.norm(rows, axis=1))):
        point = dual.counts_point(C / T, count_sum, a, off, size, "a test", lambda: counted)
        assert abs(exact(point.alpha_sum) - sum(alphas)) <= exact(point.sums.alpha.rounding)
        assert squared_distance(point.w, w) <= exact(point.w_rounding) ** 2
        assert point.alpha is not None


def test_the_factor_of_counts_is_rounded_twice() -> None:
    """Its quotient and its product: neither may be left out."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for C, T in rng.uniform(1.0, 2.0, (2000, 2)):
        point = dual.counts_point(C / T, Bound(1.7, 0.0), np.array([1.7]), 0.0, 1.7, "a test")
        expected = exact(C) / exact(T) * exact(1.7)
        error = abs(exact(point.w[0]) - expected)
        assert error <= exact(point.w_rounding)
        assert abs(exact(point.alpha_sum) - expected) <= exact(point.sums.alpha.rounding)
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
    totals = np.array([dual.total(row).value for row in sums])
    lengths = np.linalg.norm(vectors, axis=1)
    roundings = np.full(n, off * length(direction))
    point = dual.mixed_point(shares, totals, vectors, lengths, roundings, "a test")
    w = [problems.exact_dot(shares, column) for column in zip(*true, strict=True)]
    assert squared_distance(point.w, w) <= exact(point.w_rounding) ** 2
    mass = problems.exact_dot(shares, map(exact_sum, sums))
    assert abs(exact(point.alpha_sum) - mass) <= exact(point.sums.alpha.rounding)
    assert point.w_rounding <= 1.03 * float(shares @ roundings) + 1e-12


@given(seeds, st.integers(1, 30), st.floats(0.01, 100.0), st.sampled_from([0.5, 1.0, 1.0 + 1e-15]))
def test_shares_are_within_their_sum_exactly(seed: int, n: int, most: float, size: float) -> None:
    shares, _ = mixtures(seed, n)
    shares *= size * most / shares.sum()
    within = dual.shares_within(shares, most)
    assert exact_sum(within) <= exact(most)
    np.testing.assert_allclose(within, shares, rtol=1e-14)
    if exact_sum(shares) < exact(most) * (1 - exact(1e-12)):
        np.testing.assert_array_equal(within, shares)


def in_the_exact_box(case: Case, alpha: list[Fraction]) -> list[Fraction]:
    """A multiple of alpha that is in the box of the hinge, whose ends C s_k were rounded."""
    if case.loss != "hinge":
        return alpha
    ends = [exact(case.C) * exact(s) for s in case.row_weights()]
    excess = max([a / end for a, end in zip(alpha, ends, strict=True) if a > 0] + [Fraction(1)])
    return [a / excess for a in alpha]


def feasible(case: Case, alpha: Array, scale: float = 1.0) -> list[Fraction]:
    """The alpha for which a bound was computed: a multiple, in the exact box, balanced exactly."""
    multiple = in_the_exact_box(case, [exact(scale) * exact(a) for a in alpha])
    return problems.exactly_balanced(case, multiple) if case.free_intercept else multiple


def exact_penalty(case: Case, alpha: list[Fraction]) -> Fraction:
    pairs = zip(alpha, case.row_weights(), strict=True)
    return exact_sum(a * a / (4 * exact(case.C) * exact(s)) for a, s in pairs if a > 0)


@given(cases(losses=["squared_hinge"]), seeds)
def test_penalties_are_within_their_allowance(case: Case, seed: int) -> None:
    alpha = case.row_weights() * np.random.default_rng(seed).random(len(case.labels)) ** 8
    problem = case.problem()
    sums = dual.alpha_sums(problem.loss, alpha, problem.weights, problem.C)
    expected = exact_penalty(case, [exact(a) for a in alpha])
    assert abs(exact(sums.penalty.value) - expected) <= exact(sums.penalty.rounding)
    assert sums.penalty.rounding <= 1e-14 * sums.penalty.value
    assert sums.alpha == dual.total(alpha)
    assert sums.value == sums.alpha.value - sums.penalty.value


def test_the_arithmetic_of_a_penalty_rounds() -> None:
    """C s_k, a quotient and a product: none may be left out."""
    worst = 0.0
    for C, s, a in np.random.default_rng(0).uniform(1.0, 2.0, (3000, 3)):
        squared = loss_named("squared_hinge")
        computed = dual.alpha_sums(squared, np.array([a]), np.array([s]), C).penalty
        expected = exact(a) ** 2 / (4 * exact(C) * exact(s))
        error = abs(exact(computed.value) - expected)
        assert error <= exact(computed.rounding)
        worst = max(worst, float(error / expected))
    assert worst > 1.5 * UNIT


def test_arithmetic_of_multiples_above_one_rounds_too() -> None:
    rng = np.random.default_rng(0)
    for A, x, Q in rng.uniform(1.0, 2.0, (5000, 3)) * [1.0, 0.1, 0.01]:
        sums = sum_of(A)._replace(penalty=Bound(Q, 0.0))
        point = dual.DualPoint(sums, np.array([x]), "a test", most=math.inf)
        bound, scale = dual.dual_bound(point)
        assert scale > 1.0
        s = exact(scale)
        value = s * exact(A) - s * s * (exact(x) ** 2 / 2 + exact(Q))
        assert abs(exact(bound.value) - value) <= exact(bound.rounding)


@given(free, seeds, st.sampled_from([0.0, 0.5, 1.0]))
def test_a_balanced_point(case: Case, seed: int, zeros: float) -> None:
    """Its sums are those of an alpha that is balanced exactly, within their allowances."""
    rng = np.random.default_rng(seed)
    problem = case.problem()
    alpha = case.C * case.row_weights() * rng.random(len(case.labels)) ** 3
    alpha[rng.random(alpha.size) < 0.5 * zeros] = 0.0
    # The ends of boxes, at times.
    alpha[rng.random(alpha.size) < 0.2] *= 0.0
    point = dual.dual_point(problem, alpha, "a test")
    balanced = problems.exactly_balanced(case, [exact(a) for a in alpha])
    assert abs(exact(point.alpha_sum) - sum(balanced)) <= exact(point.sums.alpha.rounding)
    w = [problems.exact_dot(balanced, column) for column in case.patterns().T]
    assert w[-1] == point.w[-1] == 0
    assert squared_distance(point.w, w) <= exact(point.w_rounding) ** 2
    if case.loss == "squared_hinge":
        error = abs(exact(point.sums.penalty.value) - exact_penalty(case, balanced))
        assert error <= exact(point.sums.penalty.rounding)
    assert point.alpha is not None
    np.testing.assert_allclose(point.alpha(), [float(a) for a in balanced], rtol=1e-13)
    bound, scale = dual.dual_bound(point)
    assert exact(bound.value) >= 0.0
    assert exact(bound.low) <= exact_dual(case, feasible(case, alpha, scale))
    # Nor is anything lost but a few units.
    assert bound.rounding <= 1e-12 * max(scale * float(alpha.sum()), 1e-280)


@pytest.mark.parametrize("sums", [(1.0, 1.0), (1.0, 3.0), (2.0, 0.5)])
@pytest.mark.parametrize("signs", list(itertools.product([-1, 0, 1], repeat=2)))
def test_balancing_pays_for_errors(sums: tuple[float, float], signs: tuple[int, int]) -> None:
    """One row on each side, whose alpha is not quite the sum that was computed."""
    off = 1e-4
    errors = [sign * off * s for s, sign in zip(sums, signs, strict=True)]
    true = [s + error for s, error in zip(sums, errors, strict=True)]
    points = [
        dual.DualPoint(
            dual.AlphaSums(Bound(sums[i], abs(errors[i])), Bound(true[i] ** 2, 0.0)),
            np.append(true[i] * np.eye(2)[i], (1 - 2 * i) * true[i]), "a test",
        )
        for i in range(2)
    ]  # fmt: skip
    point, least = dual.balanced_point(*points), min(true)
    assert abs(point.alpha_sum - 2.0 * least) <= point.sums.alpha.rounding
    assert np.linalg.norm(point.w - [least, least, 0.0]) <= point.w_rounding
    assert abs(point.sums.penalty.value - 2.0 * least**2) <= point.sums.penalty.rounding
    # No more than these errors add up to.
    assert point.sums.alpha.rounding <= 7.0 * off * least
    assert point.w_rounding <= 7.0 * off * least
    assert point.sums.penalty.rounding <= 10.0 * off * least**2


@st.composite
def extremes(draw: st.DrawFn) -> tuple[Case, Array]:
    """Weights, C, rows and alpha of any size, and an alpha that may underflow when squared."""
    n_rows, n_columns = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    mantissas = st.floats(1.0, 2.0, exclude_max=True)

    def sizes(low: int, high: int) -> st.SearchStrategy[float]:
        powers = st.tuples(mantissas, st.integers(low, high)).map(lambda p: p[0] * 2.0 ** p[1])
        return st.one_of(st.just(0.0), powers)

    def vector(low: int, high: int, n: int) -> Array:
        return np.array(draw(st.lists(sizes(low, high), min_size=n, max_size=n)))

    X = vector(-1074, 100, n_rows * n_columns).reshape(n_rows, n_columns)
    labels = np.where(np.arange(n_rows) % 2, 1.0, -1.0)
    weights = vector(-200, 100, n_rows)
    weights[:2] += 2.0 ** draw(st.integers(-200, 100))
    alpha = vector(-1074, 300, n_rows)
    C = 2.0 ** draw(st.integers(-200, 100)) * draw(mantissas)
    rho = 2.0 ** draw(st.integers(-300, 50))
    loss, penalised = draw(st.sampled_from(LOSSES)), draw(st.booleans())
    case = Case(X, labels, weights, C, rho, loss=loss, penalize_intercept=penalised)
    return case, np.where(weights > 0, alpha, 0.0)


@given(extremes())
def test_no_size_of_anything_makes_a_false_bound(drawn: tuple[Case, Array]) -> None:
    case, alpha = drawn
    try:
        problem = case.problem()
    except ValueError as error:
        assert "range of floating-point" in str(error)  # noqa: PT017
        return
    if case.loss == "hinge":
        alpha = np.minimum(alpha, problem.C * problem.weights)
    with np.errstate(all="ignore"):
        bound, scale = dual.dual_bound(dual.dual_point(problem, alpha, "a test"))
    if not math.isfinite(bound.low):
        return
    at_zero = exact(case.C) * exact_sum(case.row_weights())
    assert exact(bound.low) <= at_zero
    assert exact(bound.low) <= exact_dual(case, feasible(case, alpha, scale))


def test_penalties_that_underflow_are_not_magnified() -> None:
    """Of an empty row, L is at most C s; squares of such an alpha have few digits or none."""
    problem = Problem(Rows(np.zeros((1, 1))), [1.0], loss=loss_named("squared_hinge"))
    for a in np.geomspace(1e-163, 1e-150, 500):
        assert dual.dual_bound(dual.dual_point(problem, np.array([a]), "a test"))[0].low <= 1.0
    bound, _ = dual.dual_bound(dual.dual_point(problem, np.array([1e-120]), "a test"))
    assert bound.value == pytest.approx(1.0)


def test_squares_that_underflow_are_not_magnified() -> None:
    """The same for |w|^2, with a penalty that is small beside it."""
    problem = Problem(Rows(np.ones((1, 1))), [1.0], C=1e100, loss=loss_named("squared_hinge"))
    for a in np.geomspace(1e-163, 1e-150, 500):
        assert dual.dual_bound(dual.dual_point(problem, np.array([a]), "a test"))[0].low <= 0.5


@pytest.mark.parametrize("ratio", [1e-320, 1e-300])
def test_factors_that_underflow_are_not_used(ratio: float) -> None:
    problem = Problem(Rows(np.eye(2), intercept_scaling=1.0), [1, -1], penalize_intercept=False)
    point = dual.dual_point(problem, np.array([1.0, ratio]), "a test")
    assert (point.alpha_sum, point.w.tolist()) == (0.0, [0.0, 0.0, 0.0])
    almost = dual.dual_point(problem, np.array([1.0, 1e-200]), "a test")
    np.testing.assert_allclose(almost.w, [1e-200, -1e-200, 0.0])
