"""The exact optimum has no duality gap, and no weight vector near it has a smaller J."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.kernels.losses import LOSSES
from tests.exact import exact_optimum
from tests.problems import Case, cases, exact_dual, exact_objective, objective, optimum

ALL = {"losses": tuple(LOSSES), "free_intercepts": True}


@given(cases(**ALL), st.integers(0, 2**32 - 1))
def test_the_optimum_has_no_gap(case: Case, seed: int) -> None:
    found = exact_optimum(case)
    if found is None:
        return
    assert exact_dual(case, found.alpha) == exact_objective(case, found.w)
    w = np.array([float(v) for v in found.w])
    for size in (1e-3, 1.0):
        other = w + size * np.random.default_rng(seed).standard_normal(w.size)
        assert objective(case, other) >= float(exact_objective(case, found.w)) * (1 - 1e-9)
    if not case.free_intercept:
        low, high = optimum(case)
        assert low * (1 - 1e-9) <= exact_objective(case, found.w) <= high * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_the_optimum_is_found(loss: str, penalize_intercept: bool) -> None:
    found: Counter[bool] = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (8, 3)) + rng.choice([0.0, 0.3], (8, 3))
        labels = np.where(np.arange(8) % 3 > 0, 1.0, -1.0)
        C = float(rng.choice([0.01, 1.0, 10.0]))
        case = Case(X, labels, None, C, 1.0, "dense-float64-int32", loss, penalize_intercept)
        found[exact_optimum(case) is not None] += 1
    assert found[True] >= 38
