"""When J is computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from certsvm.certificates.best import BestBounds
from certsvm.certificates.dual import DualPoint, dual_point
from certsvm.parallel import Team
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows, Vector
from certsvm.solvers import Epoch, Options, Run, SGDs, Solver
from certsvm.training import result as training
from certsvm.training.exact_checks import ExactChecks
from certsvm.training.loop import train


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 20))
    labels = np.where(X[:, 0] + rng.standard_normal(5000) > 0, 1, -1)
    return Problem(Rows(X), labels, C=0.01)


def test_exact_computations_are_few(problem: Problem) -> None:
    result = train(problem, SGDs(), tol=1e-4, seed=0, max_iter=500)
    computed = np.isfinite(result.history["primal"]).sum()
    assert computed <= 40


class Scripted(Solver):
    """A solver whose passes are written down: (guess at J, w, alpha) for each."""

    name = "scripted"

    def __init__(self, script: list[tuple[float, float, float]], published: bool) -> None:
        self.script, self.published = script, published

    def start(self, problem: Problem, options: Options) -> Run:
        script = iter(self.script)

        class ScriptedRun(Run):
            def epoch(self) -> Epoch:
                guess, self.w, self.alpha = next(script)
                return Epoch(epochs=1, margin_errors=0, primal_estimate=guess)

            def candidates(self) -> Iterator[Vector]:
                yield np.array([self.w])

            def dual(self) -> DualPoint:
                return dual_point(problem, np.array([self.alpha]), "script")

        return ScriptedRun()


@pytest.mark.parametrize("published", [True, False])
def test_the_paper_holds_only_values_of_one_w_against_each_other(published: bool) -> None:
    """One row y = 1, C = 1: J(w) = w^2/2 + max(0, 1 - w), L(alpha) = alpha - alpha^2/2 <= 1/2."""
    one_row = Problem(Rows(np.ones((1, 1))), [1], C=1.0)
    script = [
        (0.38, 1.0, 0.5),  # the guess is good: J = 1/2 is computed, but L = 3/8 is too low
        (99.0, 0.0, 1.0),  # L = 1/2 now, J of the new w is not worth computing
        (0.5, 1.0, 1.0),  # both at once
    ]
    result = train(one_row, Scripted(script, published), tol=0.2, max_iter=3)
    assert result.reason == training.TARGET_MET
    assert result.passes == (3 if published else 2)


@pytest.mark.parametrize(("guess", "correction"), [(1e-320, 1.0), (math.nan, 1.0), (0.25, 2.0)])
def test_a_correction_is_a_number(guess: float, correction: float) -> None:
    one_row = Problem(Rows(np.ones((1, 1))), [1], C=1.0)
    solver = Scripted([(guess, 1.0, 0.5)], published=False)
    run = solver.start(one_row, Options(np.random.default_rng(0)))
    checks = ExactChecks(one_row, solver, run, BestBounds(one_row, 0.1), Team())
    assert checks.after(1, run.epoch(), last=False) == 0.5
    assert checks._correction == correction
