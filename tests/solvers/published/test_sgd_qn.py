"""SGD-QN against the same algorithm in NumPy."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.problems import Problem
from certsvm.solvers import SGDQN, Options
from tests.problems import Case, cases

seeds = st.integers(0, 2**32 - 1)


def quasi_newton(
    case: Case, problem: Problem, order: Any, skip: int, *, restart: bool, clip: bool
) -> Any:
    """Four passes of SGD-QN as its header says, in NumPy; None where rounding decides."""
    patterns, s, lambda_ = case.patterns(), case.row_weights(), problem.lambda_
    w = np.zeros(problem.rows.dimension)
    B = np.full_like(w, 1 / (lambda_ * 10.0))
    before, due, since, left = w.copy(), False, 0, skip
    touched = np.zeros(w.size, dtype=bool)
    for _ in range(4):
        if restart:
            left, due = skip, False
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
                        b[j] = 101 * lambda_
                        if moved:
                            b[j] = lambda_ + s[k] * dd * y[j] / moved
                            b[j] = np.clip(b[j], 0.1 * lambda_, 100 * lambda_)
                    B = 1 / (1 / B + since * b)
                    since = 0
            left -= 1
            if left == 0:
                left, due, before = skip, True, w.copy()
                decay = skip * lambda_ * B
                w = w - (np.minimum(1, decay) if clip else decay) * w
            if margin < 1:
                w = w + s[k] * B * y
                touched |= y != 0
            if not np.abs(w).max(initial=0.0) < 1e9:
                # It diverges, and rounding errors grow with it.
                return None
    return w


@given(case=cases(), seed=seeds, skip=st.integers(1, 25), restart=st.booleans(), clip=st.booleans())
def test_steps_are_those_of_the_header(
    case: Case, seed: int, skip: int, restart: bool, clip: bool
) -> None:
    problem = case.problem()
    solver = SGDQN(t0=10.0, skip=skip, restart_decay=restart, clip_decay=clip)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    order = problem.active.copy()
    np.random.default_rng(seed).shuffle(order)
    expected = quasi_newton(case, problem, order, skip, restart=restart, clip=clip)
    if expected is None:
        return
    for _ in range(4):
        run.epoch()
    np.testing.assert_allclose(next(run.candidates()), expected, rtol=1e-6, atol=1e-9)
