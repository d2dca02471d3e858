"""The parts of a run, and the state that takes them up again."""

import copy
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import make_solver
from certsvm.solvers.base import Options
from certsvm.storage.state import StateError
from certsvm.training.result import NOT_KEPT, OUT_OF_TIME, TARGET_MET
from certsvm.training.trainer import Trainer


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    return Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(200) > 0, 1, -1), C=0.1)


def trainer(problem: Problem, solver: str = "dcd", seed: int = 0) -> Trainer:
    options = Options(np.random.default_rng(seed), target=0.0)
    return Trainer(problem, make_solver(solver), options, time.perf_counter())


def make_passes(trainer: Trainer, n: int) -> None:
    for _ in range(n):
        epoch = trainer.epoch()
        trainer.record(epoch, trainer.checks.after(trainer.passes + 1, epoch, last=True))


@pytest.mark.parametrize("solver", ["dcd", "sgd-s", "newton"])
def test_a_loaded_trainer_continues_with_the_same_bits(problem: Problem, solver: str) -> None:
    whole, cut, resumed = (trainer(problem, solver, seed) for seed in (0, 0, 1))
    make_passes(whole, 5)
    make_passes(cut, 3)
    resumed.load_state_dict(copy.deepcopy(cut.state_dict()))
    assert resumed.passes == 3
    make_passes(resumed, 2)
    assert resumed.best.certificate() == whole.best.certificate()
    np.testing.assert_array_equal(resumed.best.w, whole.best.w)
    for column in ("passes", "epochs", "updates", "primal", "dual"):
        np.testing.assert_array_equal(resumed.history[column], whole.history[column])


def test_time_before_a_checkpoint_counts(problem: Problem) -> None:
    resumed = trainer(problem)
    resumed.seconds = 1000.0
    first = resumed.seconds
    assert first >= 1000.0
    assert resumed.seconds >= first


def test_a_pass_is_complete_once_it_is_recorded(problem: Problem) -> None:
    run = trainer(problem)
    assert run.between_passes
    epoch = run.epoch()
    assert not run.between_passes
    run.record(epoch, 3.0)
    assert run.between_passes
    record = run.progress().record
    assert (record.passes, record.primal, record.updates) == (1, 3.0, epoch.updates)


def test_callbacks_get_the_best_weight_vector_or_a_candidate(problem: Problem) -> None:
    run = trainer(problem)
    run.record(run.epoch(), np.nan)
    assert run.best.w is None
    np.testing.assert_array_equal(run.progress().w(), next(run.run.candidates()))
    run.checks.now()
    w = run.progress().w()
    np.testing.assert_array_equal(w, run.best.w)
    w[:] = 0.0
    assert run.best.w.any()


def set_in(state: dict[str, Any], place: str, value: Any) -> None:
    *parents, name = place.split(".")
    for parent in parents:
        state = state[parent]
    state[name] = value


@pytest.mark.parametrize(
    ("place", "factor", "message"),
    [
        ("best.best.bound.value", 1.01, "says that J is"),
        ("best.best.bound.value", 0.99, "says that J is"),
        ("best.best.w", 1.1, "says that J is"),
        ("best.dual.bound.value", 2.0, "has a dual bound"),
        ("checks.computed_after", 2, "after a pass that was not made"),
    ],
)
def test_false_claims_are_refused(
    problem: Problem, place: str, factor: float, message: str
) -> None:
    run = trainer(problem)
    make_passes(run, 3)
    state = copy.deepcopy(run.state_dict())
    value: Any = state
    for name in place.split("."):
        value = value[name]
    set_in(state, place, factor * value)
    other = trainer(problem)
    with pytest.raises(StateError, match=message):
        other.load_state_dict(state)
    assert other.passes == 0


def test_a_dual_bound_is_compared_with_J_at_zero_if_there_is_no_w(problem: Problem) -> None:
    run = trainer(problem)
    run.record(run.epoch(), np.nan)
    state = copy.deepcopy(run.state_dict())
    at_zero = problem.C * problem.weight_sum
    set_in(state, "best.dual.bound.value", 1.01 * at_zero)
    with pytest.raises(StateError, match="has a dual bound"):
        trainer(problem).load_state_dict(state)
    set_in(state, "best.dual.bound.value", 0.99 * at_zero)
    trainer(problem).load_state_dict(state)


def test_a_target_is_met_only_if_the_bounds_meet_it(problem: Problem) -> None:
    """A loaded state that is finished ends training at once, whatever its certificate says."""
    run = trainer(problem)
    make_passes(run, 3)
    assert not run.best.certificate().met
    run.finished = TARGET_MET
    with pytest.raises(StateError, match="says that the target is met"):
        trainer(problem).load_state_dict(copy.deepcopy(run.state_dict()))
    other = trainer(problem)
    other.best.target = 10.0
    other.load_state_dict(copy.deepcopy(run.state_dict()))
    assert other.finished == TARGET_MET


def test_the_result(problem: Problem) -> None:
    run = trainer(problem)
    make_passes(run, 4)
    result = run.result(TARGET_MET)
    assert (result.passes, result.solver, result.reason) == (4, "dcd", TARGET_MET)
    assert result.w is run.best.w
    assert result.certificate == run.best.certificate()


def test_a_result_whose_new_certificate_proves_less_has_not_met_the_target(
    problem: Problem,
) -> None:
    run = trainer(problem)
    make_passes(run, 4)
    result = run.result(TARGET_MET)
    met = replace(result.certificate, target=10.0)
    less = replace(met, dual=0.01 * met.dual)
    assert met.met
    assert not less.met
    assert result.certified_by(met, None).reason == TARGET_MET
    assert result.certified_by(less, None).reason == NOT_KEPT
    assert run.result(OUT_OF_TIME).certified_by(less, None).reason == OUT_OF_TIME
