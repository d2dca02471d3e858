"""Training that goes on after a crash."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm.data.streams import BlockStream
from certsvm.kernels.losses import SQUARED_HINGE
from certsvm.parallel import Team
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import (
    MPU,
    NORMA,
    SGDQN,
    SOLVERS,
    Auto,
    Newton,
    Options,
    SGDs,
    SmoothedNewton,
    Solver,
    SvmSgd,
    make_solver,
)
from certsvm.solvers import auto as auto_module
from certsvm.solvers.second_order import small
from certsvm.storage.container import read_container, write_container
from certsvm.storage.keys import user_key
from certsvm.storage.state import Stateful
from certsvm.training import checkpoints
from certsvm.training.checkpoints import KIND, Checkpoint, CheckpointError
from certsvm.training.loop import train
from certsvm.training.result import Progress, Result


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


def problem_in_memory(**objective: Any) -> Problem:
    X, y = noisy_rows()
    return Problem(Rows(X, intercept_scaling=1.0), y, C=2.0, **objective)


def problem_on_stream(**objective: Any) -> StreamedProblem:
    X, y = noisy_rows()
    cuts = [0, 150, 151, 400]
    blocks = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)]
    stream = BlockStream(lambda: blocks, intercept_scaling=1.0)
    return StreamedProblem(stream, 1, C=2.0, **objective)


# Besides the hinge with an intercept that is penalised.
OBJECTIVES: list[Any] = [
    pytest.param({"loss": SQUARED_HINGE}, id="squared"),
    pytest.param({"penalize_intercept": False}, id="free"),
    pytest.param({"loss": SQUARED_HINGE, "penalize_intercept": False}, id="squared-free"),
]


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
def test_any_solver_goes_on_to_the_same_bits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Auto would otherwise solve it in one pass.
    monkeypatch.setattr(small, "MOST_COLUMNS", 0)
    solver = make_solver(name)
    options: dict[str, Any] = {"tol": 1e-9, "max_iter": 60, "seed": 5}
    options["keep_alpha"] = solver.certifies
    problem = problem_in_memory()
    whole = train(problem, solver, **options)
    assert whole.passes > 8
    crashes = tuple(passes for passes in (3, 7, 16, 21, 50) if passes < whole.passes)
    resumed = crash_and_resume(problem, solver, tmp_path / "run", crashes, **options)
    same(whole, resumed)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", ["auto", "working-set", "dcd", "newton", "smoothed-newton"])
def test_other_objectives_go_on_to_the_same_bits(
    name: str, objective: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "MOST_COLUMNS", 0)
    solver, problem = make_solver(name), problem_in_memory(**objective)
    # A sample would leave too few passes to interrupt.
    if isinstance(solver, Newton | SmoothedNewton):
        solver = replace(solver, samples=False)
    options: dict[str, Any] = {"tol": 1e-12, "max_iter": 60, "seed": 5, "keep_alpha": True}
    whole = train(problem, solver, **options)
    assert whole.passes > 4
    crashes = tuple(passes for passes in (1, 3, 7, 16, 50) if passes < whole.passes)
    resumed = crash_and_resume(problem, solver, tmp_path / "run", crashes, **options)
    same(whole, resumed)
    assert resumed.certificate.loss == problem.loss.name
    assert resumed.certificate.penalize_intercept is not problem.free_intercept


# What only tells about the last pass, or is computed before it is used.
TRANSIENT = {
    "SGDsRun": {"_best"},
    "WorkingSetRun": {"_computed", "_options", "_products"},
    "OCASRun": {"_point"},
    "SVMperfRun": {"_point"},
    "Master": {"_buffer"},
}


def differences(a: Any, b: Any, name: str = "run") -> list[str]:
    """The attributes in which two objects differ."""
    if isinstance(a, Stateful) and type(a) is type(b):
        attributes = (vars(a).keys() | vars(b).keys()) - TRANSIENT.get(type(a).__name__, set())
        pairs = [(f"{name}.{key}", vars(a).get(key), vars(b).get(key)) for key in attributes]
        return [difference for key, x, y in pairs for difference in differences(x, y, key)]
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        parts = enumerate(zip(a, b, strict=True))
        return [d for i, (x, y) in parts for d in differences(x, y, f"{name}.{i}")]
    if is_dataclass(a) and is_dataclass(b):
        return differences(list(vars(a).values()), list(vars(b).values()), name)
    if isinstance(a, np.random.Generator | Problem | Team | Solver):
        return []
    same_array = isinstance(a, np.ndarray) and a.tobytes() == b.tobytes() and a.dtype == b.dtype
    same_number = not isinstance(a, np.ndarray) and (a == b or (a != a and b != b))
    return [] if same_array or same_number else [name]


@pytest.mark.parametrize(
    ("name", "objective"),
    [(name, {}) for name in sorted(SOLVERS.keys() - {"newton", "smoothed-newton"})]
    + [
        pytest.param(name, *objective.values, id=f"{name}-{objective.id}")
        for name in ("working-set", "dcd")
        for objective in OBJECTIVES
    ],
)
def test_a_run_that_is_given_a_state_is_the_run_it_is_of(
    name: str, objective: dict[str, Any]
) -> None:
    """After any pass: nothing that changes is left out of what a run declares."""
    problem, solver = problem_in_memory(**objective), make_solver(name)
    run = solver.start(problem, Options(np.random.default_rng(0), 1e-4, keep_alpha=True))
    for _ in range(30):
        run.epoch()
        options = Options(np.random.default_rng(0), 1e-4, keep_alpha=True, resumed=True)
        other = solver.start(problem, options)
        other.load_state_dict(copy.deepcopy(run.state_dict()))
        assert differences(run, other) == []


@pytest.mark.parametrize(
    "solver",
    [
        SGDs(precision="single"),
        MPU(precision="single"),
        SvmSgd(precision="single"),
        SGDQN(precision="single"),
        NORMA(rate="constant"),
    ],
    ids=lambda solver: solver.label,
)
def test_parameters_are_no_obstacle(solver: Solver, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tol": 1e-9, "max_iter": 11, "seed": 5}
    problem = problem_in_memory()
    whole = train(problem, solver, **options)
    same(whole, crash_and_resume(problem, solver, tmp_path / "run", (3, 7), **options))


@pytest.mark.parametrize("newton", [math.inf, 1.0])
def test_auto_goes_on_with_whichever_solver_was_at_work(
    newton: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with working sets, and turns to Newton in the fourth pass or never."""
    monkeypatch.setattr(auto_module, "is_small", lambda problem: False)
    monkeypatch.setattr(
        auto_module,
        "newton_cost",
        lambda problem, target, n_jobs, gap=1.0: math.inf if target > 1e-3 else newton,
    )
    options: dict[str, Any] = {"tol": 1e-9, "max_iter": 9, "seed": 5, "keep_alpha": True}
    problem = problem_in_memory()
    whole = train(problem, Auto(), **options)
    assert whole.solver == ("working-set" if newton == math.inf else "working-set, then newton")
    same(whole, crash_and_resume(problem, Auto(), tmp_path / "run", (2, 3, 6), **options))


@pytest.mark.parametrize("solver", [SvmSgd(), SGDQN(), NORMA()], ids=lambda solver: solver.name)
def test_a_rate_is_not_searched_for_again(
    solver: Solver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "run", {}, interval=0.0)
    train(problem_in_memory(), solver, max_iter=2, tol=0.0, checkpoint=checkpoint)

    def search(*arguments: Any) -> Any:
        raise AssertionError

    for module in ("svmsgd", "norma"):
        monkeypatch.setattr(f"certsvm.solvers.{module}.search_rate", search)
    monkeypatch.setattr("certsvm.solvers.published.sgd_qn.SGDQNRun._search", search)
    again = train(problem_in_memory(), solver, max_iter=4, tol=0.0, checkpoint=checkpoint)
    assert again.passes == 4


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        *((name, {}) for name in ("sgd-s", "sgd-m", "newton", "auto")),
        *(pytest.param("auto", *objective.values, id=objective.id) for objective in OBJECTIVES),
    ],
)
def test_a_stream_goes_on_to_the_same_bits(
    name: str, objective: dict[str, Any], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"tol": 1e-12, "max_iter": 12, "seed": 5}
    problem = problem_on_stream(**objective)
    whole = train(problem, make_solver(name), **options)
    crashes = tuple(passes for passes in (3, 7) if passes < whole.passes)
    assert crashes
    resumed = crash_and_resume(problem, make_solver(name), tmp_path / "run", crashes, **options)
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


class Remembered(Checkpoint):
    """A checkpoint whose state is in memory, so that it can be changed."""

    state: Any = None

    def save(self, state: dict[str, Any]) -> None:
        self.state = copy.deepcopy(state)

    def load(self) -> Any:
        return copy.deepcopy(self.state)

    def resumed(self, problem: Any, solver: Solver, state: Any, **options: Any) -> Result:
        other = Remembered(self.path, {})
        other.state = state
        return train(problem, solver, checkpoint=other, **options)


def fields(state: dict[str, Any], *parents: str) -> Iterator[tuple[str, ...]]:
    """The place of each field, those of nested states included."""
    for name, value in state.items():
        yield (*parents, name)
        if isinstance(value, dict):
            yield from fields(value, *parents, name)


def changed(state: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The state with another value in one place; without it, if the value is None."""
    other = copy.deepcopy(state)
    inner = other
    for name in place[:-1]:
        inner = inner[name]
    if value is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return other


def forgeries(value: Any) -> Iterator[Any]:
    """What the value of a field may not be replaced by; the first is that it is missing."""
    yield None
    yield from ([], (), b"bytes", 1j)
    if isinstance(value, bool):
        yield from (0, 1, "true")
    elif isinstance(value, int):
        yield from (-1, 2**62 + 1, 2**64, True, float(value), str(value))
    elif isinstance(value, float):
        yield from (math.nan, 1, "1.0")
    elif isinstance(value, str):
        yield from (5, "two\nlines", "x" * 1000)
    elif isinstance(value, dict):
        yield from (5, "text", {**value, "unknown": 1}, {**value, "unknown": np.zeros(3)})
    elif isinstance(value, np.ndarray):
        yield from (value[..., None], value.astype(np.complex128), 1.0, "text")
        yield np.concatenate([value, np.ones((2, *value.shape[1:]), value.dtype)])
        if value.dtype.kind == "f":
            yield value.astype(np.float32 if value.dtype == np.float64 else np.float64)
        if value.dtype == np.int64:
            yield value.astype(np.int32)
        if value.size and value.dtype == np.int64:
            for wrong in (-1, 2**63 - 1):
                yield np.full_like(value, wrong)


# What a record of a pass may lack, and what it may be without limit.
NAN = {"margin_errors", "updates", "free", "primal", "primal_estimate"}


@pytest.mark.parametrize("name", ["auto", "working sets in auto", *SOLVERS, "newton on a stream"])
def test_a_forged_state_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field in turn is missing, of another type or shape, not finite, or out of range."""
    if name == "working sets in auto":
        monkeypatch.setattr(auto_module, "is_small", lambda problem: False)
        monkeypatch.setattr(
            auto_module, "newton_cost", lambda problem, target, n_jobs, gap=1.0: math.inf
        )
    monkeypatch.setattr(small, "MOST_COLUMNS", 0)
    solver = make_solver(name.split()[-1] if name.endswith("auto") else name.split()[0])
    problem: Any = problem_on_stream() if "stream" in name else problem_in_memory()
    options: dict[str, Any] = {"tol": 1e-9, "seed": 5, "keep_alpha": solver.certifies}
    checkpoint = Remembered(tmp_path / "run", {}, interval=0.0)
    train(problem, solver, max_iter=4, checkpoint=checkpoint, **options)
    state = checkpoint.state
    options["max_iter"] = 4
    assert checkpoint.resumed(problem, solver, state, **options).passes == 4
    for place in fields(state):
        value: Any = state
        for part in place:
            value = value[part]
        wrong = list(forgeries(value))
        # A list may be shorter by its last item.
        wrong = wrong[1:] if place[-1].isdigit() else wrong
        floats = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 0
        if floats and place[-1] not in NAN:
            wrong.append(np.full_like(value, math.nan))
        for forged in wrong:
            other = changed(state, place, forged)
            with pytest.raises(CheckpointError):
                print(checkpoint.resumed(problem, solver, other, **options), place, forged)


@pytest.mark.parametrize("name", ["dcd", "working-set", "newton"])
def test_an_alpha_outside_its_box_is_refused(name: str, tmp_path: Path) -> None:
    problem, solver = problem_in_memory(), make_solver(name)
    checkpoint = Remembered(tmp_path / "run", {})
    train(problem, solver, max_iter=2, tol=0.0, checkpoint=checkpoint)
    alpha = checkpoint.state["run"]["alpha"]
    for value in (-1e-12, problem.C * (1 + 1e-12)):
        wrong = alpha.copy()
        wrong[7] = value
        state = changed(checkpoint.state, ("run", "alpha"), wrong)
        with pytest.raises(CheckpointError, match=r"run\.alpha has a value out of range"):
            checkpoint.resumed(problem, solver, state, tol=0.0)


def test_a_multiple_of_alpha_beyond_the_box_is_refused(tmp_path: Path) -> None:
    """Any multiple is feasible if the box has no end, as for the squared hinge."""
    for objective, allowed in (({}, False), ({"loss": SQUARED_HINGE}, True)):
        problem, solver = problem_in_memory(**objective), make_solver("dcd")
        checkpoint = Remembered(tmp_path / "run", {})
        train(problem, solver, max_iter=2, tol=0.0, checkpoint=checkpoint)
        state = changed(checkpoint.state, ("best", "dual", "scale"), 1.5)
        if allowed:
            assert checkpoint.resumed(problem, solver, state, tol=0.0, max_iter=3).passes == 3
        else:
            with pytest.raises(CheckpointError, match="multiple of alpha that is not feasible"):
                checkpoint.resumed(problem, solver, state, tol=0.0, max_iter=3)


@pytest.mark.parametrize("stream", [False, True])
def test_claims_about_other_data_are_refused(stream: bool, tmp_path: Path) -> None:
    problem: Any = problem_on_stream() if stream else problem_in_memory()
    checkpoint = Remembered(tmp_path / "run", {})
    result = train(problem, SGDs(), max_iter=5, tol=0.0, seed=0, checkpoint=checkpoint)
    J, L = result.certificate.primal, result.certificate.dual
    for place, value, reason in [
        (("best", "best", "bound", "value"), 0.99 * J, "says that J is"),
        (("best", "best", "bound", "value"), 1.01 * J, "says that J is"),
        (("best", "best", "w"), 1.01 * result.w, "says that J is"),
        (("best", "dual", "bound", "value"), 1.01 * J, "has a dual bound"),
    ]:
        state = changed(checkpoint.state, place, value)
        with pytest.raises(CheckpointError, match=reason):
            checkpoint.resumed(problem, SGDs(), state, tol=0.0)
    assert L < J


@pytest.mark.parametrize("place", ["run.more", "nowhere.w", "run.w.w", "w", "run.passes", ""])
def test_an_array_without_a_place_is_refused(place: str, tmp_path: Path) -> None:
    problem, path = problem_in_memory(), tmp_path / "run"
    train(problem, make_solver("dcd"), max_iter=2, tol=0.0, checkpoint=Checkpoint(path, {}))
    file = read_container(path, KIND, user_key())
    write_container(path, KIND, file.content, {**file.arrays, place: np.zeros(2)}, user_key())
    with pytest.raises(CheckpointError, match=r"Remove it to begin anew"):
        train(problem, make_solver("dcd"), max_iter=4, tol=0.0, checkpoint=Checkpoint(path, {}))


@pytest.mark.parametrize("content", [{}, {"identity": 5, "state": {}}, {"identity": None}])
def test_a_file_of_something_else_is_refused(content: Any, tmp_path: Path) -> None:
    write_container(tmp_path / "run", KIND, content, {"w": np.zeros(2)}, user_key())
    with pytest.raises(CheckpointError, match="Remove it to begin anew"):
        Checkpoint(tmp_path / "run", {}).load()


def test_a_forged_bound_is_refused_without_the_key(tmp_path: Path) -> None:
    """A forger who knows the format, but not the key, cannot claim L = J."""
    problem, path = problem_in_memory(), tmp_path / "run"
    options: dict[str, Any] = {"tol": 1e-6, "seed": 0}
    first = train(
        problem, make_solver("dcd"), max_iter=1, checkpoint=Checkpoint(path, {}), **options
    )
    file = read_container(path, KIND, user_key())
    file.content["state"]["best"]["dual"]["bound"] |= {"value": first.certificate.primal}
    for key in (None, b"a key of the forger"):
        write_container(path, KIND, file.content, file.arrays, key)
        with pytest.raises(CheckpointError, match="changed or written by someone else"):
            train(problem, make_solver("dcd"), checkpoint=Checkpoint(path, {}), **options)


def test_a_checkpoint_needs_a_key_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CERTSVM_KEY_FILE", str(tmp_path / "file" / "key"))
    with pytest.raises(OSError, match="Set CERTSVM_KEY_FILE"):
        Checkpoint(tmp_path / "run", {}).prepare()


def test_a_checkpoint_names_no_code(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(problem_in_memory(), SGDs(), max_iter=2, tol=0.0, checkpoint=Checkpoint(path, {}))
    content = read_container(path, KIND, user_key()).content
    assert content.keys() == {"identity", "state"}
    assert "certsvm" not in repr(content["state"])


def test_the_version_of_the_code_is_that_of_all_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def noted(path: Path) -> bytes:
        read.append(path)
        return b""

    monkeypatch.setattr(Path, "read_bytes", noted)
    checkpoints._code.__wrapped__()
    package = Path(checkpoints.__file__).parents[1]
    assert {package / "kernels" / "rows.py", package / "solvers" / "dcd.py"} <= set(read)


def test_a_run_without_a_state_takes_no_checkpoint(tmp_path: Path) -> None:
    class Stateless(SGDs):
        def start(self, problem: Any, options: Any) -> Any:
            run = super().start(problem, options)
            run.STATE = None  # type: ignore[misc, assignment]
            return run

    with pytest.raises(CheckpointError, match="cannot be saved"):
        train(problem_in_memory(), Stateless(), checkpoint=Checkpoint(tmp_path / "run", {}))


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.001])
def test_products_of_another_weight_vector_are_refused(factor: float, tmp_path: Path) -> None:
    problem, solver = problem_in_memory(), make_solver("newton")
    options: dict[str, Any] = {"tol": 1e-9, "seed": 5, "max_iter": 4}
    checkpoint = Remembered(tmp_path / "run", {}, interval=0.0)
    train(problem, solver, checkpoint=checkpoint, **options)
    state = checkpoint.state
    other = changed(state, ("run", "products", "w"), factor * state["run"]["products"]["w"])
    with pytest.raises(CheckpointError, match="do not belong to its weight vector"):
        checkpoint.resumed(problem, solver, other, **options)
    other = changed(state, ("run", "products", "error"), 0.0)
    with pytest.raises(CheckpointError, match="do not belong to its weight vector"):
        checkpoint.resumed(problem, solver, other, **options)
