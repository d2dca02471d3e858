"""The arithmetic of verification, against rational arithmetic."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from certsvm.certificates.certificate import Certificate
from certsvm.verification.interval_arithmetic import (
    ANYTHING,
    NOTHING,
    Interval,
    ProblemSums,
    RowBlock,
    exceeds,
    grouped_sums,
    two_product,
)
from tests import problems
from tests.problems import Case, exact, exact_dot, exact_objective, exact_sum, exactly_balanced

Array = NDArray[np.float64]

ANY_SIZE = st.floats(allow_nan=False, allow_infinity=False)
MODERATE = st.floats(-1e100, 1e100)
NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([1e16, -1e16, 1e-17]), MODERATE)


def vectors(elements: Any, size: int | None = None) -> st.SearchStrategy[Array]:
    shape = st.integers(0, 12) if size is None else size
    return hnp.arrays(np.float64, shape, elements=elements)


@given(ANY_SIZE, ANY_SIZE)
def test_the_error_of_a_product(a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        product, error = two_product(np.array([a]), np.array([b]))
    if not (np.isfinite(product) & np.isfinite(error)).all():
        assert abs(exact(a) * exact(b)) > Fraction(10) ** 300 or max(abs(a), abs(b)) > 1e307
        return
    off = abs(exact(product[0]) + exact(error[0]) - exact(a) * exact(b))
    assert off <= 5 * exact(2.0**-1074)
    assert off == 0 or abs(product[0]) < 2.0**-960


LEAST = 2.0**-1022
SUBNORMAL = st.floats(-LEAST, LEAST) | st.integers(1, 52).map(lambda n: LEAST * 2.0**-n)
LARGE = st.floats(1e290, 1.7e308) | st.integers(960, 1022).map(lambda n: 2.0**n * (2 - 2.0**-52))


@given(LARGE, SUBNORMAL)
@example((2 - 2.0**-52) * 2.0**1022, 2.0**-1048)
def test_the_error_of_a_product_with_a_subnormal_number(a: float, b: float) -> None:
    """A subnormal number has its first bit anywhere, and must be split there."""
    for x, y in ((a, b), (b, a)):
        product, error = two_product(np.array([x]), np.array([y]))
        off = abs(exact(product[0]) + exact(error[0]) - exact(a) * exact(b))
        assert off <= 5 * exact(2.0**-1074)


@given(st.floats(0, 1e200), st.floats(0, 1e100), st.booleans())
@example(1e-8, 3.94547275e-309, False)
@example(1e-200, 7e-124, False)
def test_a_number_beyond_the_exact_product(b: float, c: float, below: bool) -> None:
    a = np.nextafter(b * c, 0.0) if below else b * c
    found = exceeds(np.array([a]), b, np.array([c]))
    assert found.tolist() == [exact(a) > exact(b) * exact(c)]


@given(st.data(), vectors(NUMBERS))
def test_sums_are_off_by_no_more_than_their_error(data: st.DataObject, terms: Array) -> None:
    small = data.draw(vectors(st.floats(-1e-3, 1e-3), terms.size)) * np.abs(terms)
    groups = data.draw(hnp.arrays(np.intp, terms.size, elements=st.integers(0, 2)))
    with np.errstate(under="ignore"):
        sums = grouped_sums(terms, small, groups, 3)
    for g in range(3):
        members = groups == g
        truth = exact_sum(terms[members]) + exact_sum(small[members])
        computed = exact(sums.high[g]) + exact(sums.low[g])
        assert abs(truth - computed) <= exact(sums.error[g])
        # And that is far less than a plain sum's.
        size = exact_sum(np.abs(terms[members])) + 2**53 * exact_sum(np.abs(small[members]))
        assert exact(sums.error[g]) <= exact(2.0**-90) * size + exact(2.0**-1050)


@given(st.integers(1, 4), st.data())
def test_products_of_rows_and_their_sums(n: int, data: st.DataObject) -> None:
    X = data.draw(hnp.arrays(np.float64, (n, 3), elements=NUMBERS))
    v, a = data.draw(vectors(NUMBERS, 3)), data.draw(vectors(NUMBERS, n))
    constant = data.draw(NUMBERS)
    rows, columns = np.indices(X.shape)
    block = RowBlock(X.ravel(), rows.ravel(), columns.ravel(), *X.shape)
    with np.errstate(all="ignore"):
        values, errors = block.products(v, constant)
        sums = block.combination(a)
    for k in range(n):
        truth = exact_dot(X[k], v) + exact(constant)
        assert abs(truth - exact(values[k])) <= exact(errors[k])
    for j in range(3):
        truth, computed = exact_dot(X[:, j], a), exact(sums.high[j]) + exact(sums.low[j])
        assert abs(truth - computed) <= exact(sums.error[j])


@given(st.fractions(), st.fractions(min_value=0))
def test_intervals_are_rounded_outwards(centre: Fraction, radius: Fraction) -> None:
    low, high = Interval.of(centre - radius, centre + radius)
    assert low <= centre - radius < math.nextafter(low, math.inf)
    assert math.nextafter(high, -math.inf) < centre + radius <= high


def test_intervals_beyond_the_largest_number() -> None:
    largest = float(np.finfo(np.float64).max)
    huge = Fraction(10) ** 400
    assert Interval.of(huge, huge) == (largest, math.inf)
    assert Interval.of(-huge, -huge) == (-math.inf, -largest)


def one_row(*values: float) -> RowBlock:
    n = len(values)
    return RowBlock(np.array(values), np.zeros(n, np.intp), np.arange(n), 1, n)


def claim(C: float = 1, rho: float = 0, squared: bool = False, free: bool = False) -> Certificate:
    objective: Any = {"loss": "squared_hinge" if squared else "hinge", "C": C}
    objective |= {"penalize_intercept": not free, "intercept_scaling": rho}
    return Certificate(1.0, 1.0, 0.1, **objective)


@pytest.mark.parametrize(
    ("large", "small"),
    [(-7.118538960991406, -4.36457188294536e-16), (-3.121665221745243, -2.181491489100767e-16)],
)
def test_roundings_of_a_squared_loss_that_add_up(large: float, small: float) -> None:
    """The product, the distance and its square are rounded in the same direction."""
    J = ProblemSums(claim(C=1.0, rho=0.0, squared=True), np.ones(2), 0.0, dual=False)
    J.add(one_row(large, small), np.ones(1), np.ones(1))
    low, high = J.J()
    assert exact(low) <= 1 + (1 - exact(large) - exact(small)) ** 2 <= exact(high)


@given(st.data(), st.booleans(), st.booleans(), st.sampled_from([0.0, 0.3, 1.0]))
def test_intervals_of_J_and_L(data: st.DataObject, squared: bool, free: bool, rho: float) -> None:
    """In blocks of one row."""
    n = data.draw(st.integers(1, 6))
    numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3))
    X = data.draw(hnp.arrays(np.float64, (n, 2), elements=numbers))
    coef, intercept = data.draw(vectors(numbers, 2)), data.draw(numbers) if rho else 0.0
    signs = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([-1.0, 1.0])))
    weights = data.draw(vectors(st.sampled_from([0.0, 0.1, 1.0, 3.0]), n))
    C = data.draw(st.sampled_from([0.1, 1.0, 7.0]))
    most = 20.0 if squared else 1.0
    alpha = data.draw(vectors(st.floats(0, most), n)) * C * weights
    if not squared:
        alpha = np.minimum(alpha, C * weights)
    J = ProblemSums(claim(C, rho, squared=squared, free=free), coef, intercept, dual=False)
    L = ProblemSums(claim(C, rho, squared=squared, free=free), np.zeros(2))
    for k in range(n):
        row, sign, weight = one_row(*X[k]), signs[k : k + 1], weights[k : k + 1]
        J.add(row, sign, weight)
        L.add(row, sign, weight, alpha[k : k + 1])
    loss = "squared_hinge" if squared else "hinge"
    problem = Case(X, signs, weights, C, rho, loss=loss, penalize_intercept=not free)
    w = [*map(exact, coef), *([exact(intercept) / exact(rho)] if rho else [])]
    low, high = J.J()
    assert exact(low) <= exact_objective(problem, w) <= exact(high)
    assert high - low <= 1e-9 * (1 + abs(high))
    meant = [exact(a) for a in alpha]
    if not squared:
        beyond = [a > exact(C) * exact(s) for a, s in zip(meant, weights, strict=True)]
        meant = [exact(a) for a in np.where(beyond, np.nextafter(alpha, 0.0), alpha)]
    if problem.free_intercept:
        meant = exactly_balanced(problem, meant)
    low, high = L.L()
    assert exact(low) <= problems.exact_dual(problem, meant) <= exact(high)
    size = alpha.sum() + float((np.abs(X).sum() * alpha.sum()) ** 2)
    assert high - low <= 1e-12 * (1 + size)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1e-300, 1.0000000000000002])
@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("free", [True, False])
def test_alpha_outside_its_box_has_no_value(bad: float, squared: bool, free: bool) -> None:
    # The box of the squared hinge ends nowhere, but for rows without weight.
    weight = np.zeros(1) if squared and bad > 0.0 else np.ones(1)
    dual = ProblemSums(claim(rho=1.0, squared=squared, free=free), np.zeros(1))
    dual.add(one_row(1.0), np.ones(1), weight, np.array([bad]))
    assert dual.box_violation > 0
    assert dual.L() == ANYTHING


def test_overflow_leaves_everything_open() -> None:
    one = np.ones(1)
    primal = ProblemSums(claim(C=1.0, rho=0.0), np.array([1e200]), 0.0, dual=False)
    primal.add(one_row(-1e200), one, one)
    assert primal.J() == ANYTHING
    dual = ProblemSums(claim(C=1.0, rho=0.0), np.zeros(1))
    dual.add(one_row(1e200), one, one, one)
    assert dual.L() == ANYTHING


def test_sizes_beyond_the_largest_number_leave_a_sum_open() -> None:
    """The sum is 1000, and none of its partial sums overflows; the sum of its sizes does."""
    rows = RowBlock(np.array([1.5e308, 1000.0, 1.5e308]), np.zeros(3, np.intp), np.arange(3), 1, 3)
    J = ProblemSums(claim(), np.array([1.0, 1.0, -1.0]), 0.0, dual=False)
    J.add(rows, np.array([-1.0]), np.ones(1))
    assert J.J() == ANYTHING


LARGEST = float(np.finfo(np.float64).max)


huge = st.sampled_from([LARGEST, -LARGEST, LARGEST / 2, -LARGEST / 3, 1e300, 1.0, -1000.0])


@given(st.lists(huge | ANY_SIZE, min_size=1, max_size=8))
def test_sums_near_the_largest_number(terms: list[float]) -> None:
    n = len(terms)
    with np.errstate(all="ignore"):
        sums = grouped_sums(np.array(terms), np.zeros(n), np.zeros(n, np.intp), 1)
    high, low, error = (float(x[0]) for x in sums)
    if math.isfinite(high) and math.isfinite(low) and math.isfinite(error):
        true = exact_sum(np.array(terms))
        assert abs(exact(high) + exact(low) - true) <= exact(error)


@pytest.mark.parametrize(
    ("coef", "intercept", "rho"), [(math.nan, 0.0, 1.0), (math.inf, 0.0, 0.0), (1.0, 1e-9, 0.0)]
)
def test_no_weight_vector_of_the_problem(coef: float, intercept: float, rho: float) -> None:
    primal = ProblemSums(claim(C=1.0, rho=rho), np.array([coef]), intercept, dual=False)
    primal.add(one_row(1.0), np.ones(1), np.ones(1))
    assert primal.J() == NOTHING
