"""Sums over rows: kernels against their Python text, and against NumPy."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.kernels import objective
from certsvm.kernels.losses import HINGE
from tests.problems import Array, Case, cases

seeds = st.integers(0, 2**32 - 1)


def sums_of(function: Any, case: Case, w: Array, slack: float) -> Array:
    """Losses and masses of three chunks, the last two of which may be empty."""
    n = len(case.labels)
    starts, sizes = np.array([0, (n + 1) // 2, n, n]), np.arange(1.0, n + 1.0)
    out = np.full((2, 3), np.nan)
    function(HINGE, case.patterns() @ w, case.row_weights(), starts, 0, 3, slack, sizes, *out)
    return out


@given(cases(), seeds, st.sampled_from([0.0, 1e-9, 3.0]))
def test_losses_and_masses(case: Case, seed: int, slack: float) -> None:
    w = np.random.default_rng(seed).standard_normal(case.problem().rows.dimension)
    products, s = case.patterns() @ w, case.row_weights()
    rows = np.flatnonzero(s)
    ends = np.array([(len(s) + 1) // 2, len(s), len(s)])
    expected = np.zeros((2, 3))
    for k in rows:
        chunk = int(np.argmax(k < ends))
        expected[0, chunk] += s[k] * max(0.0, 1.0 - products[k])
        expected[1, chunk] += (k + 1.0) * (products[k] < 1.0 + slack)
    # At the very edge rounding decides.
    clear = not np.isclose(products[rows], 1.0 + slack, rtol=1e-9, atol=0).any()
    for function in (objective.loss_sums, objective.loss_sums.py_func):
        sums = sums_of(function, case, w, slack)
        np.testing.assert_allclose(sums[0], expected[0], rtol=1e-9, atol=1e-9)
        if clear:
            np.testing.assert_allclose(sums[1], expected[1])


def test_rows_just_beyond_the_margin_count_as_possible_losses() -> None:
    products, sizes = np.array([0.5, 1.2, 2.0]), np.array([1.0, 10.0, 100.0])
    sums, masses = np.zeros((2, 1))
    starts = np.array([0, 3])
    objective.loss_sums(HINGE, products, np.ones(3), starts, 0, 1, 0.4, sizes, sums, masses)
    assert (sums.tolist(), masses.tolist()) == ([0.5], [11.0])


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_a_product_that_is_no_number_is_not_lost(bad: float) -> None:
    sums, masses = np.zeros((2, 1))
    args = np.array([2.0, bad]), np.ones(2), np.array([0, 2]), 0, 1, 0.0, np.ones(2), sums, masses
    objective.loss_sums(HINGE, *args)
    assert not math.isfinite(sums[0])
    assert masses[0] == 1.0


@given(cases(), seeds)
def test_margins(case: Case, seed: int) -> None:
    problem = case.problem()
    n, d = problem.rows.n_rows, problem.rows.dimension
    v, w = np.random.default_rng(seed).standard_normal((2, d))
    arrays, signed = problem.rows.arrays, problem.signed_weights
    expected = np.where(signed != 0.0, np.array([v, w]) @ case.patterns().T, 1.0)
    for function in (objective.margins, objective.margins.py_func):
        out = np.full(n, np.nan)
        function(arrays, signed, v, 0, n // 2, out)
        assert np.isnan(out[n // 2 :]).all()
        function(arrays, signed, v, n // 2, n, out)
        np.testing.assert_allclose(out, expected[0], rtol=1e-12, atol=1e-12)
    for function in (objective.margins_of_two, objective.margins_of_two.py_func):
        both = np.full((2, n), np.nan)
        function(arrays, signed, v, w, 0, n, both[0], both[1])
        np.testing.assert_allclose(both, expected, rtol=1e-12, atol=1e-12)


@given(cases(), seeds, st.integers(1, 12))
def test_sums_of_rows(case: Case, seed: int, chunk: int) -> None:
    problem = case.problem()
    n, d = problem.rows.n_rows, problem.rows.dimension
    rng = np.random.default_rng(seed)
    alpha = rng.choice([0.0, 0.5, 2.0], n) * (problem.weights > 0)
    arrays, signed = problem.rows.arrays, problem.signed_weights
    for function in (objective.weighted_sum, objective.weighted_sum.py_func):
        out = np.ones(d)
        function(arrays, signed, alpha, 1, n, chunk, np.full(d, np.nan), out)
        expected = 1.0 + alpha[1:] @ case.patterns()[1:]
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-11)
