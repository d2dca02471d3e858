"""SvmSgd against the same algorithm in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import Options, SvmSgd
from tests.problems import Case, cases

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds, shuffle=st.booleans())
def test_svmsgd(case: Case, seed: int, shuffle: bool) -> None:
    problem = case.problem()
    eta_0 = 0.3 / problem.lambda_
    solver = SvmSgd(eta_0=eta_0, shuffle=shuffle)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    order = problem.active.copy()
    if shuffle:
        np.random.default_rng(seed).shuffle(order)
    w, t = np.zeros(problem.rows.dimension), 0
    patterns, s = case.patterns(), case.row_weights()
    for _ in range(3):
        for k in order:
            eta = eta_0 / (1 + problem.lambda_ * eta_0 * t)
            if abs(w @ patterns[k] - 1) < 1e-9:
                return
            error = w @ patterns[k] <= 1
            w = (1 - eta * problem.lambda_) * w + (eta * s[k] * patterns[k] if error else 0)
            t += 1
        run.epoch()
        np.testing.assert_allclose(next(run.candidates()), w, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("arguments", [{"eta_0": -1.0}, {"precision": "half"}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"SvmSgd: {next(iter(arguments))} must be"):
        SvmSgd(**arguments)
