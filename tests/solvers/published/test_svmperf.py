"""SVM^perf: the published tolerance."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from certsvm.solvers import OCAS, SVMperf
from certsvm.solvers.published.svmperf import SVMperfRun
from certsvm.training.loop import train
from certsvm.training.result import SOLVER_FINISHED
from tests.problems import noisy

seeds = st.integers(0, 2**32 - 1)


def test_the_published_tolerance_bounds_the_objective() -> None:
    best = train(noisy(), OCAS(), tol=1e-8, seed=0).certificate
    for eps in (0.1, 0.01, 0.001):
        result = train(noisy(), SVMperf(eps=eps), tol=0.0, seed=0)
        assert result.reason == SOLVER_FINISHED
        assert result.certificate.primal - best.dual <= 0.1 * 400 * eps
        assert result.certificate.primal - result.certificate.dual <= 0.1 * 400 * eps * (1 + 1e-9)


@pytest.mark.parametrize("eps", [None, 0.001])
def test_a_master_problem_solved_further_costs_rounds(
    eps: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = train(noisy(n_columns=30, C=10.0), SVMperf(eps=eps), tol=1e-3, seed=0)
    monkeypatch.setattr(SVMperfRun, "FRACTION", 0.001)
    tight = train(noisy(n_columns=30, C=10.0), SVMperf(eps=eps), tol=1e-3, seed=0)
    assert loose.epochs < 0.9 * tight.epochs


@pytest.mark.parametrize("arguments", [{"eps": 0.0}, {"eps": -1.0}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"SVMperf: {next(iter(arguments))} must be"):
        SVMperf(**arguments)
