"""Pegasos, NORMA and SvmSgd against the same algorithms in NumPy, and the rate found by trial."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm import Problem, train
from certsvm.solvers import NORMA, Options, Pegasos, Solver, SvmSgd
from tests.problems import Array, Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


class Plain:
    """Plain SGD, with ``rate(t)`` at step t = 0, 1, ..."""

    def __init__(self, case: Case, problem: Problem, rate: Callable[[int], float]) -> None:
        self.patterns, self.weights = case.patterns(), case.row_weights()
        self.lambda_, self.rate = problem.lambda_, rate
        self.w, self.t = np.zeros(problem.dimension), 0

    def present(self, rows: Array, radius: float = math.inf) -> Array:
        for k in rows:
            eta, product = self.rate(self.t), self.w @ self.patterns[k]
            # Rounding decides these.
            assume(abs(product - 1) > 1e-6)
            self.w = (1 - eta * self.lambda_) * self.w
            if product <= 1:
                self.w = self.w + eta * self.weights[k] * self.patterns[k]
            self.w = self.w * min(1.0, radius / max(float(np.linalg.norm(self.w)), 1e-300))
            self.t += 1
        return self.w


def assert_close(ours: Array, theirs: Array) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9 * (1 + np.abs(theirs).max()))


@given(case=cases(), seed=seeds, project=st.booleans(), first_t=st.integers(1, 3))
def test_pegasos(case: Case, seed: int, project: bool, first_t: int) -> None:
    problem, rng = case.problem(), np.random.default_rng(seed)
    solver = Pegasos(project=project, first_t=first_t)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    plain = Plain(case, problem, lambda t: 1 / (problem.lambda_ * (t + first_t)))
    radius = math.sqrt(case.C * case.row_weights().sum()) if project else math.inf
    for _ in range(3):
        run.epoch()
        rows = problem.active[rng.integers(problem.m, size=problem.m)]
        assert_close(next(run.candidates()), plain.present(rows, radius))


@given(case=cases(), seed=seeds, sqrt=st.booleans(), share=st.sampled_from([0.01, 0.3, 0.9]))
def test_norma(case: Case, seed: int, sqrt: bool, share: float) -> None:
    """Large rates shrink the scale until it is folded into v."""
    problem, rng = case.problem(), np.random.default_rng(seed)
    eta_0 = share / problem.lambda_
    solver = NORMA(rate="sqrt" if sqrt else "constant", eta_0=eta_0)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    plain = Plain(case, problem, lambda t: eta_0 / math.sqrt(1 + t) if sqrt else eta_0)
    order = problem.active.copy()
    rng.shuffle(order)
    ends: list[Array] = []
    for passes in range(1, 4):
        rng.shuffle(order)
        ends.append(plain.present(order))
        run.epoch()
        # The mean begins anew after one pass and after two.
        mean = np.mean(ends[1:] if passes == 3 else ends[-1:], axis=0)
        for ours, theirs in zip(run.candidates(), (ends[-1], mean), strict=True):
            assert_close(ours, theirs)


@given(case=cases(), seed=seeds, shuffle=st.booleans())
def test_svmsgd(case: Case, seed: int, shuffle: bool) -> None:
    problem = case.problem()
    eta_0 = 0.3 / problem.lambda_
    solver = SvmSgd(eta_0=eta_0, shuffle=shuffle)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    plain = Plain(case, problem, lambda t: eta_0 / (1 + problem.lambda_ * eta_0 * t))
    order = problem.active.copy()
    if shuffle:
        np.random.default_rng(seed).shuffle(order)
    for _ in range(3):
        run.epoch()
        assert_close(next(run.candidates()), plain.present(order))


@pytest.mark.parametrize("solver", [NORMA(eta_0=1e9), SvmSgd(eta_0=1e9)], ids=lambda s: s.label)
def test_a_rate_that_reverses_w(solver: Solver) -> None:
    with pytest.raises(ValueError, match=r"is beyond 1/lambda = C m = 40"):
        train(noisy(), solver)
