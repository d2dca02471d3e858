"""SGD-r: presentations are counted, and nothing is proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from certsvm.certificates.certificate import PRIMAL_ONLY
from certsvm.solvers import Options, SGDr, SGDs
from certsvm.training.loop import train
from tests.problems import noisy

seeds = st.integers(0, 2**32 - 1)


def test_sgd_r_ends_after_exactly_t_max_presentations() -> None:
    problem = noisy()
    run = SGDr(t_max=1000).start(problem, Options(np.random.default_rng(0)))
    finished = [run.epoch().finished for _ in range(3)]
    assert finished == [False, False, True]
    assert run._state.t == 1000


def test_sgd_r_answers_with_the_last_w_if_published() -> None:
    problem = noisy()
    solver = SGDr(t_max=1000, published=True)
    run = solver.start(problem, Options(np.random.default_rng(3)))
    for _ in range(3):
        run.epoch()
    result = train(problem, solver, seed=3)
    np.testing.assert_array_equal(result.w, next(run.candidates()))


def test_sgd_r_proves_nothing() -> None:
    result = train(noisy(), SGDr(), tol=10.0, max_iter=20, seed=0)
    assert result.certificate.bound == PRIMAL_ONLY
    assert result.certificate.dual == 0.0
    assert not result.certificate.met
    assert result.alpha is None


def test_sgd_r_converges() -> None:
    problem = noisy()
    best = train(problem, SGDs(), tol=1e-3, seed=0, max_iter=10_000)
    assert best.certificate.met
    result = train(problem, SGDr(), max_iter=300, seed=0)
    assert result.certificate.primal <= 1.02 * best.certificate.primal


@pytest.mark.parametrize("arguments", [{"t_max": -5}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"SGDr: {next(iter(arguments))} must be"):
        SGDr(**arguments)
