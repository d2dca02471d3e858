"""The master problem over cuts, the search of OCAS and the tolerance of SVM^perf."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import OCAS, SVMperf
from certsvm.solvers.published.cutting_planes import line_search, maximise
from certsvm.training.loop import train
from certsvm.training.settings import SOLVER_FINISHED
from tests.problems import Case, cases, noisy, objective

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
