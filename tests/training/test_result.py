"""The result of training says what was trained, why it ended and what is proved."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from certsvm.certificates.primal import primal_bound
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import make_solver
from certsvm.training import result as training
from certsvm.training.loop import train
from certsvm.training.result import Progress, Result


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    return Problem(Rows(X), np.where(X[:, 0] + rng.standard_normal(200) > 0, 1, -1), C=0.1)


@pytest.mark.parametrize("name", ["sgd-s", "dcd", "working-set", "newton", "smoothed-newton"])
def test_a_result_is_consistent(problem: Problem, name: str) -> None:
    result = train(problem, make_solver(name), tol=0.01, seed=0, keep_alpha=True)
    assert result.reason == training.TARGET_MET
    assert result.solver == name
    assert result.passes == len(result.history)
    assert result.epochs == result.history[-1].epochs
    J = primal_bound(problem, result.w)
    assert J.value == pytest.approx(result.certificate.primal, rel=1e-12)
    if result.alpha is not None:
        assert (result.alpha >= 0).all()
        assert (result.alpha <= problem.C * problem.weights).all()
        w = (result.alpha * problem.labels) @ problem.rows.matrix
        L = result.alpha.sum() - 0.5 * w @ w
        assert pytest.approx(result.certificate.dual, rel=1e-9) == L
    assert (result.alpha is not None) or (result.response is not None)


def interrupt_in_third_pass(progress: Progress) -> None:
    if progress.record.passes == 3:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tol": 0.01}, training.TARGET_MET),
        ({"tol": 0.0, "max_iter": 2}, training.OUT_OF_PASSES),
        ({"tol": 0.0, "max_time": 0.0}, training.OUT_OF_TIME),
        ({"tol": 0.0, "callbacks": [lambda progress: True]}, training.STOPPED),
        ({"tol": 0.0, "callbacks": [interrupt_in_third_pass]}, training.INTERRUPTED),
    ],
)
def test_reasons(problem: Problem, options: dict[str, Any], reason: str) -> None:
    result: Result = train(problem, make_solver("sgd-s"), seed=0, **options)
    assert result.reason == reason
    assert result.certificate.primal >= result.certificate.dual


def test_a_new_certificate_that_proves_less_has_not_met_the_target(problem: Problem) -> None:
    result = train(problem, make_solver("dcd"), tol=0.01, seed=0)
    less = replace(result.certificate, dual=0.01 * result.certificate.dual)
    assert result.certified_by(result.certificate, None).reason == training.TARGET_MET
    assert result.certified_by(less, None).reason == training.NOT_KEPT
    late = replace(result, reason=training.OUT_OF_TIME)
    assert late.certified_by(less, None).reason == training.OUT_OF_TIME
