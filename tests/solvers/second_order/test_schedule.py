"""The stages of the second-order method: which move follows which result."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.best import BestValues
from certsvm.kernels.losses import HINGE, SQUARED_HINGE
from certsvm.solvers.second_order.schedule import (
    FIRST_SIGMA,
    LARGEST_SIGMA,
    MEMORY,
    MOST_STEPS,
    PARTS,
    STEEP_STEPS,
    TENSORS,
    Move,
    Rules,
    Schedule,
    rules_for,
)

FORMS = pytest.mark.parametrize("rules", [MEMORY, PARTS, TENSORS])
WITH_MULTIPLIERS = pytest.mark.parametrize("rules", [MEMORY, TENSORS])


def values(relative_gap: float = 0.1) -> BestValues:
    best = BestValues()
    best.offer(100.0 * (1.0 + relative_gap), 100.0)
    return best


FAR, NEAR = values(0.1), values(0.01)
SOLVED, UNSOLVED = 0.0, 1e9


def after(schedule: Schedule, steps: int) -> Schedule:
    schedule.steps = steps
    return schedule


def with_steps(schedule: Schedule, *lengths: float) -> Schedule:
    for length in lengths:
        schedule.note_step(length)
    return schedule


@FORMS
def test_a_problem_is_solved_when_the_gradient_is_small_beside_the_gap(rules: Rules) -> None:
    edge = 2.0 * rules.accuracy * FAR.gap
    assert Schedule(rules).judge(1.001 * edge, FAR) is Move.STEP
    assert Schedule(rules).judge(0.999 * edge, FAR) is Move.STEEPER


judgements = st.tuples(
    st.floats(0.0, 1e12), st.floats(1e-6, 1e6), st.floats(0.0, 1.0), st.floats(0.0, 1.0)
)


@FORMS
@given(trail=st.lists(judgements, max_size=60))
def test_sigma_stays_within_range_and_smoothing_never_returns(
    rules: Rules, trail: list[tuple[float, float, float, float]]
) -> None:
    schedule, was_smoothing = Schedule(rules), True
    for square, gap, filled, length in trail:
        move = schedule.judge(square, values(gap), filled=filled)
        assert 1e-40 < schedule.sigma <= LARGEST_SIGMA
        assert was_smoothing or not schedule.smoothing
        assert rules.multipliers or schedule.smoothing
        assert move is Move.STEP or schedule.steps == 0
        was_smoothing = schedule.smoothing
        if rules.multipliers:
            schedule.note_step(length)
        else:
            schedule.steps += 1


@WITH_MULTIPLIERS
def test_smoothing_has_three_stages_far_from_the_optimum_and_one_near_it(rules: Rules) -> None:
    schedule = Schedule(rules)
    for stage in range(1, 4):
        assert after(schedule, 5).judge(SOLVED, FAR) is Move.STEEPER
        assert schedule.sigma == pytest.approx(FIRST_SIGMA * 4.0**stage)
    assert schedule.judge(SOLVED, FAR) is Move.MULTIPLIERS
    assert schedule.sigma == pytest.approx(FIRST_SIGMA * 4.0**3 * 3.0)
    assert Schedule(rules).judge(SOLVED, NEAR) is Move.MULTIPLIERS


@WITH_MULTIPLIERS
def test_nearly_separable_classes(rules: Rules) -> None:
    schedule = Schedule(rules)
    assert schedule.judge(SOLVED, FAR, filled=0.019) is Move.FROM_ZERO
    # Only smoothing is of no use there; multipliers are.
    assert schedule.judge(SOLVED, FAR, filled=0.0) is Move.MULTIPLIERS
    assert Schedule(rules).judge(SOLVED, FAR, filled=0.021) is Move.STEEPER


@WITH_MULTIPLIERS
def test_a_problem_that_takes_too_long_is_left(rules: Rules) -> None:
    schedule = after(Schedule(rules), MOST_STEPS - 1)
    assert schedule.judge(UNSOLVED, FAR) is Move.STEP
    assert after(schedule, MOST_STEPS).judge(UNSOLVED, FAR) is Move.STEEPER
    # If it is too steep, sooner, and for the first sigma.
    steep = after(Schedule(rules, sigma=50.0), STEEP_STEPS)
    assert steep.judge(UNSOLVED, FAR) is Move.SMOOTHER
    assert steep.sigma == FIRST_SIGMA
    # A step of no length ends a problem, too.
    stuck = with_steps(Schedule(rules, smoothing=False), 0.0)
    assert stuck.judge(UNSOLVED, FAR) is Move.MULTIPLIERS


@WITH_MULTIPLIERS
def test_after_tiny_steps_sigma_is_much_smaller(rules: Rules) -> None:
    schedule = with_steps(Schedule(rules), 1e-5, 1e-5, 1.0, 1e-5)
    assert schedule.judge(UNSOLVED, FAR, filled=0.1) is Move.STEP
    # Smoothing about the middle of the box is for large sigma.
    assert with_steps(schedule, 1e-5).judge(UNSOLVED, FAR, filled=0.1) is Move.FROM_ZERO
    assert schedule.sigma < 0.1 * FIRST_SIGMA
    assert with_steps(schedule, *[1e-5] * 4).judge(UNSOLVED, FAR) is Move.FLATTER
    # From then on, it grows by more after a problem that took few steps.
    grown = []
    for steps in (1, 5, 20):
        before = schedule.sigma
        assert after(schedule, steps).judge(SOLVED, FAR) is Move.MULTIPLIERS
        grown.append(schedule.sigma / before)
    assert grown[0] > grown[1] > grown[2] == 1.0
    # Many steps far from the optimum are tiny ones.
    slow = after(Schedule(rules), 16)
    assert slow.judge(UNSOLVED, values(1e3), filled=0.1) is Move.FROM_ZERO


def test_on_tensors_free_support_vectors_limit_growth() -> None:
    for free_per_column, growth in ((0.1, 1.5), (3.0, 2.0), (100.0, 3.0)):
        schedule = after(Schedule(TENSORS, smoothing=False), 2)
        schedule.judge(SOLVED, FAR, free_per_column=free_per_column)
        assert schedule.sigma == pytest.approx(growth * FIRST_SIGMA)


def test_without_multipliers_growth_follows_the_number_of_steps() -> None:
    schedule, growths = Schedule(PARTS), []
    for steps in (4, 2, 1, 1, 6, 7, 7, 7, 7):
        sigma = after(schedule, steps).sigma
        assert schedule.judge(SOLVED, NEAR, filled=0.0) is Move.STEEPER
        growths.append(schedule.sigma / sigma)
    assert growths == pytest.approx([4.0, 8.0, 16.0, 16.0, 16.0, 8.0, 4.0, 2.0, 2.0])


def test_without_multipliers_it_goes_back_until_it_ends() -> None:
    schedule, moves = Schedule(PARTS), 0
    while not schedule.finished:
        assert after(schedule, MOST_STEPS).judge(UNSOLVED, FAR) is Move.BACK
        moves += 1
        assert schedule.sigma == pytest.approx(FIRST_SIGMA * 4.0 ** (0.5**moves))
    assert math.isclose(4.0 ** (0.5**moves), 1.0, abs_tol=0.01)


def test_a_misleading_sample() -> None:
    schedule = Schedule(PARTS, sigma=50.0, sample_primal=FAR.primal / 1.6)
    assert schedule.judge(SOLVED, FAR) is Move.SMOOTHER
    good = Schedule(PARTS, sigma=50.0, sample_primal=FAR.primal / 1.4)
    assert good.judge(UNSOLVED, FAR) is Move.STEP
    # Only the first look counts.
    assert good.judge(UNSOLVED, values(10.0)) is Move.STEP


@WITH_MULTIPLIERS
def test_from_a_sample_to_all_rows(rules: Rules) -> None:
    sample = after(Schedule(rules, sigma=7.0, smoothing=False), 9)
    schedule = sample.on_all_rows(filled=0.5)
    assert (schedule.sigma, schedule.smoothing, schedule.steps) == (7.0, True, 0)
    assert not sample.on_all_rows(filled=0.01).smoothing


@pytest.mark.parametrize(("known", "sigma"), [(None, 0.45), (1.0, 0.45), (100.0, 10.0)])
def test_a_warm_start_is_smoother_than_where_the_last_run_ended(
    known: float | None, sigma: float
) -> None:
    assert Schedule.warm(MEMORY, known, smoothing=False).sigma == pytest.approx(sigma)


def test_a_smooth_loss_has_one_problem_which_ends_when_the_gap_no_longer_falls() -> None:
    assert rules_for(HINGE, PARTS) is PARTS
    assert rules_for(SQUARED_HINGE, PARTS) == replace(PARTS, stages=False)
    schedule, best, gap = Schedule(rules_for(SQUARED_HINGE, PARTS)), BestValues(), 100.0
    for _ in range(200):
        # Slowly, but it falls.
        gap *= 0.999
        best.offer(1.0 + gap, 1.0)
        assert schedule.judge(SOLVED, best) is Move.STEP
        assert not schedule.finished
    for _ in range(40):
        assert schedule.judge(UNSOLVED, best) is Move.STEP
    assert schedule.finished
