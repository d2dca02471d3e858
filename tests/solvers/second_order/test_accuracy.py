"""When rounding calls for a fresh computation, or for a longer w."""

from __future__ import annotations

import math

import pytest

from certsvm.certificates.best import BestValues
from certsvm.certificates.rounding import Bound
from certsvm.solvers.second_order.accuracy import lengthening, too_rounded


def best_of(primal: float, dual: float) -> BestValues:
    best = BestValues()
    best.offer(primal, dual)
    return best


def test_rounding_is_held_against_the_gap() -> None:
    best = best_of(110.0, 100.0)
    assert too_rounded(0.51, best)
    assert not too_rounded(0.49, best)
    # Rounding may have made J less than L.
    assert too_rounded(1e-12, best_of(99.0, 100.0))
    assert not too_rounded(0.0, best_of(99.0, 100.0))
    assert not too_rounded(1e9, BestValues())


@pytest.mark.parametrize(
    ("primal", "rounding", "factor"),
    [
        # The target is not met yet.
        (102.0, 1.0, None),
        # Rounding does not matter.
        (100.5, 0.04, None),
        (100.5, 0.06, 1.001),
    ],
)
def test_lengthening(primal: float, rounding: float, factor: float | None) -> None:
    best = best_of(primal, 100.0)
    assert lengthening(Bound(primal, rounding), best, 0.01) == factor


def test_without_a_dual_bound_there_is_none() -> None:
    assert lengthening(Bound(1.0, math.inf), BestValues(), 0.01) is None


def test_a_larger_slack_needs_a_larger_factor() -> None:
    best = BestValues()
    best.offer(100.0, 100.0)
    bound = Bound(100.0, 1.0)
    assert lengthening(bound, best, 0.01) == pytest.approx(1.001)
    assert lengthening(bound, best, 0.01, 1e-9) == pytest.approx(1.001)
    assert lengthening(bound, best, 0.01, 0.002) == pytest.approx(1.003)
    assert lengthening(bound, best, 0.0) == 1.0
    # Nothing helps.
    assert lengthening(bound, best, 0.01, 0.1) == pytest.approx(1.001)
