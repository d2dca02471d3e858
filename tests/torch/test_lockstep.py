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
from certsvm.torch.lockstep import Lockstep, Products, Sums, Task
from certsvm.training.loop import train
from tests.torch.problems import OBJECTIVES, device, generated, host


class Asking:
    """It asks for readings of given kinds, and keeps the answers."""

    def __init__(self, kinds: str, size: float, count: int = 1, done_after: int = 10**9) -> None:
        self.kinds, self.size, self.count, self.done_after = kinds, size, count, done_after
        self.answers: list[Any] = []
        self.steps = 0

    @property
    def done(self) -> bool:
        return self.steps >= self.done_after

    def begin(self) -> Task:
        self.answers.append(host((yield Products(self.vectors(2)))))

    def step(self) -> Task:
        self.steps += 1
        for kind in self.kinds:
            ask = Products(self.vectors(2)) if kind == "p" else Sums(self.vectors(3))
            self.answers.append(host((yield ask)))

    def vectors(self, length: int) -> torch.Tensor:
        """As many as asked for, each twice the one before."""
        sizes = self.size * 2.0 ** np.arange(self.count)
        return device(np.repeat(sizes[:, None], length, axis=1))


X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


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


def test_each_gets_its_own_answer(readings: list[tuple[str, int]]) -> None:
    one, two = Asking("ps", 1.0), Asking("ps", 10.0, count=2)
    lockstep = Lockstep(TensorRows(device(X)), [one, two])
    lockstep.advance(one)
    assert readings == [("products", 3), ("products", 3), ("sums", 3)]
    for asking in (one, two):
        for answer, expected in zip(asking.answers, (X.sum(1), X.sum(1), X.sum(0)), strict=True):
            assert len(answer) == asking.count
            for i, row in enumerate(answer):
                np.testing.assert_allclose(row, 2**i * asking.size * expected)


def test_what_most_wait_for_comes_first(readings: list[tuple[str, int]]) -> None:
    asking = [Asking("ps", 1.0), Asking("s", 2.0), Asking("s", 3.0)]
    lockstep = Lockstep(TensorRows(device(X)), asking)
    readings.clear()
    lockstep.advance(asking[0])
    assert readings == [("sums", 2), ("products", 1), ("sums", 1)]


def test_those_that_are_done_rest_unless_they_ask() -> None:
    one, two = Asking("p", 1.0, done_after=1), Asking("p", 2.0)
    lockstep = Lockstep(TensorRows(device(X)), [one, two])
    for _ in range(3):
        lockstep.advance(two)
    assert (one.steps, two.steps) == (1, 3)
    lockstep.advance(one)
    assert (one.steps, two.steps) == (2, 4)


def test_after_an_interruption_none_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Asking("p", 1.0), Asking("p", 2.0)
    lockstep = Lockstep(TensorRows(device(X)), [one, two])

    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TensorRows, "products", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lockstep.advance(one)
    lockstep.advance(two)
    assert (one.steps, two.steps) == (1, 1)


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
