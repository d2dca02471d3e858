import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.certificate import HINGE_NAME, SQUARED_HINGE_NAME, Certificate, percent
from certsvm.kernels.losses import LOSSES


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


@given(
    st.floats(0.5, 2.0), st.integers(0, 8), st.integers(0, 3), st.integers(0, 3), st.integers(0, 8)
)
def test_what_is_met_is_met_exactly(
    dual: float, steps: int, above: int, below: int, target: int
) -> None:
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
