"""Smoothed Newton: what one reading gives, and that it converges on streams of any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.files.streams import BlockStream
from certsvm.parallel import ALONE
from certsvm.problem.objective import Objective
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import Options, SmoothedNewton, Start
from certsvm.solvers.second_order.smoothing import STEPS
from certsvm.solvers.smoothed_newton import alpha_of, read
from certsvm.training.loop import train
from tests.problems import Case, cases, exact_dual

seeds = st.integers(0, 2**32 - 1)


def options(seed: int = 0) -> Options:
    return Options(np.random.default_rng(seed), keep_alpha=True)


def numpy_alpha(case: Case, w: Any, sigma: float) -> Any:
    s = case.row_weights()
    value = 0.5 * case.C * s + sigma * s * (1.0 - case.patterns() @ w)
    return np.clip(value, 0.0, case.C * s)


@given(cases(), seeds, st.sampled_from([1e-3, 0.45, 30.0, 1e6, 1e12]))
def test_a_reading_against_numpy(case: Case, seed: int, share: float) -> None:
    problem, rng = case.problem(), np.random.default_rng(seed)
    begin, direction = rng.standard_normal((2, problem.dimension))
    end, sigma = begin + direction, share * case.C
    reading = read(problem, end, direction, sigma, options())
    Y, s = case.patterns(), case.row_weights()
    alpha = numpy_alpha(case, end, sigma)
    # Steep responses magnify the rounding in the products.
    slack = 1e-12 * (1.0 + share) * (1.0 + case.C)
    np.testing.assert_allclose(reading.point.w, Y.T @ alpha, atol=100 * slack)
    np.testing.assert_allclose(reading.gradient, end - Y.T @ alpha, atol=100 * slack)
    if share < 1e3:
        free = (alpha > 0) & (alpha < case.C * s)
        expected = sigma * (Y[free].T * s[free]) @ Y[free]
        np.testing.assert_allclose(np.tril(reading.sums.gram), np.tril(expected), atol=1e-9)
        assert reading.slopes is not None
        for step, slope in zip(STEPS, reading.slopes, strict=True):
            w = begin + step * direction
            gradient = w - Y.T @ numpy_alpha(case, w, sigma)
            assert slope == pytest.approx(gradient @ direction, abs=1e-8 * (1 + case.C))


@given(cases(), seeds, st.sampled_from([0.0, 1e-3, 0.45, 1e6, 1e12]))
def test_the_response_is_feasible_and_gives_the_bound(case: Case, seed: int, share: float) -> None:
    problem = case.problem()
    w = 3 * np.random.default_rng(seed).standard_normal(problem.dimension)
    reading = read(problem, w, None, share * case.C, options())
    response = reading.point.response
    assert response is not None
    alpha = alpha_of(problem, response, ALONE)
    assert (alpha >= 0).all()
    assert (alpha <= case.C * case.row_weights()).all()
    bound, scale = dual_bound(reading.point)
    exact = exact_dual(case, [Fraction(scale) * Fraction(float(a)) for a in alpha])
    assert abs(Fraction(bound.value) - exact) <= Fraction(bound.rounding)


def noisy(n: int = 4000, d: int = 6, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)


def on_stream(X: Any, y: Any, n_blocks: int, C: float = 1.0, **more: Any) -> StreamedProblem:
    edges = np.arange(n_blocks + 1) * len(y) // n_blocks
    blocks = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(edges)]
    return StreamedProblem(BlockStream(lambda: blocks, **more), 1, Objective(C=C))


ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "random": lambda X, y: np.arange(len(y)),
    "by label": lambda X, y: np.argsort(y, kind="stable"),
    "by label, backwards": lambda X, y: np.argsort(-y, kind="stable"),
    "by a column": lambda X, y: np.argsort(X[:, 0]),
    "by length": lambda X, y: np.argsort((X**2).sum(axis=1)),
}


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_any_start_will_do(size: float) -> None:
    X, y = noisy(1000)
    start = Start(size * np.random.default_rng(1).standard_normal(6))
    result = train(on_stream(X, y, 3), SmoothedNewton(), tol=1e-3, start=start, max_iter=200)
    assert result.certificate.met


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
