"""An alpha for a warm start: feasible, and good near the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.kernels.losses import LOSSES, loss_named
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import DCD, Start
from certsvm.solvers.shared.dual_start import alpha_from_margins, starting_alpha
from certsvm.training.loop import train
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


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_fit_starts_well_from_another_C(loss: str, noise: float) -> None:
    """Whether most rows are inside the margin, and alpha grows with C, or few and it does not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 10) if noise else (60, 200))
    labels = np.where(X[:, 0] + noise * rng.standard_normal(len(X)) > 0, 1.0, -1.0)
    low, high = (Problem(Rows(X), labels, C=C, loss=loss_named(loss)) for C in (1.0, 10.0))
    before = train(low, DCD(), tol=1e-6, seed=0, max_iter=50_000, keep_alpha=True)
    assert before.alpha is not None
    alpha = starting_alpha(high, Start(before.w, alpha=10.0 * before.alpha))
    bound, _ = dual_bound(dual_point(high, alpha, "a test"))
    best = train(high, DCD(), tol=1e-6, seed=0, max_iter=50_000)
    assert bound.value > 0.8 * best.certificate.dual
