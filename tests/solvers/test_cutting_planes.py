"""OCAS and SVM^perf, the master problem and the line search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import OCAS, Options, SVMperf
from certsvm.solvers.ocas import line_search
from certsvm.solvers.shared.cutting_planes import Master, maximise
from certsvm.training.loop import SOLVER_FINISHED, train
from tests.problems import Case, cases, objective

seeds = st.integers(0, 2**32 - 1)


@given(n=st.integers(1, 12), d=st.integers(1, 6), seed=seeds, C=st.sampled_from([0.1, 1.0, 100.0]))
def test_the_master_problem_is_solved(n: int, d: int, seed: int, C: float) -> None:
    rng = np.random.default_rng(seed)
    h, g = rng.standard_normal((n, d)), rng.random(n)
    h[n // 2 :] = h[: n - n // 2]  # duplicates make it degenerate
    beta = np.zeros(n)
    maximise(h @ h.T, g, C, 1e-9, beta)
    assert (beta >= 0).all()
    assert beta.sum() <= C * (1 + 1e-12)
    w = beta @ h
    primal = 0.5 * w @ w + C * max(0.0, (g - h @ w).max())
    dual = beta @ g - 0.5 * w @ w
    assert dual <= primal + 1e-9
    assert primal - dual <= 1e-8


@given(case=cases(), seed=seeds)
def test_cuts_bound_the_risk_from_below(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = case.problem()
    master = Master(problem, idle_rounds=50, keep_alpha=False)
    for _ in range(3):
        master.add_cut(master.margins(rng.standard_normal(problem.rows.dimension)))
    for _ in range(5):
        w = rng.standard_normal(problem.rows.dimension)
        risk = (objective(case, w) - 0.5 * w @ w) / case.C
        assert master.risk(w) <= risk * (1 + 1e-9) + 1e-9


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


@given(case=cases(), seed=seeds)
def test_ocas_never_gets_worse(case: Case, seed: int) -> None:
    run = OCAS().start(case.problem(), Options(np.random.default_rng(seed)))
    last = np.inf
    for _ in range(6):
        run.epoch()
        now = objective(case, next(run.candidates()))
        assert now <= last * (1 + 1e-9) + 1e-12
        last = now


def noisy() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6))
    return Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(500) > 0, 1, -1), C=0.1)


def test_the_published_tolerance_bounds_the_objective() -> None:
    best = train(noisy(), OCAS(), tol=1e-8, seed=0).certificate
    for eps in (0.1, 0.01, 0.001):
        result = train(noisy(), SVMperf(eps=eps), tol=0.0, seed=0)
        assert result.reason == SOLVER_FINISHED
        assert result.certificate.primal - best.dual <= 0.1 * 500 * eps * 1.1


def test_mass_beyond_c_is_taken_back() -> None:
    problem = noisy()
    master = Master(problem, idle_rounds=50, keep_alpha=True)
    master.add_cut(np.zeros(500))
    master.beta[:] = problem.C * (1 + 1e-9)
    point = master.dual("a test")
    assert point.alpha is not None
    assert (point.alpha() <= problem.C).all()
    assert point.alpha_sum <= problem.C * 500


def test_idle_cuts_are_dropped() -> None:
    run = SVMperf(idle_rounds=3).start(noisy(), Options(np.random.default_rng(0), keep_alpha=True))
    for _ in range(60):
        run.epoch()
    assert run._master.g.size < 55
    assert len(run._master._bits) == run._master.g.size


@pytest.mark.parametrize(
    ("make", "arguments"),
    [(OCAS, {"mu": 0.0}), (OCAS, {"idle_rounds": 0}), (SVMperf, {"eps": 0.0})],
)
def test_bad_parameters(make: type, arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{make.__name__}: {next(iter(arguments))} must be"):
        make(**arguments)
