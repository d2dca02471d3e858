"""When J is computed."""

from __future__ import annotations

import numpy as np
import pytest

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import SGDs
from certsvm.training.loop import train


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 20))
    labels = np.where(X[:, 0] + rng.standard_normal(5000) > 0, 1, -1)
    return Problem(Rows(X), labels, C=0.01)


def test_exact_computations_are_few(problem: Problem) -> None:
    result = train(problem, SGDs(), tol=1e-4, seed=0, max_iter=500)
    computed = np.isfinite(result.history["primal"]).sum()
    assert computed <= 40
