"""SGD-QN against the same algorithm in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.memory import Problem
from certsvm.solvers import DCD, SGDQN, Options
from certsvm.training.loop import train
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


def quasi_newton(
    case: Case, problem: Problem, order: Any, t0: float, skip: int, passes: int
) -> Any:
    """SGD-QN as its header says, in NumPy."""
    patterns, s, lambda_ = case.patterns(), case.row_weights(), problem.lambda_
    w = np.zeros(problem.rows.dimension)
    B = np.full_like(w, 1 / (lambda_ * t0))
    before, due, since, left = w.copy(), False, 0, skip
    touched = np.zeros(w.size, dtype=bool)
    for _ in range(passes):
        for k in order:
            y = patterns[k]
            since += 1
            margin = w @ y
            if abs(margin - 1) < 1e-9 or abs(before @ y - 1) < 1e-9:
                return None
            if due:
                due = False
                dd = int(margin < 1) - int(before @ y < 1)
                if dd:
                    b = np.full_like(w, lambda_)
                    for j in np.flatnonzero(y):
                        moved = before[j] - w[j]
                        if touched[j] and abs(moved) < 1e-9:
                            # It depends on rounding whether this is zero, and on which side.
                            return None
                        ratio = lambda_ + s[k] * dd * y[j] / moved if moved else np.inf
                        b[j] = np.clip(ratio, 0.1 * lambda_, 100 * lambda_)
                    B = 1 / (1 / B + since * b)
                    since = 0
            if margin < 1:
                w = w + s[k] * B * y
                touched |= y != 0
            left -= 1
            if left == 0:
                left, due, before = skip, True, w.copy()
                w = w - np.minimum(1, skip * lambda_ * B) * w
    return w


@given(case=cases(), seed=seeds, skip=st.integers(1, 25))
def test_sgd_qn(case: Case, seed: int, skip: int) -> None:
    problem = case.problem()
    run = SGDQN(t0=10.0, skip=skip).start(problem, Options(np.random.default_rng(seed)))
    order = problem.active.copy()
    np.random.default_rng(seed).shuffle(order)
    for _ in range(4):
        run.epoch()
    expected = quasi_newton(case, problem, order, 10.0, skip, 4)
    if expected is not None:
        np.testing.assert_allclose(next(run.candidates()), expected, rtol=1e-6, atol=1e-9)


def test_sgd_qn_regularises_though_skip_exceeds_the_rows() -> None:
    """The defect of the published program: its counter started anew with each pass."""
    problem = noisy(100, C=1.0)
    run = SGDQN(t0=1e3, skip=250).start(problem, Options(np.random.default_rng(0)))
    for _ in range(3):
        run.epoch()
    assert run._state._before.any()
    best = train(problem, DCD(), tol=1e-6, seed=0, max_iter=50_000).certificate
    result = train(problem, SGDQN(skip=250, t0=1e3), max_iter=1000, seed=0)
    assert result.certificate.primal <= 1.02 * best.primal


@pytest.mark.parametrize("arguments", [{"t0": 0.0}, {"skip": 0}, {"precision": 16}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"SGDQN: {next(iter(arguments))} must be"):
        SGDQN(**arguments)
