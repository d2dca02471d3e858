"""Curves of the error against C."""

from __future__ import annotations

import numpy as np
import pytest

from certsvm.fitting.error_curve import Curve, values_in


@pytest.mark.parametrize("C_range", [(1e-3, 1e2), (0.3, 0.7), (1e-300, 1e300)])
@pytest.mark.parametrize("n", [None, 2, 7])
@pytest.mark.parametrize("certify", [False, True])
def test_values_begin_and_end_exactly(
    C_range: tuple[float, float], n: int | None, certify: bool
) -> None:
    values = values_in(C_range, n, certify=certify)
    assert (values[0], values[-1]) == C_range
    assert values == sorted(set(values))
    if n is not None:
        assert len(values) == n
    elif not certify:
        assert len(values) == 20


def test_a_proof_begins_with_a_value_for_each_power_of_ten() -> None:
    assert len(values_in((1e-3, 1e2), certify=True)) == 6


def test_the_bound_of_a_curve() -> None:
    Cs, none = np.array([1.0, 4.0]), np.empty(0)
    errors = np.array([0.3, 0.2])
    assert Curve(Cs, errors, none, none, none, 4.0).bound == 0.0
    edges = np.array([1.0, 2.0, 4.0])
    curve = Curve(Cs, errors, edges, np.array([0.25, 0.1]), np.array([0.3, 0.2]), 4.0)
    assert curve.bound == 0.1


def test_a_curve_is_plotted() -> None:
    pytest.importorskip("matplotlib")
    edges, errors = np.array([1.0, 4.0]), np.array([0.3, 0.2])
    curve = Curve(edges, errors, edges, np.array([0.1]), np.array([0.4]), 4.0)
    assert curve.plot().axes[0].get_xlabel()
