"""Problems in step: one reading serves all, and each comes out as if alone."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch

from certsvm.problem.objective import Objective
from certsvm.solvers import Options
from certsvm.torch import ProblemGroup, TensorNewton, TensorProblem, TensorRows
from certsvm.training.loop import train
from tests.torch.problems import OBJECTIVES, device, generated


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Each reading of the rows: of which kind, for how many."""
    made: list[tuple[str, int]] = []
    for name in ("products", "sums"):
        original = getattr(TensorRows, name)

        def counted(
            self: Any, vectors: torch.Tensor, name: str = name, original: Any = original
        ) -> Any:
            made.append((name, len(vectors)))
            return original(self, vectors)

        monkeypatch.setattr(TensorRows, name, counted)
    return made


def problems(Cs: list[float], objective: Objective | None = None) -> list[TensorProblem]:
    X, y = generated(4000, 10)
    objective = Objective() if objective is None else objective
    rows = TensorRows(device(X), intercept_scaling=1.0)
    loss, penalize = objective.loss, objective.penalize_intercept
    return [TensorProblem(rows, device(y), C=C, loss=loss, penalize_intercept=penalize) for C in Cs]


@pytest.mark.parametrize("samples", [False, True])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_problems_that_go_in_step_are_the_same_as_alone(
    readings: list[tuple[str, int]], name: str, samples: bool
) -> None:
    Cs, solver, objective = [0.01, 0.1, 1.0, 10.0], TensorNewton(samples=samples), OBJECTIVES[name]
    together = problems(Cs, objective)
    ProblemGroup(together)
    results = [train(problem, solver, tol=1e-6, seed=0) for problem in together]
    shared = len(readings)
    readings.clear()
    for result, problem in zip(results, problems(Cs, objective), strict=True):
        alone = train(problem, solver, tol=1e-6, seed=0)
        assert result.certificate.met
        np.testing.assert_allclose(result.w, alone.w, rtol=1e-5, atol=1e-5)
        assert result.epochs == alone.epochs
    assert shared < 0.6 * len(readings)


def test_whoever_has_a_start_goes_alone() -> None:
    solver, Cs = TensorNewton(samples=False), [0.1, 1.0]
    cold = [train(problem, solver, tol=1e-6, seed=0) for problem in problems(Cs)]
    again = problems(Cs)
    group = ProblemGroup(again)
    for problem, before in zip(again, cold, strict=True):
        warm = train(problem, solver, tol=1e-6, seed=0, start=before.start)
        assert warm.certificate.met
        assert warm.passes < 0.5 * before.passes
    assert not group.runs


def test_the_same_problem_again_begins_again() -> None:
    (problem,) = problems([1.0])
    alone = [train(problem, TensorNewton(), tol=1e-4, seed=0).passes for _ in range(2)]
    ProblemGroup([problem])
    grouped = [train(problem, TensorNewton(), tol=1e-4, seed=0).passes for _ in range(2)]
    assert alone[0] == alone[1] == grouped[0] == grouped[1] > 1


def test_a_group_keeps_nothing_once_all_have_begun() -> None:
    together = problems([0.1, 1.0])
    group = ProblemGroup(together)
    options = Options(np.random.default_rng(0))
    first = TensorNewton().start(together[0], options)
    assert list(group.runs) == [1]
    second = TensorNewton().start(together[1], options)
    assert not group.runs
    kept = [weakref.ref(run._descent) for run in (first, second)]
    gc.disable()
    try:
        del first, second
        # Without the help of the garbage collector, since the memory is that of a device.
        assert [ref() for ref in kept] == [None, None]
    finally:
        gc.enable()
