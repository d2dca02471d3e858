"""SGD on scale times v: the steps against NumPy, and the rate found by trial."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import NORMA, Solver, SvmSgd
from certsvm.solvers.published.scaled_sgd import (
    ScaledSGD,
    mean_objective,
    scaled_steps,
    search_rate,
)
from certsvm.training.loop import train
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("form", ["compiled", "python"])
@given(
    case=cases(),
    seed=seeds,
    share=st.sampled_from([0.01, 0.3, 0.9]),
    decay=st.sampled_from([0.0, 0.5]),
    radius=st.sampled_from([np.inf, 0.5]),
)
def test_steps(form: str, case: Case, seed: int, share: float, decay: float, radius: float) -> None:
    """Large rates shrink the scale until it is folded into v."""
    problem, rng = case.problem(), np.random.default_rng(seed)
    order = problem.active[rng.integers(problem.m, size=40)]
    eta_0, lambda_ = share / problem.lambda_, problem.lambda_
    w = rng.standard_normal(problem.dimension)
    v, t, errors, loss = w.copy(), 3, 0, 0.0
    patterns, s = case.patterns(), case.row_weights()
    for i, k in enumerate(order):
        eta = eta_0 / (1 + decay * (t + i)) ** 0.5
        product = w @ patterns[k]
        if abs(product - 1) < 1e-6:
            return  # rounding decides this one
        w = (1 - eta * lambda_) * w
        if product <= 1:
            errors += 1
            loss += s[k] * (1 - product)
            w = w + eta * s[k] * patterns[k]
        w = w * min(1.0, radius / max(float(np.linalg.norm(w)), 1e-300))
    function = scaled_steps if form == "compiled" else scaled_steps.py_func
    scale, *sums = function(
        problem.rows.arrays, problem.signed_weights, problem.rows.squared_norms, order, lambda_,
        eta_0, decay, 0.5, radius, t, 1.0, v,
    )  # fmt: skip
    assert 1e-5 <= scale <= 1
    np.testing.assert_allclose(scale * v, w, rtol=1e-6, atol=1e-9 * (1 + np.abs(w).max()))
    np.testing.assert_allclose(sums, [errors, loss], rtol=1e-6, atol=1e-9)


@given(case=cases(), seed=seeds)
def test_the_rate_found_by_trial_is_the_best_of_its_neighbours(case: Case, seed: int) -> None:
    problem = case.problem()
    rows = np.random.default_rng(seed).permutation(problem.active)

    def cost(eta: float) -> float:
        state = ScaledSGD(problem, np.zeros(problem.dimension), 0, eta)
        state.present(rows)
        return mean_objective(problem, rows, state.w)

    eta = search_rate(problem, rows)
    most = 0.5 / problem.lambda_
    assert eta <= most
    assert cost(eta) <= cost(eta / 2) * (1 + 1e-12)
    if 2 * eta <= most:
        assert cost(eta) <= cost(2 * eta) * (1 + 1e-12)


@pytest.mark.parametrize("solver", [NORMA(eta_0=1e9), SvmSgd(eta_0=1e9)], ids=lambda s: s.label)
def test_a_rate_that_reverses_w(solver: Solver) -> None:
    with pytest.raises(ValueError, match=r"is beyond 1/lambda = C m = 40"):
        train(noisy(), solver)
