"""The propositions on MPU that docs/theory.md proves."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.primal import primal_bound
from certsvm.problem import part as part_module
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import MPU, Options
from certsvm.solvers.published.mpu import MPURun, learn_and_unlearn
from certsvm.training.loop import train
from certsvm.training.result import SOLVER_FINISHED
from tests.problems import Case, cases, noisy, optimum

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
        updates = run.epoch().updates
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
            p.rows.arrays, p.signed_weights, p.rows.squared_norms, N, run._b, run._xi,
            np.array([k]), counts, a,
        )  # fmt: skip
        if steps < 10_000:
            assert int(counts[k]) == expected


@given(case=cases(dyadic=True), seed=seeds)
def test_a_plain_program_makes_the_same_updates(case: Case, seed: int) -> None:
    run = start(case, seed, delta=2 / 3)
    # xi is a power of two, and the estimate, which rounds, never says that the gap is small.
    run._xi, run._near = 0.25, -1.0
    rng = np.random.default_rng(seed)
    patterns, weights = case.patterns(), case.row_weights()
    b, N = run._b, run._N
    counts = np.zeros(weights.size, dtype=np.int64)
    everything = np.flatnonzero(weights > 0)
    order, shorter = everything, 0
    for _ in range(30):
        shorter += order.size < everything.size
        rng.shuffle(order := order.copy())
        stay, updates = [], 0
        for k in order:
            margin = float(patterns[k] @ (patterns.T @ (weights * counts)))
            q, before = float(weights[k] * patterns[k] @ patterns[k]), counts[k]
            while margin <= b and counts[k] < N:
                counts[k] += 1
                margin += q
            while margin >= 1.25 * b and counts[k] > 0 and counts[k] <= before:
                counts[k] -= 1
                margin -= q
            updates += counts[k] != before
            if counts[k] != before or 0 < counts[k] < N:
                stay.append(k)
        done = updates == 0 and order.size == everything.size
        order = np.array(stay, dtype=np.int64)
        if updates == 0 or shorter == 20:
            order, shorter = everything, 0
        epoch = run.epoch()
        np.testing.assert_array_equal(run._counts, counts)
        np.testing.assert_array_equal(run._order, order)
        assert (epoch.updates, epoch.finished) == (updates, done)
        if done:
            break


@given(case=cases(), seed=seeds, delta=st.sampled_from([0.1, 0.01]))
def test_rows_that_left_are_at_an_end_of_their_box(case: Case, seed: int, delta: float) -> None:
    run = start(case, seed, delta=delta)
    in_succession = 0
    for _ in range(60):
        before = run._order.size
        epoch = run.epoch()
        left = np.setdiff1d(run._problem.active, run._order)
        assert np.isin(run._counts[left], [0, run._N]).all()
        in_succession = in_succession + 1 if left.size else 0
        assert in_succession <= 20
        if epoch.finished:
            assert before == run._problem.m
            break


def test_most_passes_present_few_rows() -> None:
    run = MPU(delta=1e-3).start(noisy(400, 6, C=1.0), Options(np.random.default_rng(0), target=0.0))
    sizes, finished = [], False
    while not finished:
        sizes.append(run._order.size)
        finished = run.epoch().finished
    assert np.median(sizes) < 100
    assert sizes.count(400) > 1
    assert sizes[-1] == 400


def test_a_pass_in_pieces_is_the_same_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, pieces = (
        MPU().start(noisy(400, 6, C=1.0), Options(np.random.default_rng(0))) for _ in range(2)
    )
    for _ in range(10):
        whole.epoch()
    monkeypatch.setattr(part_module, "_VALUES_PER_CALL", 6 * 7)
    for _ in range(10):
        pieces.epoch()
    assert 0 < whole._order.size < 400
    np.testing.assert_array_equal(pieces._order, whole._order)
    np.testing.assert_array_equal(pieces._counts, whole._counts)


def test_a_small_estimate_of_the_gap_activates_all_rows() -> None:
    run = MPU(delta_stop=0.1).start(noisy(400, 6, C=1.0), Options(np.random.default_rng(0)))
    epoch = run.epoch()
    while not epoch.finished:
        point = run.dual()
        assert point is not None
        assert epoch.primal_estimate is not None
        bound = point.alpha_sum - 0.5 * float(point.w @ point.w)
        if bound > 0 and epoch.primal_estimate / bound - 1 <= 0.09:
            assert run._order.size == 400
        epoch = run.epoch()


def test_the_estimate_counts_the_losses_of_rows_that_left() -> None:
    problem = noisy(400, 6, C=1.0)
    run = MPU(delta=1e-4).start(problem, Options(np.random.default_rng(0), target=0.0))
    seen = 0
    while not (epoch := run.epoch()).finished:
        # The first passes move w too far for the losses of rows that left to stay true.
        if run._active_passes > 2 and run._passes > 60:
            seen += 1
            J = primal_bound(problem, next(run.candidates())).value
            assert epoch.primal_estimate == pytest.approx(J, rel=0.2)
    assert seen > 10


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
