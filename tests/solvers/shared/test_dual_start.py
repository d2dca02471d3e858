"""An alpha for a warm start: feasible, and good near the optimum."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.kernels.losses import LOSSES
from certsvm.solvers import Start
from certsvm.solvers.shared.dual_start import alpha_from_margins, starting_alpha
from tests.problems import Case, cases, optimum

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds, size=st.sampled_from([0.0, 1.0, 1e3, 1e100]))
def test_alpha_from_margins_is_feasible(case: Case, seed: int, size: float) -> None:
    problem = case.problem()
    w = size * np.random.default_rng(seed).standard_normal(problem.dimension)
    alpha = alpha_from_margins(problem, w)
    assert (alpha >= 0).all()
    assert (alpha <= case.C * case.row_weights()).all()
    bound, scale = dual_bound(dual_point(problem, alpha, "a test"))
    assert bound.low <= optimum(case)[1]
    # It is scaled already, unless nothing is better than zero.
    assert scale >= 1 - 1e-9 or not alpha.any()


@given(case=cases(losses=tuple(LOSSES), free_intercepts=True), seed=seeds)
def test_a_given_alpha_is_clipped_to_the_box_and_scaled(case: Case, seed: int) -> None:
    problem = case.problem()
    box = case.C * case.row_weights()
    given_alpha = 2 * case.C * np.random.default_rng(seed).standard_normal(box.size)
    start = Start(np.zeros(problem.dimension), alpha=given_alpha)
    alpha = starting_alpha(problem, start)
    top = box if case.loss == "hinge" else np.where(box > 0, np.inf, 0.0)
    clipped = np.minimum(np.maximum(given_alpha, 0), top)
    bound, scale = dual_bound(dual_point(problem, clipped, "a test"))
    np.testing.assert_allclose(alpha, scale * clipped, rtol=1e-12)
    assert (alpha <= top).all()
    scaled, _ = dual_bound(dual_point(problem, alpha, "a test"), scaled=False)
    assert scaled.value >= bound.value * (1 - 1e-9) - 1e-9 * alpha.sum()
