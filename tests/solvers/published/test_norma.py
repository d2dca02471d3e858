"""NORMA against the same algorithm in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import NORMA, Options
from certsvm.training.loop import train
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds, sqrt=st.booleans(), nu=st.sampled_from([None, 0.3]))
def test_norma(case: Case, seed: int, sqrt: bool, nu: float | None) -> None:
    problem = case.problem()
    eta_0 = 0.3 / problem.lambda_
    solver = NORMA(rate="sqrt" if sqrt else "constant", eta_0=eta_0, nu=nu)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    order = problem.active.copy()
    rng.shuffle(order)
    w, rho, t = np.zeros(problem.rows.dimension), 1.0, 0
    patterns, s = case.patterns(), case.row_weights()
    for _ in range(3):
        rng.shuffle(order)
        for k in order:
            eta = eta_0 / math.sqrt(1 + t) if sqrt else eta_0
            if abs(w @ patterns[k] - rho) < 1e-9 and t > 0:
                return
            error = w @ patterns[k] <= rho
            w = (1 - eta * problem.lambda_) * w + (eta * s[k] * patterns[k] if error else 0)
            if nu is not None:
                rho += eta * s[k] * (nu - (1 if error else 0))
            t += 1
        run.epoch()
        if rho > 0:
            np.testing.assert_allclose(next(run.candidates()), w / rho, rtol=1e-6, atol=1e-9)
        else:
            assert list(run.candidates()) == []


def test_a_margin_that_adapts_aims_at_its_fraction_of_errors() -> None:
    problem = noisy(2000)
    run = NORMA(nu=0.4, eta_0=0.01).start(problem, Options(np.random.default_rng(0)))
    errors = [(run.epoch().margin_errors or 0) / problem.m for _ in range(200)]
    assert abs(np.mean(errors[-20:]) - 0.4) < 0.05
    result = train(problem, NORMA(nu=0.4, eta_0=0.01), max_iter=50, seed=0)
    assert np.isfinite(result.certificate.primal)


@pytest.mark.parametrize("arguments", [{"rate": "linear"}, {"eta_0": 0.0}, {"nu": 1.0}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"NORMA: {next(iter(arguments))} must be"):
        NORMA(**arguments)
