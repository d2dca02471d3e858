"""Training that goes on after a crash."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm.data.streams import BlockStream
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import SOLVERS, Solver, make_solver
from certsvm.training.checkpoints import Checkpoint, CheckpointError
from certsvm.training.loop import Progress, Result, train


class CrashError(Exception):
    """What ends a run without any chance to clean up."""


def noisy_rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = sp.random(400, 60, density=0.2, format="csr", random_state=rng)
    scores = X @ rng.standard_normal(60) + 0.3 * rng.standard_normal(400)
    return X, np.where(scores > 0, 1.0, -1.0)


def crash_after(passes: int) -> Any:
    def callback(progress: Progress) -> None:
        if progress.record.passes == passes:
            raise CrashError

    return callback


def problem_in_memory() -> Problem:
    X, y = noisy_rows()
    return Problem(Rows(X, intercept_scaling=1.0), y, C=2.0)


def problem_on_stream() -> StreamedProblem:
    X, y = noisy_rows()
    cuts = [0, 150, 151, 400]
    blocks = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)]
    return StreamedProblem(BlockStream(lambda: blocks, intercept_scaling=1.0), 1, C=2.0)


def same(a: Result, b: Result) -> None:
    assert a.w.tobytes() == b.w.tobytes()
    assert a.certificate == b.certificate
    assert (a.passes, a.epochs, a.reason, a.solver) == (b.passes, b.epochs, b.reason, b.solver)
    for name in ("primal", "dual", "primal_estimate", "margin_errors"):
        np.testing.assert_array_equal(a.history[name], b.history[name])
    if a.alpha is not None:
        assert b.alpha is not None
        assert a.alpha.tobytes() == b.alpha.tobytes()


def crash_and_resume(
    problem: Any, solver: Solver, path: Path, crashes: tuple[int, ...], **options: Any
) -> Result:
    for passes in crashes:
        checkpoint = Checkpoint(path, {}, interval=0.0)
        with pytest.raises(CrashError):
            train(
                problem, solver, checkpoint=checkpoint, callbacks=[crash_after(passes)], **options
            )
    return train(problem, solver, checkpoint=Checkpoint(path, {}, interval=0.0), **options)


@pytest.mark.parametrize("name", ["auto", *SOLVERS])
def test_any_solver_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    solver = make_solver(name)
    options: dict[str, Any] = {"tol": 1e-9, "max_iter": 12, "seed": 5}
    options["keep_alpha"] = solver.certifies
    problem = problem_in_memory()
    whole = train(problem, solver, **options)
    assert whole.passes > 8
    resumed = crash_and_resume(problem, solver, tmp_path / "run", (3, 7), **options)
    same(whole, resumed)


@pytest.mark.parametrize("name", ["sgd-s", "sgd-m", "newton", "auto"])
def test_a_stream_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tol": 1e-9, "max_iter": 12, "seed": 5}
    problem = problem_on_stream()
    whole = train(problem, make_solver(name), **options)
    resumed = crash_and_resume(problem, make_solver(name), tmp_path / "run", (3, 7), **options)
    same(whole, resumed)


def test_a_run_that_was_finished_is_not_repeated(tmp_path: Path) -> None:
    problem = problem_in_memory()
    checkpoint = Checkpoint(tmp_path / "run", {}, interval=0.0)
    first = train(problem, make_solver("sgd-s"), tol=0.1, seed=0, checkpoint=checkpoint)
    seen: list[int] = []
    again = train(
        problem, make_solver("sgd-s"), tol=0.1, seed=0, checkpoint=checkpoint,
        callbacks=[lambda progress: seen.append(progress.record.passes)],
    )  # fmt: skip
    same(first, again)
    assert not seen


def test_a_larger_limit_goes_on(tmp_path: Path) -> None:
    problem = problem_in_memory()
    checkpoint = Checkpoint(tmp_path / "run", {}, interval=0.0)
    options: dict[str, Any] = {"tol": 1e-12, "seed": 0, "checkpoint": checkpoint}
    train(problem, make_solver("sgd-s"), max_iter=4, **options)
    assert train(problem, make_solver("sgd-s"), max_iter=9, **options).passes == 9


@pytest.mark.parametrize("change", [{"C": 2.0}, {"seed": 1}, {"data": "other"}, {"more": 1}])
def test_another_run_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    identity = {"C": 1.0, "seed": 0, "data": "these"}
    problem = problem_in_memory()
    train(problem, make_solver("sgd-s"), max_iter=2, seed=0,
          checkpoint=Checkpoint(tmp_path / "run", identity))  # fmt: skip
    before = (tmp_path / "run").read_bytes()
    other = Checkpoint(tmp_path / "run", identity | change)
    with pytest.raises(CheckpointError, match=next(iter(change))):
        train(problem, make_solver("sgd-s"), max_iter=4, seed=0, checkpoint=other)
    assert (tmp_path / "run").read_bytes() == before


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_in_memory()
    train(problem, make_solver("sgd-s"), max_iter=2, checkpoint=Checkpoint(tmp_path / "run", {}))
    monkeypatch.setattr("certsvm.training.checkpoints.__version__", "99.0")
    with pytest.raises(CheckpointError, match=r"certsvm = .*, not 99\.0"):
        Checkpoint(tmp_path / "run", {}).load()


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    problem = problem_in_memory()
    path = tmp_path / "run"
    train(problem, make_solver("sgd-s"), max_iter=2, checkpoint=Checkpoint(path, {}))
    whole = path.read_bytes()
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CheckpointError):
            Checkpoint(path, {}).load()
