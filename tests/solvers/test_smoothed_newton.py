"""Smoothed Newton: what one reading gives, and that it converges on streams of any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import DualPoint, Response, dual_bound
from certsvm.data.streams import BlockStream
from certsvm.parallel import ALONE
from certsvm.problem.memory import Problem
from certsvm.problem.objective import Objective
from certsvm.problem.rows import Rows
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import Options, SmoothedNewton, Start, make_solver
from certsvm.solvers.second_order.line_search import STEPS
from certsvm.solvers.second_order.schedule import PARTS, Schedule
from certsvm.solvers.smoothed_newton import Line, alpha_of, read
from certsvm.training.loop import train
from certsvm.verification.witness import WeightsWitness
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
    line = Line(begin, direction, step=float(rng.choice(STEPS)))
    sigma = share * case.C
    reading = read(problem, line, sigma, options())
    Y, s = case.patterns(), case.row_weights()
    alpha = numpy_alpha(case, line.w, sigma)
    # Steep responses magnify the rounding in the products.
    slack = 1e-12 * (1.0 + share) * (1.0 + case.C)
    np.testing.assert_allclose(reading.point.w, Y.T @ alpha, atol=100 * slack)
    np.testing.assert_allclose(reading.gradient, line.w - Y.T @ alpha, atol=100 * slack)
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
    reading = read(problem, Line(w), share * case.C, options())
    response = reading.point.response
    assert response is not None
    alpha = alpha_of(problem, response, ALONE)
    assert (alpha >= 0).all()
    assert (alpha <= case.C * case.row_weights()).all()
    bound, scale = dual_bound(reading.point)
    exact = exact_dual(case, [Fraction(scale) * Fraction(float(a)) for a in alpha])
    assert abs(Fraction(bound.value) - exact) <= Fraction(bound.rounding)
    # Whoever has the data can compute it, up to the rounding of products.
    witness = WeightsWitness(response.w[np.newaxis], np.array([response.sigma]))
    s = case.row_weights()
    again = witness.alpha(0, case.C * s, s, case.patterns() @ response.w)
    np.testing.assert_allclose(again, alpha, atol=1e-13 * (1 + share) * (1 + case.C))


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


@pytest.mark.parametrize("C", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("order", ORDERS)
def test_a_sample_may_mislead_but_not_for_long(order: str, C: float) -> None:
    """The first block tells nothing of the others, or the wrong thing."""
    X, y = noisy()
    which = ORDERS[order](X, y)
    result = train(
        on_stream(X[which], y[which], 5, C, intercept_scaling=1.0),
        SmoothedNewton(),
        tol=1e-4,
        max_iter=150,
    )
    assert result.certificate.met, result.passes
    truth = train(Problem(Rows(X, intercept_scaling=1.0), y, C=C), make_solver("newton"), tol=1e-6)
    low = truth.certificate.dual - truth.certificate.dual_rounding
    assert result.certificate.primal + result.certificate.primal_rounding >= low
    assert result.certificate.dual - result.certificate.dual_rounding <= truth.certificate.primal


def test_high_accuracy() -> None:
    X, y = noisy()
    result = train(on_stream(X, y, 3), SmoothedNewton(), tol=1e-7, max_iter=200)
    assert result.certificate.met


def test_a_sample_spares_passes() -> None:
    X, y = noisy(20_000)
    with_sample = train(on_stream(X, y, 4), SmoothedNewton(), tol=1e-3)
    without = train(on_stream(X, y, 4), SmoothedNewton(samples=False), tol=1e-3)
    assert with_sample.certificate.met
    assert without.certificate.met
    assert with_sample.passes < without.passes


def test_newton_on_a_stream_is_the_smoothed_one() -> None:
    X, y = noisy(500)
    problem = on_stream(X, y, 3)
    ours = train(problem, make_solver("newton"), tol=1e-4)
    theirs = train(problem, SmoothedNewton(), tol=1e-4)
    assert ours.w.tobytes() == theirs.w.tobytes()
    assert ours.solver == theirs.solver == "smoothed-newton"
    assert ours.response is not None
    assert isinstance(ours.response, Response)


def test_nothing_is_kept_for_the_rows_unless_asked_for() -> None:
    X, y = noisy(500)
    problem = on_stream(X, y, 3)
    assert train(problem, SmoothedNewton()).alpha is None
    result = train(problem, SmoothedNewton(), keep_alpha=True)
    assert result.alpha is not None
    assert result.alpha.shape == (500,)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_any_start_will_do(size: float) -> None:
    X, y = noisy(1000)
    start = Start(size * np.random.default_rng(1).standard_normal(6))
    result = train(on_stream(X, y, 3), SmoothedNewton(), tol=1e-3, start=start, max_iter=200)
    assert result.certificate.met


def test_too_many_columns() -> None:
    X, y = noisy(50)
    with pytest.raises(ValueError, match=r"7 columns .* of size 7, more than max_size = 6"):
        train(on_stream(X, y, 2, intercept_scaling=1.0), SmoothedNewton(max_size=6))
    assert train(on_stream(X, y, 2), SmoothedNewton(max_size=6)).certificate.met
    with pytest.raises(ValueError, match="max_size must be > 0"):
        SmoothedNewton(max_size=0)


def test_half_a_pass_has_no_dual_point() -> None:
    X, y = noisy(60)
    blocks = [(X[:30], y[:30]), (X[30:], y[30:])]
    broken: list[bool] = []

    def source() -> Any:
        yield blocks[0]
        if broken:
            raise KeyboardInterrupt
        yield blocks[1]

    run = SmoothedNewton().start(StreamedProblem(BlockStream(source), 1), options())
    run.epoch()
    assert isinstance(run.dual(), DualPoint)
    broken.append(True)
    with pytest.raises(KeyboardInterrupt):
        run.epoch()
    assert run.dual() is None
    assert run.primal() is None
    assert list(run.candidates()) == []


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_step_to_the_next_problem_is_exact_while_the_same_rows_are_free(form: Any) -> None:
    rng = np.random.default_rng(0)
    # Rows so short that all are free in both problems.
    X = 0.01 * rng.standard_normal((300, 7)) * (rng.random((300, 7)) < 0.5)
    problem = Problem(Rows(form(X)), np.where(rng.random(300) < 0.5, 1.0, -1.0), C=3.0)
    start = Start(rng.standard_normal(7))
    options = Options(np.random.default_rng(0), start=start)
    run = SmoothedNewton(samples=False).start(problem, options)
    run._schedule = Schedule(PARTS, sigma=0.05)
    while run._schedule.sigma == 0.05:
        run.epoch()
    assert run._schedule.sigma < 0.5
    run.epoch()
    assert run._latest is not None
    assert run._latest.sums.free == 300
    assert np.linalg.norm(run._latest.gradient) < 1e-12


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
