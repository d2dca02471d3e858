"""The stages as a state machine: every transition, in each of the forms."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from certsvm.certificates.best import BestValues
from certsvm.kernels.losses import HINGE, SQUARED_HINGE
from certsvm.solvers.second_order.schedule import (
    FIRST_SIGMA,
    LARGEST_SIGMA,
    MEMORY,
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


FAR, NEAR = values(0.1), values(0.01)
SOLVED, UNSOLVED = 0.0, 1e9


def after(schedule: Schedule, steps: int) -> Schedule:
    schedule.steps = steps
    return schedule


@FORMS
def test_a_problem_is_solved_when_the_gradient_is_small_beside_the_gap(rules: Rules) -> None:
    edge = 2.0 * rules.accuracy * FAR.gap
    assert Schedule(rules).judge(1.001 * edge, FAR) is Move.STEP
    assert Schedule(rules).judge(0.999 * edge, FAR) is Move.STEEPER


@FORMS
def test_before_there_is_a_gap_all_counts_as_solved(rules: Rules) -> None:
    assert Schedule(rules).judge(UNSOLVED, BestValues()) is Move.STEEPER


@FORMS
def test_a_step_changes_nothing(rules: Rules) -> None:
    schedule = after(Schedule(rules), 3)
    assert schedule.judge(UNSOLVED, FAR) is Move.STEP
    assert (schedule.sigma, schedule.smoothing, schedule.steps) == (FIRST_SIGMA, True, 3)


@WITH_MULTIPLIERS
def test_smoothing_has_three_stages_far_from_the_optimum(rules: Rules) -> None:
    schedule = Schedule(rules)
    for stage in range(1, 4):
        after(schedule, 5)
        assert schedule.judge(SOLVED, FAR) is Move.STEEPER
        assert schedule.sigma == pytest.approx(FIRST_SIGMA * 4.0**stage)
        assert schedule.steps == 0
    assert schedule.judge(SOLVED, FAR) is Move.MULTIPLIERS
    assert not schedule.smoothing
    assert schedule.sigma == pytest.approx(FIRST_SIGMA * 4.0**3 * 3.0)
    assert schedule.judge(SOLVED, FAR) is Move.MULTIPLIERS


@WITH_MULTIPLIERS
def test_smoothing_ends_near_the_optimum(rules: Rules) -> None:
    schedule = Schedule(rules)
    assert schedule.judge(SOLVED, NEAR) is Move.MULTIPLIERS
    assert schedule.sigma == pytest.approx(3.0 * FIRST_SIGMA)


@WITH_MULTIPLIERS
def test_nearly_separable_classes(rules: Rules) -> None:
    schedule = Schedule(rules)
    assert schedule.judge(SOLVED, FAR, filled=0.019) is Move.FROM_ZERO
    assert not schedule.smoothing
    # Only smoothing is of no use there; multipliers are.
    assert schedule.judge(SOLVED, FAR, filled=0.0) is Move.MULTIPLIERS
    assert Schedule(rules).judge(SOLVED, FAR, filled=0.021) is Move.STEEPER


@WITH_MULTIPLIERS
def test_a_problem_that_takes_too_long_is_left(rules: Rules) -> None:
    schedule = after(Schedule(rules), rules.most_steps - 1)
    assert schedule.judge(UNSOLVED, FAR) is Move.STEP
    schedule.steps += 1
    assert schedule.judge(UNSOLVED, FAR) is Move.STEEPER
    multipliers = after(Schedule(rules, smoothing=False), rules.most_steps)
    assert multipliers.judge(UNSOLVED, FAR) is Move.MULTIPLIERS


@WITH_MULTIPLIERS
def test_too_steep_while_smoothing(rules: Rules) -> None:
    schedule = after(Schedule(rules, sigma=50.0), rules.steep_steps - 1)
    assert schedule.judge(UNSOLVED, FAR) is Move.STEP
    schedule.steps += 1
    assert schedule.judge(UNSOLVED, FAR) is Move.SMOOTHER
    assert (schedule.sigma, schedule.steps, schedule.smoothing) == (FIRST_SIGMA, 0, True)
    # The first sigma is not too steep, and with multipliers none is.
    assert after(schedule, rules.steep_steps).judge(UNSOLVED, FAR) is Move.STEP
    multipliers = after(Schedule(rules, sigma=50.0, smoothing=False), rules.steep_steps)
    assert multipliers.judge(UNSOLVED, FAR) is Move.STEP
    # What is solved is not too steep.
    solved = after(Schedule(rules, sigma=50.0), rules.steep_steps)
    assert solved.judge(SOLVED, FAR) is Move.STEEPER


@FORMS
def test_sigma_stays_finite(rules: Rules) -> None:
    schedule = Schedule(rules)
    for _ in range(80):
        schedule.judge(SOLVED, FAR)
    assert schedule.sigma == LARGEST_SIGMA


@pytest.mark.parametrize(
    ("steps", "free_per_column", "growth"),
    [(2, 0.1, 1.5), (2, 3.0, 2.0), (2, 100.0, 3.0), (1, 0.1, 3.0)],
)
def test_on_tensors_free_support_vectors_limit_growth(
    steps: int, free_per_column: float, growth: float
) -> None:
    schedule = after(Schedule(TENSORS, smoothing=False), steps)
    schedule.judge(SOLVED, FAR, free_per_column=free_per_column)
    assert schedule.sigma == pytest.approx(growth * FIRST_SIGMA)
    in_memory = after(Schedule(MEMORY, smoothing=False), steps)
    in_memory.judge(SOLVED, FAR, free_per_column=free_per_column)
    assert in_memory.sigma == pytest.approx(3.0 * FIRST_SIGMA)


class TestWithoutMultipliers:
    """Smoothing alone, with a growth that is adapted."""

    def growth(self, schedule: Schedule, steps: int) -> float:
        sigma = after(schedule, steps).sigma
        assert schedule.judge(SOLVED, NEAR, filled=0.0) is Move.STEEPER
        return schedule.sigma / sigma

    def test_growth_follows_the_number_of_steps(self) -> None:
        schedule = Schedule(PARTS)
        growths = [self.growth(schedule, steps) for steps in (4, 2, 1, 1, 6, 7, 7, 7, 7)]
        assert growths == pytest.approx([4.0, 8.0, 16.0, 16.0, 16.0, 8.0, 4.0, 2.0, 2.0])

    def test_back_to_the_last_problem_that_was_solved(self) -> None:
        schedule = Schedule(PARTS)
        for _ in range(2):
            self.growth(schedule, 4)
        solved = 4.0 * FIRST_SIGMA
        for growth in (2.0, math.sqrt(2.0)):
            after(schedule, PARTS.most_steps - 1)
            assert schedule.judge(UNSOLVED, FAR) is Move.STEP
            schedule.steps += 1
            assert schedule.judge(UNSOLVED, FAR) is Move.BACK
            assert schedule.sigma == pytest.approx(growth * solved)
            assert schedule.steps == 0

    def test_many_steps_do_not_raise_a_growth_that_has_become_small(self) -> None:
        schedule = Schedule(PARTS)
        for _ in range(2):
            after(schedule, PARTS.most_steps).judge(UNSOLVED, FAR)
        assert self.growth(schedule, 20) == pytest.approx(math.sqrt(2.0))

    def test_the_end(self) -> None:
        schedule = Schedule(PARTS)
        moves = 0
        while not schedule.finished:
            assert after(schedule, PARTS.most_steps).judge(UNSOLVED, FAR) is Move.BACK
            moves += 1
        assert 4.0 ** (0.5**moves) < 1.01 <= 4.0 ** (0.5 ** (moves - 1))

    def test_a_misleading_sample(self) -> None:
        schedule = Schedule(PARTS, sigma=50.0, sample_primal=FAR.primal / 1.6)
        assert schedule.judge(SOLVED, FAR) is Move.SMOOTHER
        assert schedule.sigma == FIRST_SIGMA
        good = Schedule(PARTS, sigma=50.0, sample_primal=FAR.primal / 1.4)
        assert good.judge(SOLVED, FAR) is Move.STEEPER

    def test_only_the_first_look_says_that_a_sample_misleads(self) -> None:
        schedule = Schedule(PARTS, sigma=50.0, sample_primal=FAR.primal / 1.4)
        schedule.judge(UNSOLVED, FAR)
        assert schedule.judge(UNSOLVED, values(10.0)) is Move.STEP

    def test_the_sigma_of_a_sample_may_be_too_steep_once(self) -> None:
        schedule = Schedule(PARTS, sigma=50.0, sample_primal=FAR.primal)
        assert after(schedule, PARTS.steep_steps - 1).judge(UNSOLVED, FAR) is Move.STEP
        schedule.steps += 1
        assert schedule.judge(UNSOLVED, FAR) is Move.SMOOTHER
        assert schedule.judge(SOLVED, FAR) is Move.STEEPER
        assert after(schedule, PARTS.steep_steps).judge(UNSOLVED, FAR) is Move.STEP

    def test_without_a_sample_no_sigma_is_too_steep_to_begin_with(self) -> None:
        schedule = after(Schedule(PARTS, sigma=50.0), PARTS.steep_steps)
        assert schedule.judge(UNSOLVED, FAR) is Move.STEP


@WITH_MULTIPLIERS
def test_from_a_sample_to_all_rows(rules: Rules) -> None:
    sample = after(Schedule(rules, sigma=7.0, smoothing=False), 9)
    schedule = sample.on_all_rows(filled=0.5)
    assert (schedule.sigma, schedule.smoothing, schedule.steps) == (7.0, True, 0)
    assert not sample.on_all_rows(filled=0.01).smoothing


@FORMS
@pytest.mark.parametrize(("known", "sigma"), [(None, 0.45), (1.0, 0.45), (100.0, 10.0)])
def test_a_warm_start_is_smoother_than_where_the_last_run_ended(
    rules: Rules, known: float | None, sigma: float
) -> None:
    schedule = Schedule.warm(rules, known, smoothing=False)
    assert schedule.sigma == pytest.approx(sigma)
    assert not schedule.smoothing


def with_steps(schedule: Schedule, *lengths: float) -> Schedule:
    for length in lengths:
        schedule.note_step(length)
    return schedule


@WITH_MULTIPLIERS
def test_after_tiny_steps_sigma_is_much_smaller(rules: Rules) -> None:
    schedule = with_steps(Schedule(rules), 1e-5, 1e-5, 1.0, 1e-5)
    assert schedule.judge(UNSOLVED, FAR, filled=0.1) is Move.STEP
    with_steps(schedule, 1e-5)
    # Smoothing about the middle of the box is for large sigma.
    assert schedule.judge(UNSOLVED, FAR, filled=0.1) is Move.FROM_ZERO
    assert not schedule.smoothing
    assert schedule.sigma < 0.1 * FIRST_SIGMA
    assert schedule.steps == 0
    sigma = schedule.sigma
    with_steps(schedule, *[1e-5] * 4)
    assert schedule.judge(UNSOLVED, FAR) is Move.FLATTER
    assert schedule.sigma < 0.1 * sigma
    full = with_steps(Schedule(rules), *[1e-5] * 4)
    assert full.judge(UNSOLVED, FAR, filled=0.9) is Move.MULTIPLIERS


def test_a_steep_sigma_gives_way_to_the_first_one_at_once() -> None:
    schedule = with_steps(Schedule(MEMORY, sigma=1e4), *[1e-5] * 4)
    assert schedule.judge(UNSOLVED, FAR) is Move.SMOOTHER
    assert (schedule.sigma, schedule.steps) == (FIRST_SIGMA, 0)


@WITH_MULTIPLIERS
def test_many_steps_matter_far_from_the_optimum(rules: Rules) -> None:
    for gap, move in ((1e3, Move.FROM_ZERO), (0.1, Move.STEP)):
        schedule = after(Schedule(rules), 16)
        assert schedule.judge(UNSOLVED, values(gap), filled=0.1) is move


def test_after_that_growth_follows_the_steps() -> None:
    grown = []
    for steps in (1, 5, 20):
        schedule = with_steps(Schedule(MEMORY, smoothing=False), *[1e-5] * 4)
        assert schedule.judge(UNSOLVED, FAR) is Move.FLATTER
        before = schedule.sigma
        assert after(schedule, steps).judge(SOLVED, FAR) is Move.MULTIPLIERS
        grown.append(schedule.sigma / before)
    assert grown[0] > grown[1] > grown[2] == 1.0


def test_sigma_does_not_vanish() -> None:
    schedule = Schedule(MEMORY, smoothing=False)
    for _ in range(50):
        with_steps(schedule, *[1e-5] * 4).judge(UNSOLVED, FAR)
    assert schedule.sigma > 1e-40


def test_no_step_ends_a_problem() -> None:
    schedule = with_steps(Schedule(MEMORY, smoothing=False), 1.0)
    assert schedule.judge(UNSOLVED, FAR) is Move.STEP
    assert with_steps(schedule, 0.0).judge(UNSOLVED, FAR) is Move.MULTIPLIERS


def test_a_cautious_sample_makes_the_rest_cautious() -> None:
    schedule = with_steps(Schedule(MEMORY), *[1e-5] * 4)
    schedule.judge(UNSOLVED, FAR, filled=0.9)
    rest = schedule.on_all_rows(0.9)
    assert not rest.smoothing
    assert rest.sigma == schedule.sigma
    after(rest, 1).judge(SOLVED, FAR)
    assert rest.sigma == pytest.approx(10.0 * schedule.sigma)


def test_a_smooth_loss_has_one_problem() -> None:
    for rules in (MEMORY, PARTS, TENSORS):
        assert rules_for(HINGE, rules) is rules
        assert rules_for(SQUARED_HINGE, rules) == replace(rules, stages=False)
    schedule = Schedule(rules_for(SQUARED_HINGE, PARTS))
    best = BestValues()
    for gap in (100.0, 10.0, 1e-9):
        best.offer(1.0 + gap, 1.0)
        # Solved or not, far or near: there is no other problem.
        assert schedule.judge(0.0, best) is Move.STEP
        assert schedule.judge(1e9, best) is Move.STEP
    assert (schedule.sigma, schedule.smoothing) == (FIRST_SIGMA, True)
    assert not schedule.finished


def test_without_stages_it_ends_when_the_gap_no_longer_falls() -> None:
    schedule, best = Schedule(rules_for(SQUARED_HINGE, PARTS)), BestValues()
    gap = 100.0
    for _ in range(200):
        # Slowly, but it falls.
        gap *= 0.999
        best.offer(1.0 + gap, 1.0)
        schedule.judge(1.0, best)
        assert not schedule.finished
    for _ in range(40):
        schedule.judge(1.0, best)
    assert schedule.finished
