"""Cuts, and the master problem over them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import OCAS, Options, SVMperf
from certsvm.solvers.published import cutting_planes
from certsvm.solvers.published.cutting_planes import Master, maximise
from tests.problems import Array, Case, cases, noisy, objective

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
    master = Master(problem, keep_alpha=False)
    for _ in range(3):
        master.add_cut(master.margins(rng.standard_normal(problem.rows.dimension)))
    for _ in range(5):
        w = rng.standard_normal(problem.rows.dimension)
        risk = (objective(case, w) - 0.5 * w @ w) / case.C
        assert (master.g - master.h @ w).max() <= risk * (1 + 1e-9) + 1e-9


def gap(master: Master, C: float) -> float:
    """The duality gap of the master problem at its last solution, with all cuts."""
    w = master.beta @ master.h
    return float(w @ w + C * max(0.0, (master.g - master.h @ w).max()) - master.beta @ master.g)


@pytest.mark.parametrize("solver", [OCAS(), SVMperf(), SVMperf(eps=1e-6)], ids=lambda s: s.label)
@given(case=cases(), seed=seeds)
def test_the_master_problem_is_solved_to_a_fraction_of_the_gap(
    solver: OCAS | SVMperf, case: Case, seed: int
) -> None:
    run = solver.start(case.problem(), Options(np.random.default_rng(seed)))
    master, scale = run._master, case.C * run._problem.weight_sum
    to_close, lower, solve = scale, 0.0, master.solve

    def checked(accuracy: float) -> Array:
        assert accuracy == pytest.approx(run.FRACTION * to_close, rel=1e-6, abs=1e-9 * scale)
        # The last cut has made the gap of the master problem as large as the one to be closed.
        assert gap(master, case.C) >= to_close - 1e-9 * scale
        w = solve(accuracy)
        assert gap(master, case.C) <= max(accuracy, 1e-9 * scale)
        return w

    master.solve = checked  # type: ignore[method-assign]
    for _ in range(6):
        run.epoch()
        w = master.beta @ master.h
        lower = max(lower, float(master.beta @ master.g - 0.5 * w @ w))
        to_close = min(to_close, objective(case, next(run.candidates())) - lower)


def test_mass_beyond_c_is_taken_back() -> None:
    problem = noisy()
    master = Master(problem, keep_alpha=True)
    master.add_cut(np.zeros(400))
    master.beta[:] = problem.C * (1 + 1e-9)
    point = master.dual()
    assert point.alpha is not None
    assert (point.alpha() <= problem.C).all()
    assert point.alpha_sum <= problem.C * 400


def test_idle_cuts_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting_planes, "_IDLE_ROUNDS", 3)
    run = SVMperf().start(noisy(), Options(np.random.default_rng(0), keep_alpha=True))
    for _ in range(60):
        run.epoch()
    assert run._master.g.size < 55
    assert len(run._master._bits) == run._master.g.size
