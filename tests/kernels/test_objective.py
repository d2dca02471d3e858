"""Sums over rows, of which tests/certificates has the exact values."""

import math

import numpy as np
import pytest

from certsvm.kernels import objective
from certsvm.kernels.losses import HINGE


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_a_product_that_is_no_number_is_not_lost(bad: float) -> None:
    sums, masses = np.zeros((2, 1))
    args = np.array([2.0, bad]), np.ones(2), np.array([0, 2]), 0, 1, 0.0, np.ones(2), sums, masses
    objective.loss_sums(HINGE, *args)
    assert not math.isfinite(sums[0])
    assert masses[0] == 1.0
