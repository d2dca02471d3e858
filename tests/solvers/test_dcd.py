"""DCD: ascent, shrinking, and the tolerance of liblinear."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers import DCD, Options, Start
from certsvm.solvers.dcd import descend
from certsvm.training.loop import train
from certsvm.training.result import SOLVER_FINISHED
from tests.problems import Case, cases, noisy


@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_every_step_raises_the_dual(case: Case, seed: int) -> None:
    run = DCD().start(case.problem(), Options(np.random.default_rng(seed)))
    last = 0.0
    for _ in range(10):
        run.epoch()
        point = run.dual()
        assert point is not None
        value = dual_bound(point, scaled=False)[0].value
        assert value >= last - 1e-12 * (1 + abs(last))
        last = value


@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_compiled_and_python_steps_agree(case: Case, seed: int) -> None:
    p = case.problem()
    order = np.random.default_rng(seed).permutation(p.active)
    results = []
    for function in (descend, descend.py_func):
        alpha, w = np.zeros(p.rows.n_rows), np.zeros(p.rows.dimension)
        sums = function(
            p.loss, p.rows.arrays, p.signed_weights, p.rows.squared_norms, p.C, -np.inf, np.inf,
            order.copy(), alpha, w,
        )  # fmt: skip
        # Not the number of updates: at a tie, one path may make one of 1e-17.
        results.append(np.concatenate([alpha, w, sums[:1], sums[2:]]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9, atol=1e-9)


def test_shrinking_comes_to_the_same_end() -> None:
    results = [
        train(noisy(400, 6, C=1.0), DCD(shrinking=s), tol=1e-7, seed=0, max_iter=50_000)
        for s in (True, False)
    ]
    assert all(result.certificate.met for result in results)
    np.testing.assert_allclose(results[0].w, results[1].w, atol=1e-3)


def test_shrinking_visits_fewer_rows_and_brings_them_back() -> None:
    run = DCD().start(noisy(400, 6, C=1.0), Options(np.random.default_rng(0)))
    sizes = []
    for _ in range(2000):
        run.epoch()
        sizes.append(run._order.size)
    assert min(sizes) < 200
    assert sizes[sizes.index(min(sizes)) :].count(400) > 0


def test_the_tolerance_of_liblinear_ends_it() -> None:
    for seed in range(20):
        p = noisy(60, 6, C=10.0)
        result = train(p, DCD(eps=0.05), tol=0.0, max_iter=50_000, seed=seed, keep_alpha=True)
        assert result.reason == SOLVER_FINISHED
        # Over all rows, not only those that stayed active; the last pass moved w meanwhile.
        G = p.rows.arrays.values @ result.w * p.signed_weights - 1
        assert result.alpha is not None
        projected = np.where(result.alpha <= 0, np.minimum(G, 0), G)
        projected = np.where(result.alpha >= p.C, np.maximum(G, 0), projected)
        assert projected.max() - projected.min() <= 4 * 0.05


def test_alpha_to_start_from_is_used() -> None:
    cold = train(noisy(400, 6, C=1.0), DCD(), tol=1e-6, seed=0, max_iter=50_000, keep_alpha=True)
    warm = train(noisy(400, 6, C=1.0), DCD(), tol=1e-6, seed=1, start=Start(cold.w, 1, cold.alpha))
    assert warm.passes <= 3


@pytest.mark.parametrize("eps", [0.0, -1.0])
def test_bad_parameters(eps: float) -> None:
    with pytest.raises(ValueError, match="DCD: eps must be > 0"):
        DCD(eps=eps)
