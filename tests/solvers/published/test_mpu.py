"""MPU: what a pass without updates proves, and the updates of a plain program."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows, train
from certsvm.solvers import MPU, Options
from certsvm.solvers.published.mpu import MPURun
from certsvm.training.settings import SOLVER_FINISHED
from tests.problems import Case, cases, optimum

seeds = st.integers(0, 2**32 - 1)


def start(case: Case, seed: int, **parameters: float) -> MPURun:
    return MPU(**parameters).start(case.problem(), Options(np.random.default_rng(seed)))


@given(case=cases(), seed=seeds, delta=st.sampled_from([0.5, 0.1, 0.01]))
def test_a_pass_without_updates_proves_delta(case: Case, seed: int, delta: float) -> None:
    result = train(case.problem(), MPU(delta=delta), tol=0.0, max_iter=100_000, seed=seed)
    if result.certificate.primal > result.certificate.dual:
        assert result.reason == SOLVER_FINISHED
    assert result.certificate.relative_gap <= delta * (1 + 1e-9)
    low, _ = optimum(case)
    assert result.certificate.primal <= (1 + delta) * low * (1 + 1e-7)


@given(case=cases(dyadic=True), seed=seeds)
def test_a_plain_program_makes_the_same_updates(case: Case, seed: int) -> None:
    run = start(case, seed, delta=2 / 3)
    # xi is a power of two, and the estimate, which rounds, never says that the gap is small.
    run._xi, run._near = 0.25, -1.0
    rng = np.random.default_rng(seed)
    patterns, weights = case.patterns(), case.row_weights()
    b, N = run._b, run._N
    counts = np.zeros(weights.size, dtype=np.int64)
    everything = np.flatnonzero(weights > 0)
    order, shorter = everything, 0
    for _ in range(30):
        shorter += order.size < everything.size
        rng.shuffle(order := order.copy())
        stay, updates = [], 0
        for k in order:
            margin = float(patterns[k] @ (patterns.T @ (weights * counts)))
            q, before = float(weights[k] * patterns[k] @ patterns[k]), counts[k]
            while margin <= b and counts[k] < N:
                counts[k] += 1
                margin += q
            while margin >= 1.25 * b and counts[k] > 0 and counts[k] <= before:
                counts[k] -= 1
                margin -= q
            updates += counts[k] != before
            if counts[k] != before or 0 < counts[k] < N:
                stay.append(k)
        done = updates == 0 and order.size == everything.size
        order = np.array(stay, dtype=np.int64)
        if updates == 0 or shorter == 20:
            order, shorter = everything, 0
        epoch = run.epoch()
        np.testing.assert_array_equal(run._counts, counts)
        np.testing.assert_array_equal(run._order, order)
        assert (epoch.updates, epoch.finished) == (updates, done)
        if done:
            break


def test_counts_that_do_not_fit() -> None:
    problem = Problem(Rows(np.full((2, 1), 1e8)), [1, -1], C=1e5)
    with pytest.raises(ValueError, match="would not fit into an integer"):
        train(problem, MPU(delta=1e-9))
