"""NORMA against the same algorithm in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import NORMA, Options
from tests.problems import Array, Case, cases

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds, sqrt=st.booleans())
def test_norma(case: Case, seed: int, sqrt: bool) -> None:
    problem = case.problem()
    eta_0 = 0.3 / problem.lambda_
    solver = NORMA(rate="sqrt" if sqrt else "constant", eta_0=eta_0)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    order = problem.active.copy()
    rng.shuffle(order)
    w, t = np.zeros(problem.rows.dimension), 0
    ends: list[Array] = []
    patterns, s = case.patterns(), case.row_weights()
    for _ in range(3):
        rng.shuffle(order)
        for k in order:
            eta = eta_0 / math.sqrt(1 + t) if sqrt else eta_0
            if abs(w @ patterns[k] - 1) < 1e-9:
                return
            error = w @ patterns[k] <= 1
            w = (1 - eta * problem.lambda_) * w + (eta * s[k] * patterns[k] if error else 0)
            t += 1
        run.epoch()
        # The mean begins anew after one pass and after two.
        ends = [*ends, w] if len(ends) == 1 and t == 3 * problem.m else [w]
        for ours, theirs in zip(run.candidates(), (w, np.mean(ends, axis=0)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("arguments", [{"rate": "linear"}, {"eta_0": 0.0}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"NORMA: {next(iter(arguments))} must be"):
        NORMA(**arguments)
