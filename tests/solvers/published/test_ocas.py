"""OCAS: the exact line search, and an objective that never rises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import OCAS, Options
from certsvm.solvers.published.ocas import line_search
from tests.problems import Case, cases, objective

seeds = st.integers(0, 2**32 - 1)


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


@pytest.mark.parametrize("arguments", [{"mu": 0.0}, {"mu": 1.5}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"OCAS: {next(iter(arguments))} must be"):
        OCAS(**arguments)
