"""Pegasos, NORMA, SvmSgd and SGD-QN against the same algorithms in plain NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.certificate import PRIMAL_ONLY
from certsvm.certificates.primal import primal_bound
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import DCD, NORMA, SGDQN, SOLVERS, Options, Pegasos, SGDr, Solver, SvmSgd
from certsvm.solvers.shared.scaled_sgd import Rate, ScaledSGD, mean_objective, search_rate
from certsvm.training.loop import train
from tests.problems import Case, cases

PRIMAL: list[Solver] = [
    SGDr(), Pegasos(), Pegasos(project=False), NORMA(), NORMA(rate="constant", eta_0=1e-3),
    SvmSgd(), SvmSgd(precision="single"), SGDQN(), SGDQN(precision="single"),
]  # fmt: skip
primal_only = pytest.mark.parametrize("solver", PRIMAL, ids=lambda solver: solver.label)
seeds = st.integers(0, 2**32 - 1)


def noisy(n_rows: int = 400, C: float = 0.1, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5))
    return Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(n_rows) > 0, 1, -1), C=C)


def test_every_such_solver_is_here() -> None:
    assert {s.name for s in PRIMAL} == {n for n, s in SOLVERS.items() if not s.certifies}


@primal_only
def test_it_converges(solver: Solver) -> None:
    best = train(noisy(), DCD(), tol=1e-6, seed=0, max_iter=10_000).certificate
    result = train(noisy(), solver, max_iter=500, seed=0)
    assert result.certificate.primal <= 1.02 * best.primal
    assert result.certificate.bound == PRIMAL_ONLY
    assert not result.certificate.met


@primal_only
@given(case=cases(), seed=seeds)
def test_nothing_is_ever_nan(solver: Solver, case: Case, seed: int) -> None:
    # The run itself: the training loop would drop what is not finite.
    run = solver.start(case.problem(), Options(np.random.default_rng(seed)))
    for _ in range(5):
        run.epoch()
        for w in run.candidates():
            assert np.isfinite(w).all()
    result = train(case.problem(), solver, max_iter=5, seed=seed)
    assert result.certificate.relative_gap == math.inf


@primal_only
def test_long_rows_and_large_c(solver: Solver) -> None:
    """Where the published Pegasos underflows: R sqrt(C m) in the thousands."""
    rng = np.random.default_rng(0)
    X = 30 * rng.standard_normal((2000, 5))
    problem = Problem(Rows(X), np.where(X[:, 0] + 20 * rng.standard_normal(2000) > 0, 1, -1), C=10)
    assert problem.R * math.sqrt(problem.C * problem.m) > 5000
    if isinstance(solver, NORMA) and solver.eta_0:
        solver = NORMA(rate="constant", eta_0=1e-6)
    run = solver.start(problem, Options(np.random.default_rng(0)))
    objectives = []
    for _ in range(50):
        run.epoch()
        w = next(run.candidates())
        assert np.isfinite(w).all()
        objectives.append(primal_bound(problem, w).value)
    # The rates that are found by trial may start well and stay there; none may diverge.
    assert objectives[-1] <= 2 * min(objectives)
    assert objectives[-1] < objectives[0] or objectives[0] < 3 * problem.C * problem.m


@given(case=cases(), seed=seeds, project=st.booleans())
def test_pegasos(case: Case, seed: int, project: bool) -> None:
    problem = case.problem()
    run = Pegasos(project=project).start(problem, Options(np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    w, t = np.zeros(problem.rows.dimension), 0
    patterns, s = case.patterns(), case.row_weights()
    radius = math.sqrt(case.C * s.sum())
    for _ in range(3):
        for k in problem.active[rng.integers(problem.m, size=problem.m)]:
            t += 1
            short = w @ patterns[k] < 1
            if abs(w @ patterns[k] - 1) < 1e-9:
                return  # rounding decides this one
            w = (1 - 1 / t) * w
            if short:
                w = w + s[k] * patterns[k] / (problem.lambda_ * t)
            if project and np.linalg.norm(w) > radius:
                w *= radius / np.linalg.norm(w)
        run.epoch()
        np.testing.assert_allclose(next(run.candidates()), w, rtol=1e-7, atol=1e-9)


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


@given(case=cases(), seed=seeds)
def test_svmsgd(case: Case, seed: int) -> None:
    problem = case.problem()
    eta_0 = 0.3 / problem.lambda_
    run = SvmSgd(eta_0=eta_0).start(problem, Options(np.random.default_rng(seed)))
    order = problem.active.copy()
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


def test_a_margin_that_adapts_aims_at_its_fraction_of_errors() -> None:
    problem = noisy(2000)
    run = NORMA(nu=0.4, eta_0=0.01).start(problem, Options(np.random.default_rng(0)))
    errors = [(run.epoch().margin_errors or 0) / problem.m for _ in range(200)]
    assert abs(np.mean(errors[-20:]) - 0.4) < 0.05
    result = train(problem, NORMA(nu=0.4, eta_0=0.01), max_iter=50, seed=0)
    assert np.isfinite(result.certificate.primal)


@given(case=cases(), seed=seeds)
def test_the_rate_found_by_trial_is_the_best_of_its_neighbours(case: Case, seed: int) -> None:
    problem = case.problem()
    rows = np.random.default_rng(seed).permutation(problem.active)

    def cost(eta: float) -> float:
        state = ScaledSGD(problem, Rate(eta))
        state.present(rows)
        return mean_objective(problem, rows, state.w)

    eta = search_rate(problem, rows)
    most = 0.5 / problem.lambda_
    assert eta <= most
    assert cost(eta) <= cost(eta / 2) * (1 + 1e-12)
    if 2 * eta <= most:
        assert cost(eta) <= cost(2 * eta) * (1 + 1e-12)


def test_single_precision_is_single() -> None:
    for solver in (SvmSgd(precision="single"), SGDQN(precision="single")):
        run = solver.start(noisy(), Options(np.random.default_rng(0)))
        vector = run._state.v if isinstance(solver, SvmSgd) else run._state.w
        assert vector.dtype == np.float32
        run.epoch()
        assert next(run.candidates()).dtype == np.float64


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (NORMA, {"rate": "linear"}), (NORMA, {"eta_0": 0.0}), (NORMA, {"nu": 1.0}),
        (SvmSgd, {"eta_0": -1.0}), (SvmSgd, {"precision": "half"}), (SGDQN, {"t0": 0.0}),
        (SGDQN, {"skip": 0}), (SGDQN, {"precision": 16}),
    ],
)  # fmt: skip
def test_bad_parameters(make: type[Solver], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{make.__name__}: {next(iter(arguments))} must be"):
        make(**arguments)


@pytest.mark.parametrize("solver", [NORMA(eta_0=1e9), SvmSgd(eta_0=1e9)], ids=lambda s: s.label)
def test_a_rate_that_turns_w_around(solver: Solver) -> None:
    with pytest.raises(ValueError, match=r"is beyond 1/lambda = C m = 40"):
        train(noisy(), solver)
