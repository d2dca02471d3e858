"""The parts of a run."""

import time
from dataclasses import replace

import numpy as np
import pytest

from certsvm.certificates.primal import primal_bound
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import make_solver
from certsvm.solvers.base import Options
from certsvm.training.loop import train
from certsvm.training.result import NOT_KEPT, OUT_OF_TIME, TARGET_MET, Progress
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
        trainer.end_pass(trainer.run.epoch(), last=True)


def test_a_callback_cannot_change_the_weights(problem: Problem) -> None:
    def overwrite(progress: Progress) -> None:
        w = progress.w()
        assert w.any()
        w[:] = 0.0

    result = train(problem, make_solver("dcd"), tol=1e-6, seed=0, callbacks=[overwrite])
    assert primal_bound(problem, result.w).value == result.certificate.primal


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
