"""Balls around the exact optimum, and bounds on errors."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Certificate, Problem, Rows, train
from certsvm.certificates.dual import DualVector
from certsvm.certificates.held_out_error import ChordBalls, HeldOutRows, OptimumBall
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import LOSSES, loss_named
from certsvm.solvers import DCD, Auto
from certsvm.training.settings import Result


def fit(problem: Problem, tol: float, seed: int = 0) -> Result:
    solver = DCD() if tol > 1e-6 else Auto()
    return train(problem, solver, tol=tol, seed=seed, keep_vector=True, max_iter=3000)


def problem(seed: int, C: float, loss: str = "hinge") -> Problem:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 30)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d)) * rng.choice([0.0, 1.0, 3.0], (n, d))
    labels = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    weights[0] = 1.0
    rows = Rows(X, intercept_scaling=float(rng.choice([0.0, 1.0])))
    return Problem(rows, labels, C=C, weights=weights, loss=loss_named(loss))


@given(
    st.integers(0, 10**6),
    st.floats(-2, 1),
    st.floats(0.01, 1.5),
    st.floats(0, 1),
    st.sampled_from([1e-8, 1e-4, 1e-2, 0.3]),
    st.sampled_from(list(LOSSES)),
)
def test_the_optimum_between_two_fits_is_in_the_ball(
    seed: int, low: float, step: float, t: float, tol: float, loss: str
) -> None:
    C_1, C_2 = 10.0**low, 10.0 ** (low + step)
    balls = []
    for C in (C_1, C_2):
        result = fit(problem(seed, C, loss), tol)
        balls.append(OptimumBall.of(result.certificate, result.w, result.vector))
    exact = fit(problem(seed, min(max((1 - t) * C_1 + t * C_2, C_1), C_2), loss), 1e-13)
    # The reference itself is known this well only.
    slack = math.sqrt(max(0.0, 2 * (exact.certificate.gap + exact.certificate.primal_rounding)))
    slack = slack + math.sqrt(2 * exact.certificate.dual_rounding) + 1e-7
    centre = (1 - t) * balls[0].centre + t * balls[1].centre
    radius = ChordBalls(*balls).radii(np.array([t]), np.array([t]))[0]
    assert np.linalg.norm(exact.w - centre) <= radius + slack


def test_a_contradiction_proves_nothing() -> None:
    w = np.ones(2)
    ball = OptimumBall.of(Certificate(1.0, 2.0, target=0.1), w, DualVector(w, 0.0))
    assert math.isinf(ball.square)
    ball = OptimumBall.of(Certificate(math.inf, 2.0, target=0.1), w, DualVector(w, 0.0))
    assert math.isinf(ball.square)
    rows = HeldOutRows(np.ones(2), np.ones(2, np.int64), np.array([0, 1]), np.ones(2))
    balls = [ChordBalls(ball, ball)]
    low, high = rows.error_bounds(balls, np.ones((1, 2)), np.ones((1, 2)), np.array([1.0, 1.0]))
    assert (low[0], high[0]) == (0.0, 1.0)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_bounds_hold_for_all_scores_in_the_intervals(seed: int, n_problems: int) -> None:
    """Compare with the errors of many centres and directions."""
    rng = np.random.default_rng(seed)
    n_problems = 1 if n_problems == 2 else n_problems
    n, d = 12, 3
    X = rng.standard_normal((n, d)) * rng.choice([0.0, 1.0], (n, 1), p=[0.2, 0.8])
    truth = rng.integers(-1, max(2, n_problems), n)
    weights = rng.choice([0.0, 1.0, 2.5], n)
    weights[0] = 1.0
    squares = np.einsum("ij,ij->i", X, X)
    norms = np.sqrt(squares) * (1.0 + 1e-14)
    rows = HeldOutRows(norms, np.full(n, d) * (squares > 0), truth, weights)
    C_1, C_2 = 1.0, 2.0
    balls, centres = [], []
    for _ in range(n_problems):
        c = rng.standard_normal((2, d))
        r = 0.05 * rng.random(2)
        ends = [
            OptimumBall(C, c[k], 0.0, float(r[k]), Bound(float(-k), 0.0))
            for k, C in enumerate((C_1, C_2))
        ]
        balls.append(ChordBalls(*ends))
        centres.append(c)
    first, last = (np.array([X @ c[k] for c in centres]) for k in (0, 1))
    edges = np.array([1.0, 1.2, 1.7, 2.0])
    low, high = rows.error_bounds(balls, first, last, edges)
    for _ in range(40):
        p = int(rng.integers(3))
        t = rng.uniform(edges[p], edges[p + 1]) - 1.0
        scores = []
        for chord, c in zip(balls, centres, strict=True):
            direction = rng.standard_normal(d)
            direction /= np.linalg.norm(direction)
            radius = chord.radii(np.array([t]), np.array([t]))[0]
            scores.append(X @ ((1 - t) * c[0] + t * c[1] + radius * direction))
        table = np.array(scores)
        error = rows.error(table.argmax(0) if len(table) > 1 else table[0] > 0.0)
        assert low[p] <= error + 1e-12
        assert error <= high[p] + 1e-12


def test_rows_of_zeros_and_unknown_classes() -> None:
    norms = np.array([0.0, 0.0, 1.0])
    rows = HeldOutRows(norms, np.array([0, 0, 1]), np.array([0, 1, -1]), np.ones(3))
    unknown = OptimumBall(1.0, np.zeros(1), 0.0, math.inf, Bound(0.0, 0.0))
    nothing = np.zeros((1, 3))
    edges = np.array([1.0, 1.0])
    low, high = rows.error_bounds([ChordBalls(unknown, unknown)], nothing, nothing, edges)
    assert low[0] == pytest.approx(2 / 3)
    assert high[0] == pytest.approx(2 / 3)
