"""Cuts, and the master problem over them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import Options, SVMperf
from certsvm.solvers.shared.cutting_planes import Master, maximise
from tests.problems import Case, cases, noisy, objective

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


def test_mass_beyond_c_is_taken_back() -> None:
    problem = noisy()
    master = Master(problem, idle_rounds=50, keep_alpha=True)
    master.add_cut(np.zeros(400))
    master.beta[:] = problem.C * (1 + 1e-9)
    point = master.dual("a test")
    assert point.alpha is not None
    assert (point.alpha() <= problem.C).all()
    assert point.alpha_sum <= problem.C * 400


def test_idle_cuts_are_dropped() -> None:
    run = SVMperf(idle_rounds=3).start(noisy(), Options(np.random.default_rng(0), keep_alpha=True))
    for _ in range(60):
        run.epoch()
    assert run._master.g.size < 55
    assert len(run._master._bits) == run._master.g.size
