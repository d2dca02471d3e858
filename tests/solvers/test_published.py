"""The solvers of other programs: the same algorithms in NumPy, and what each of them proves."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm import Problem, Rows, train
from certsvm.solvers import MPU, NORMA, OCAS, SGDQN, Options, Pegasos, Solver, SVMperf, SvmSgd
from certsvm.solvers.published.cutting_planes import line_search, maximise
from certsvm.solvers.published.mpu import MPURun
from certsvm.training.settings import SOLVER_FINISHED
from tests.problems import Array, Case, cases, noisy, objective, optimum

seeds = st.integers(0, 2**32 - 1)


@given(n=st.integers(1, 12), d=st.integers(1, 6), seed=seeds, C=st.sampled_from([0.1, 1.0, 100.0]))
def test_the_master_problem_is_solved(n: int, d: int, seed: int, C: float) -> None:
    rng = np.random.default_rng(seed)
    h, g = rng.standard_normal((n, d)), rng.random(n)
    h[n // 2 :] = h[: n - n // 2]  # duplicates make it degenerate
    beta = np.zeros(n)
    beta[0] = C
    maximise(h @ h.T, g, C, 1e-9, beta)
    assert (beta >= 0).all()
    assert beta.sum() == pytest.approx(C, rel=1e-12)
    w = beta @ h
    primal = 0.5 * w @ w + C * (g - h @ w).max()
    dual = beta @ g - 0.5 * w @ w
    assert dual <= primal + 1e-9
    assert primal - dual <= 1e-8


@given(case=cases(), seed=seeds)
def test_the_line_search_is_exact(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = case.problem()
    w, w_new = rng.standard_normal((2, problem.rows.dimension))
    margins = case.patterns() @ np.stack([w, w_new]).T
    margins[case.row_weights() == 0] = 1.0
    t = line_search(problem, w, margins[:, 0], w_new, margins[:, 1])
    assert t >= 0
    best = objective(case, w + t * (w_new - w))
    for other in [*np.linspace(0, 3, 61), t * 0.999, t * 1.001]:
        assert best <= objective(case, w + other * (w_new - w)) * (1 + 1e-9) + 1e-9


def test_the_published_tolerance_bounds_the_objective() -> None:
    best = train(noisy(), OCAS(), tol=1e-8, seed=0).certificate
    for eps in (0.1, 0.01, 0.001):
        result = train(noisy(), SVMperf(eps=eps), tol=0.0, seed=0)
        assert result.reason == SOLVER_FINISHED
        assert result.certificate.primal - best.dual <= 0.1 * 400 * eps
        assert result.certificate.primal - result.certificate.dual <= 0.1 * 400 * eps * (1 + 1e-9)


def start(case: Case, seed: int, **parameters: float) -> MPURun:
    return MPURun(MPU(**parameters), case.problem(), Options(np.random.default_rng(seed)))


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


def quasi_newton(case: Case, order: Any, skip: int, *, restart: bool, clip: bool) -> Any:
    """Four passes of SGD-QN as its header says, in NumPy; None where rounding decides."""
    patterns, s, lambda_ = case.patterns(), case.row_weights(), case.problem().lambda_
    w = np.zeros(patterns.shape[1])
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
def test_steps_of_sgd_qn(case: Case, seed: int, skip: int, restart: bool, clip: bool) -> None:
    problem = case.problem()
    solver = SGDQN(t0=10.0, skip=skip, restart_decay=restart, clip_decay=clip)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    order = problem.active.copy()
    np.random.default_rng(seed).shuffle(order)
    expected = quasi_newton(case, order, skip, restart=restart, clip=clip)
    if expected is None:
        return
    for _ in range(4):
        run.epoch()
    np.testing.assert_allclose(next(run.candidates()), expected, rtol=1e-6, atol=1e-9)
