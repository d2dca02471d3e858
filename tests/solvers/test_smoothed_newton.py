"""Smoothed Newton converges on streams that are hard for it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from certsvm.files.streams import BlockStream
from certsvm.problem.objective import Objective
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import SmoothedNewton
from certsvm.training.loop import train


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_rare_class_on_large_columns(C: float) -> None:
    """The answer is nearly trivial, and most rows are at the edge of the box."""
    rng = np.random.default_rng(0)
    X = np.column_stack([2500 + 300 * rng.standard_normal(20_000), rng.random((20_000, 6)) * 200])
    y = np.where(rng.random(20_000) < 0.01 * (X[:, 1] > 100), 1.0, -1.0)
    cuts = np.linspace(0, 20_000, 6).astype(int)
    blocks = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)]
    problem = StreamedProblem(BlockStream(lambda: blocks), 1, Objective(C=C))
    assert train(problem, SmoothedNewton(), tol=0.01, max_iter=100, seed=0).certificate.met


def test_it_says_that_it_can_go_no_further() -> None:
    """Classes that are separable; ``auto`` goes on with block DCD."""
    X, y = load_digits(return_X_y=True)
    problem = StreamedProblem(BlockStream(lambda: [(X, y == 0)]), 1, Objective(C=100.0))
    result = train(problem, SmoothedNewton(), tol=0.01, seed=0)
    assert (result.reason, result.certificate.met) == ("no further progress is possible", False)
