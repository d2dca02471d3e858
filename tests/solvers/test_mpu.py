"""The propositions on MPU that docs/theory.md proves."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import MPU, Options
from certsvm.solvers.mpu import MPURun, learn_and_unlearn
from certsvm.training.loop import train
from certsvm.training.result import SOLVER_FINISHED
from tests.problems import Case, cases, optimum

seeds = st.integers(0, 2**32 - 1)


def start(case: Case, seed: int, **parameters: float) -> MPURun:
    return MPU(**parameters).start(case.problem(), Options(np.random.default_rng(seed)))


def potential(run: MPURun) -> float:
    mass = float(run._problem.weights @ run._counts)
    return (1 + run._xi / 2) * run._b * mass - 0.5 * float(run._a @ run._a)


@given(case=cases(), seed=seeds)
def test_every_update_raises_the_potential(case: Case, seed: int) -> None:
    run = start(case, seed, delta=0.1)
    last = potential(run)
    for _ in range(8):
        updates = run.epoch().margin_errors
        now = potential(run)
        assert now >= last - 1e-9 * abs(last)
        if updates:
            assert now > last
        last = now


@given(case=cases(), seed=seeds, delta=st.sampled_from([0.5, 0.1, 0.01]))
def test_a_pass_without_updates_proves_delta(case: Case, seed: int, delta: float) -> None:
    result = train(case.problem(), MPU(delta=delta), tol=0.0, max_iter=100_000, seed=seed)
    if result.certificate.primal > result.certificate.dual:
        assert result.reason == SOLVER_FINISHED
    assert result.certificate.relative_gap <= delta * (1 + 1e-9)
    low, _ = optimum(case)
    assert result.certificate.primal <= (1 + delta) * low * (1 + 1e-7)


@given(case=cases(dyadic=True), seed=seeds)
def test_the_counts_are_integers_in_their_box_and_make_a(case: Case, seed: int) -> None:
    run = start(case, seed)
    for _ in range(5):
        run.epoch()
        assert (run._counts >= 0).all()
        assert (run._counts <= run._N).all()
        rebuilt = case.patterns().T @ (case.row_weights() * run._counts)
        np.testing.assert_allclose(run._a, rebuilt, rtol=1e-12, atol=1e-9)


@given(case=cases(dyadic=True), seed=seeds)
def test_several_steps_at_once_are_steps_of_one(case: Case, seed: int) -> None:
    """learn_and_unlearn moves a count as far as steps of one would, one after the other."""
    # xi = 1/4 and lambda are powers of two, all else small integers: float64 is exact.
    run = start(case, seed, delta=2 / 3)
    run._xi = 0.25
    run.epoch()
    p, b, xi, N = run._problem, Fraction(run._b), Fraction(run._xi), run._N
    for k in p.active[:3]:
        counts, a = run._counts.copy(), run._a.copy()
        y = [Fraction(float(v)) for v in case.patterns()[k]]
        s = Fraction(float(p.weights[k]))
        q = s * sum((v * v for v in y), Fraction(0))
        margin = sum((Fraction(float(v)) * u for v, u in zip(a, y, strict=True)), Fraction(0))
        expected, steps = int(counts[k]), 0
        while steps < 10_000:
            if margin <= b and expected < N:
                expected, margin = expected + 1, margin + q
            elif margin >= (1 + xi) * b and expected > 0:
                expected, margin = expected - 1, margin - q
            else:
                break
            steps += 1
        learn_and_unlearn(
            p.rows.arrays, p.signed_weights, p.rows.squared_norms, np.array([k]),
            N, run._b, run._xi, counts, a,
        )  # fmt: skip
        if steps < 10_000:
            assert int(counts[k]) == expected


def test_delta_stop_ends_it_sooner() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    problem = Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(300) > 0, 1, -1))
    result = train(problem, MPU(delta=1e-4, delta_stop=0.05), tol=0.0, seed=0)
    assert result.reason == SOLVER_FINISHED
    last = result.history[-1]
    assert last.primal_estimate / last.dual - 1 <= 0.05
    assert result.certificate.relative_gap > 0.001


def test_counts_that_do_not_fit() -> None:
    problem = Problem(Rows(np.full((2, 1), 1e8)), [1, -1], C=1e5)
    with pytest.raises(ValueError, match="would not fit into an integer"):
        train(problem, MPU(delta=1e-9))


@pytest.mark.parametrize("arguments", [{"delta": 0.0}, {"delta_stop": -1.0}, {"precision": "half"}])
def test_bad_parameters(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"MPU: {next(iter(arguments))} must be"):
        MPU(**arguments)
