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


FAR = values(0.1)
SOLVED, UNSOLVED = 0.0, 1e9


def after(schedule: Schedule, steps: int) -> Schedule:
    schedule.steps = steps
    return schedule


def with_steps(schedule: Schedule, *lengths: float) -> Schedule:
    for length in lengths:
        schedule.note_step(length)
    return schedule


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


def test_without_multipliers_it_goes_back_until_it_ends() -> None:
    schedule, moves = Schedule(PARTS), 0
    while not schedule.finished:
        assert after(schedule, MOST_STEPS).judge(UNSOLVED, FAR) is Move.BACK
        moves += 1
        assert schedule.sigma == pytest.approx(FIRST_SIGMA * 4.0 ** (0.5**moves))
    assert math.isclose(4.0 ** (0.5**moves), 1.0, abs_tol=0.01)


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
