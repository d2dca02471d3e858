"""Pegasos against the same algorithm in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import Options, Pegasos, Start
from tests.problems import Case, cases, noisy

seeds = st.integers(0, 2**32 - 1)


@given(case=cases(), seed=seeds, project=st.booleans(), first_t=st.integers(1, 3))
def test_pegasos(case: Case, seed: int, project: bool, first_t: int) -> None:
    problem = case.problem()
    solver = Pegasos(project=project, first_t=first_t)
    run = solver.start(problem, Options(np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    w, t = np.zeros(problem.rows.dimension), first_t - 1
    patterns, s = case.patterns(), case.row_weights()
    radius = math.sqrt(case.C * s.sum())
    for _ in range(3):
        for k in problem.active[rng.integers(problem.m, size=problem.m)]:
            t += 1
            short = w @ patterns[k] <= 1
            if abs(w @ patterns[k] - 1) < 1e-9:
                return  # rounding decides this one
            w = (1 - 1 / t) * w
            if short:
                w = w + s[k] * patterns[k] / (problem.lambda_ * t)
            if project and np.linalg.norm(w) > radius:
                w *= radius / np.linalg.norm(w)
        run.epoch()
        np.testing.assert_allclose(next(run.candidates()), w, rtol=1e-7, atol=1e-9)


def test_w_stays_in_the_ball() -> None:
    problem = noisy(C=10.0)
    run = Pegasos().start(problem, Options(np.random.default_rng(0)))
    for _ in range(5):
        run.epoch()
        w = next(run.candidates())
        assert np.linalg.norm(w) <= math.sqrt(problem.C * problem.m) * (1 + 1e-9)


def test_the_first_step_forgets_its_start() -> None:
    """A start of no epochs: 1 - 1/1 is zero."""
    runs = [
        Pegasos().start(noisy(), Options(np.random.default_rng(0), start=start))
        for start in (None, Start(np.full(5, 0.1), epochs=0))
    ]
    first = [run.epoch().margin_errors for run in runs]
    assert first[0] == first[1]
    np.testing.assert_array_equal(*(next(run.candidates()) for run in runs))


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="Pegasos: first_t must be > 0, got 0"):
        Pegasos(first_t=0)
