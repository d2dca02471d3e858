"""Allowances for rounding against exact rational arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates import rounding
from tests.problems import Array, exact, exact_dot, exact_sum, squared_distance

UNIT = 2.0**-53
seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 40))
def test_units_cover_as_many_roundings(seed: int, count: int) -> None:
    factors = np.random.default_rng(seed).uniform(0.9, 1.1, count + 1)
    value, product = float(factors[0]), exact(factors[0])
    for factor in factors[1:]:
        value, product = value * float(factor), product * exact(factor)
    assert abs(exact(value) - product) <= exact(rounding.units(count, value))


def absorbed(n: int) -> Array:
    """Numbers whose sum, from the left, is the first: each addition loses a unit."""
    return np.append(1.0, np.full(n - 1, UNIT))


def from_the_left(terms: Array, start: float = 0.0) -> float:
    for term in terms:
        start += float(term)
    return start


@given(seeds, st.integers(1, 200), st.booleans())
def test_sums_in_any_order(seed: int, n: int, absorbing: bool) -> None:
    rng = np.random.default_rng(seed)
    terms = absorbed(n) if absorbing else rng.permutation(rng.random(n) ** 8)
    value = from_the_left(terms)
    bound = rounding.sum_in_any_order(value, n)
    assert bound.value == value
    assert abs(exact(value) - exact_sum(terms)) <= exact(bound.rounding)
    assert exact_sum(terms) <= exact(rounding.upper_sum(value, n)) <= exact(value * (1 + n * 1e-15))


@given(seeds, st.integers(0, 100), st.booleans())
def test_what_a_running_sum_has_grown_by(seed: int, additions: int, absorbing: bool) -> None:
    rng = np.random.default_rng(seed)
    before = 1.0 if absorbing else rng.random()
    counts, weights = rng.integers(1, 9, additions), rng.random(additions)
    if absorbing:
        counts, weights = np.ones(additions, dtype=np.int64), np.full(additions, UNIT)
    now = from_the_left(counts * weights, before)
    growth = exact_dot(counts, weights)
    bound = rounding.grown_sum(before, now, additions)
    assert abs(exact(bound.value) - growth) <= exact(bound.rounding)


@given(seeds, st.integers(1, 30), st.sampled_from([0.0, 1.0, 1e6]))
def test_additions_of_multiples_of_rows(seed: int, updates: int, size: float) -> None:
    """As coordinate descent makes them: by the difference of two multipliers."""
    rng = np.random.default_rng(seed)
    v = size * rng.standard_normal(2)
    expected = [exact(value) for value in v]
    longest, longest_step = rounding.length(v), 0.0
    for _ in range(updates):
        old, new, row = rng.random(), rng.random(), rng.standard_normal(2)
        v = v + (new - old) * row
        step = exact(new) - exact(old)
        expected = [e + step * exact(x) for e, x in zip(expected, row, strict=True)]
        longest = max(longest, rounding.length(v))
        longest_step = max(longest_step, abs(new - old) * rounding.length(row))
    allowed = exact(rounding.updates_rounding(updates, longest, longest_step))
    assert squared_distance(v, expected) <= allowed**2


def test_one_addition_from_zero_rounds_the_multiplier_and_the_product() -> None:
    rng = np.random.default_rng(0)
    worst = 0.0
    for old, new, x in rng.uniform(1.0, 2.0, (2000, 3)):
        step = (-old / 3 - new) * x
        error = abs(exact(step) - (exact(-old / 3) - exact(new)) * exact(x))
        assert error <= exact(rounding.updates_rounding(1, 0.0, abs(step)))
        worst = max(worst, float(error) / abs(step))
    assert worst > 1.1 * UNIT


class Rows:
    """A few rows, a vector and its products, computed as a solver does."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.Y = self.rng.standard_normal((20, 2))
        self.w = self.rng.standard_normal(2)
        self.products = self.Y @ self.w
        self.error = rounding.product_error(self.w)

    def step(self, size: float, direction: Array) -> None:
        lengths = rounding.length(self.w), rounding.length(direction)
        self.error = rounding.step_error(self.error, lengths[0], size, lengths[1])
        self.products += size * (self.Y @ direction)
        self.w += size * direction

    def assert_products_are_within_their_error(self) -> None:
        for y, product in zip(self.Y, self.products, strict=True):
            allowed = rounding.per_size(self.error) * (y.size + 2) * rounding.length(y)
            assert abs(exact(product) - exact_dot(y, self.w)) <= exact(allowed)


@given(seeds, st.integers(0, 8), st.sampled_from([1e-3, 1.0, 30.0]))
def test_products_after_steps(seed: int, steps: int, size: float) -> None:
    rows = Rows(seed)
    for _ in range(steps):
        rows.step(size * rows.rng.random(), rows.rng.standard_normal(2))
        rows.assert_products_are_within_their_error()


@pytest.mark.parametrize("seed", range(2))
def test_many_small_steps_add_up(seed: int) -> None:
    """What they add comes from the length of w, not from theirs."""
    rows = Rows(seed)
    for _ in range(4000):
        rows.step(1e-9, rows.rng.standard_normal(2))
    rows.assert_products_are_within_their_error()
    inherited = Rows(seed).error * (1 + 1e-6)
    rows.error = inherited
    with pytest.raises(AssertionError):
        rows.assert_products_are_within_their_error()


def test_a_row_beyond_the_margin_by_more_than_the_slack_has_no_loss() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(2000):
        y, w = rng.standard_normal((2, 12))
        # The product is 1, but for a few roundings.
        w += (1.0 - y @ w + rng.normal(0, 4 * UNIT)) / (y @ y) * y
        size = (y.size + 2) * rounding.length(y)
        slack = rounding.rounding_slack(rounding.product_error(w), size)
        assert slack < 1e-13
        product, short = float(y @ w), exact_dot(y, w) < 1
        wrong += product > 1.0 and short
        assert not (product > 1.0 + slack and short)
    # Without the slack, rows were taken to be beyond the margin that are not.
    assert wrong > 0
