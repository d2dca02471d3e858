"""SVM^perf: the published tolerance."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from certsvm.solvers import OCAS, SVMperf
from certsvm.training.loop import train
from certsvm.training.result import SOLVER_FINISHED
from tests.problems import noisy

seeds = st.integers(0, 2**32 - 1)


def test_the_published_tolerance_bounds_the_objective() -> None:
    best = train(noisy(), OCAS(), tol=1e-8, seed=0).certificate
    for eps in (0.1, 0.01, 0.001):
        result = train(noisy(), SVMperf(eps=eps), tol=0.0, seed=0)
        assert result.reason == SOLVER_FINISHED
        assert result.certificate.primal - best.dual <= 0.1 * 400 * eps * 1.1


@pytest.mark.parametrize("arguments", [{"eps": 0.0}, {"idle_rounds": 0}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"SVMperf: {next(iter(arguments))} must be"):
        SVMperf(**arguments)
