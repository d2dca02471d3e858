"""Certificates, and the best bounds of a run, which they state."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows
from certsvm.certificates.best import BestBounds
from certsvm.certificates.certificate import HINGE_NAME, SQUARED_HINGE_NAME, Certificate, percent
from certsvm.certificates.dual import AlphaSums, DualPoint, dual_point
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import LOSSES, loss_named
from tests.problems import Case, cases, exact, exact_sum


def test_a_dual_bound_that_is_not_positive_proves_nothing() -> None:
    for dual in (0.0, -1.0, -1e300):
        certificate = Certificate(primal=10.0, dual=dual, target=1e9)
        assert certificate.relative_gap == math.inf
        assert not certificate.met
        assert "nothing is proved" in str(certificate)
        assert not Certificate(primal=10.0, dual=dual, target=math.inf).met
    assert Certificate(primal=10.0, dual=1.0, target=math.inf).met


def test_a_gap_below_rounding_is_zero_and_proves_nothing() -> None:
    allowances = {"primal_rounding": 1e-12, "dual_rounding": 1e-12}
    certificate = Certificate(primal=1.0, dual=1.0 + 1e-12, target=5e-13, **allowances)
    assert certificate.relative_gap == certificate.gap == 0.0
    assert math.copysign(1.0, certificate.relative_gap) == 1.0
    assert 5e-13 < certificate.proved_gap < 2e-12
    assert not certificate.met
    assert "not met" in str(certificate)


def test_a_contradiction_is_reported_as_computed() -> None:
    for allowance in (0.0, 1e-13):
        certificate = Certificate(1.0, 1.0 + 1e-12, target=0.0, primal_rounding=allowance)
        assert certificate.relative_gap < 0
        assert certificate.gap < 0
        assert not certificate.met


def test_rounding_counts_against_the_target() -> None:
    exact = Certificate(primal=100.999, dual=100.0, target=0.01)
    assert exact.met
    for allowance in ({"primal_rounding": 0.01}, {"dual_rounding": 0.01}):
        blurred = Certificate(primal=100.999, dual=100.0, target=0.01, **allowance)
        assert blurred.relative_gap == exact.relative_gap
        assert not blurred.met


few, more = st.integers(0, 3), st.integers(0, 8)


@given(st.floats(0.5, 2.0), more, few, few, more)
def test_met_is_met_exactly(dual: float, steps: int, above: int, below: int, target: int) -> None:
    """Here all numbers are a few units of rounding."""
    unit = 2.0**-54
    primal = dual + steps * unit * 4
    allowances = {"primal_rounding": above * unit, "dual_rounding": below * unit}
    certificate = Certificate(primal, dual, target=target * unit * 2, **allowances)
    high = Fraction(primal) + Fraction(certificate.primal_rounding)
    low = Fraction(dual) - Fraction(certificate.dual_rounding)
    if certificate.met:
        assert low <= high <= (1 + Fraction(certificate.target)) * low
    assert high <= (1 + Fraction(certificate.proved_gap)) * low


def test_a_gap_of_less_than_a_unit_of_rounding_is_not_called_none() -> None:
    certificate = Certificate(primal=1.0, dual=1.0, target=1e-3, primal_rounding=1e-17)
    assert certificate.proved_gap >= 1e-17
    assert "within 0 %" not in str(certificate)


def test_bounds_beyond_the_range_of_float64_prove_nothing() -> None:
    for allowances in ({"dual_rounding": -math.inf}, {"primal_rounding": -math.inf}):
        assert not Certificate(1.0, 1.0, target=math.inf, **allowances).met
    assert not Certificate(1.0, math.inf, target=math.inf).met
    assert not Certificate(1.7e308, 0.94, target=math.inf).met


@pytest.mark.parametrize("primal", [math.nan, math.inf])
def test_a_primal_that_is_no_number(primal: float) -> None:
    assert not Certificate(primal=primal, dual=1.0, target=1.0).met


@given(st.floats(1e-12, 1e6))
def test_percentages_are_never_rounded_down(fraction: float) -> None:
    shown = float(percent(fraction).removesuffix(" %").replace(",", ""))
    assert shown >= fraction * 100 * (1 - 1e-15)
    assert shown <= fraction * 100 * 1.011


def test_the_losses_are_those_of_training() -> None:
    assert {HINGE_NAME, SQUARED_HINGE_NAME} == set(LOSSES)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_ledger_ignores_what_is_no_number(value: float) -> None:
    ledger = BestBounds(Problem(Rows(np.eye(2)), [1, -1]), 0.1)
    ledger.offer_dual(DualPoint(AlphaSums(Bound(value, 0.0)), np.zeros(2), "bad"))
    assert ledger.certificate().dual == 0.0
    ledger.offer_primal(np.zeros(2), Bound(value, 0.0))
    assert not ledger.certificate().met


@given(cases(losses=("hinge", "squared_hinge"), free_intercepts=True))
def test_j_at_zero_is_within_its_allowance(case: Case) -> None:
    best = BestBounds(case.problem(), 0.1)
    best.offer_zero()
    error = exact(best.primal.value) - exact(case.C) * exact_sum(case.row_weights())
    assert abs(error) <= exact(best.primal.rounding)
    assert best.w is not None
    assert not best.w.any()


def test_the_kept_alpha_is_the_multiple_that_was_bounded() -> None:
    problem = Problem(Rows(np.eye(2)), [1, -1], C=0.5, loss=loss_named("squared_hinge"))
    best = BestBounds(problem, 0.1, keep_vector=True)
    best.offer_dual(dual_point(problem, np.array([1e-3, 1e-3]), "a test"))
    # L(a) = 2 a - a^2 - a^2: largest at 1/2, far beyond what was offered.
    assert best.dual.scale == pytest.approx(500.0)
    assert best.dual.alpha is not None
    np.testing.assert_allclose(best.dual.alpha, [0.5, 0.5])
    assert best.dual.vector is not None
    np.testing.assert_allclose(best.dual.vector.v, [0.5, -0.5])
    certificate = best.certificate()
    assert certificate.dual == pytest.approx(0.5)
    assert (certificate.loss, certificate.penalize_intercept) == ("squared_hinge", True)
