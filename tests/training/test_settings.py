"""Settings that make no sense, and checkpoints: runs go on from them and believe nothing."""

import functools
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm import Certificate, Rows, train
from certsvm.files.container import read_container, write_container
from certsvm.files.streams import BlockStream
from certsvm.kernels.losses import SQUARED_HINGE
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem, StreamedProblem
from certsvm.solvers import SOLVERS, SGDs, Solver, make_solver
from certsvm.solvers import auto as auto_module
from certsvm.training import loop
from certsvm.training.loop import KIND, CheckpointError
from certsvm.training.settings import OUT_OF_PASSES, TARGET_MET, Progress, Settings


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tol": -1.0}, "tol must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"max_time": np.inf}, "max_time must be"),
        ({"max_time": -1.0}, "max_time must be"),
        ({"checkpoint_every": np.nan}, "checkpoint_every must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_what_makes_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**parameters)


def test_numbers_of_numpy_become_plain() -> None:
    settings = Settings(max_iter=np.int64(3), seed=np.int32(7), tol=np.float64(1))
    assert type(settings.tol) is float
    assert (type(settings.max_iter), type(settings.seed)) == (int, int)


class CrashError(Exception):
    """What ends a run without any chance to clean up."""


@pytest.fixture(autouse=True)
def after_each_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long writing takes; and Auto would solve the problem in one pass."""
    monkeypatch.setattr(loop, "_SHARE", math.inf)
    monkeypatch.setattr(auto_module, "_SMALL", 0)


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
    return StreamedProblem(stream, 1, Objective(C=2.0, **objective))


# Besides the hinge with an intercept that is penalised.
OBJECTIVES: list[dict[str, Any]] = [
    {"loss": SQUARED_HINGE},
    {"penalize_intercept": False},
    {"loss": SQUARED_HINGE, "penalize_intercept": False},
]


def requires_no_worse(problem: Any, solver: Solver, path: Path) -> None:
    """Nothing is lost but the pass that was not saved, and the bounds are those of before."""
    options: dict[str, Any] = {"tol": 1e-5, "max_iter": 60, "seed": 5}
    whole = train(problem, solver, **options)
    crash = max(2, whole.passes // 2)
    how: dict[str, Any] = {"checkpoint": path, "checkpoint_every": 0.0}
    with pytest.raises(CrashError):
        train(problem, solver, callbacks=[crash_after(crash)], **how, **options)
    # No pass is left to make: what is proved is what the file proves.
    seen = train(problem, solver, checkpoint=path, **options | {"max_iter": 1})
    resumed = train(problem, solver, checkpoint=path, **options)
    assert seen.passes == crash - 1
    assert seen.reason == OUT_OF_PASSES
    assert resumed.history["passes"].tolist() == list(range(crash - 1, resumed.passes + 1))
    assert (np.diff(resumed.history["epochs"]) > 0).all()
    J, L = whole.history.best_bounds()
    assert seen.certificate.primal <= J[crash - 2] * (1 + 1e-9) + 1e-300
    assert seen.certificate.dual >= L[crash - 2] * (1 - 1e-9)
    assert seen.certificate.dual <= resumed.certificate.primal
    assert resumed.certificate.met or resumed.passes == options["max_iter"]


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        *((name, {}) for name in ("auto", *SOLVERS)),
        *((name, case) for name in ("auto", "dcd", "smoothed-newton") for case in OBJECTIVES),
    ],
)
def test_any_solver_goes_on(name: str, objective: dict[str, Any], tmp_path: Path) -> None:
    solver: Any = make_solver(name)
    if name == "smoothed-newton" and objective:
        # A sample would leave too few passes to interrupt.
        solver = replace(solver, samples=False)
    requires_no_worse(problem_in_memory(**objective), solver, tmp_path / "run")


@pytest.mark.parametrize("objective", [{}, *OBJECTIVES])
def test_a_stream_goes_on_without_alpha(objective: dict[str, Any], tmp_path: Path) -> None:
    requires_no_worse(problem_on_stream(**objective), make_solver("newton"), tmp_path / "run")
    assert read_container(tmp_path / "run", KIND).arrays.keys() == {"w", "best_w", "numbers"}


def test_a_run_that_was_finished_is_not_repeated(tmp_path: Path) -> None:
    problem = problem_in_memory()
    checkpoint = tmp_path / "run"
    first = train(problem, make_solver("sgd-s"), tol=0.1, seed=0, checkpoint=checkpoint)
    seen: list[int] = []
    again = train(
        problem, make_solver("sgd-s"), tol=0.1, seed=0, checkpoint=checkpoint,
        callbacks=[lambda progress: seen.append(progress.record.passes)],
    )  # fmt: skip
    assert not seen
    assert (again.reason, again.passes, again.epochs) == (TARGET_MET, first.passes, first.epochs)
    assert again.w.tobytes() == first.w.tobytes()
    assert again.certificate.relative_gap == pytest.approx(first.certificate.relative_gap, rel=1e-6)
    assert first.alpha is None
    assert again.alpha is None


def test_time_before_a_checkpoint_counts(tmp_path: Path) -> None:
    problem, path = problem_in_memory(), tmp_path / "run"
    train(problem, SGDs(), max_iter=2, tol=0.0, checkpoint=path)
    change(path, "seconds", 1e6)
    resumed = train(problem, SGDs(), tol=0.0, max_time=10.0, checkpoint=path)
    assert resumed.passes == 2
    assert resumed.history["seconds"].min() >= 1e6


def test_a_resumed_run_draws_other_rows(tmp_path: Path) -> None:
    """Or one that is killed after each pass would see a few rows only, again and again."""
    # Each row has a column of its own, and 37 of 100 are not drawn in a pass.
    problem, solver = Problem(Rows(np.eye(200)), np.ones(200)), make_solver("sgd-r")
    for passes in range(1, 7):
        checkpoint = tmp_path / "run"
        train(problem, solver, seed=0, max_iter=passes, tol=0.0, checkpoint=checkpoint)
    assert np.count_nonzero(read_container(tmp_path / "run", KIND).arrays["w"]) > 180


def test_another_problem_is_refused(tmp_path: Path) -> None:
    problem, path = problem_in_memory(), tmp_path / "run"
    train(problem, SGDs(), max_iter=2, seed=0, checkpoint=path)
    before = path.read_bytes()
    other = Problem(problem.rows, problem.labels, C=3.0)
    with pytest.raises(CheckpointError, match=r"of a run on .* C = 2.0, .* not .* C = 3.0"):
        train(other, SGDs(), checkpoint=path)
    assert path.read_bytes() == before


NUMBERS = ("passes", "epochs", "seconds", "smoothing")


def change(path: Path, name: str, value: Any) -> None:
    """Write a number or an array of a checkpoint anew, with the right digest; None removes it."""
    file = read_container(path, KIND)
    content, arrays = dict(file.content), dict(file.arrays)
    if name in NUMBERS:
        arrays["numbers"][NUMBERS.index(name)] = value
    else:
        into: dict[str, Any] = content if name == "problem" else arrays
        into[name] = value
        if value is None:
            del into[name]
    write_container(path, KIND, content, arrays)


WRONG: dict[str, tuple[Any, ...]] = {
    "passes": (-1, math.nan, 2**40),
    "epochs": (-1, 2**40),
    "seconds": (-1.0, math.inf),
    "smoothing": (-1.0, math.nan),
    "numbers": (None, np.ones((4, 1))),
    "w": (None, np.ones(3), np.full(61, np.nan)),
    "best_w": (None, np.ones(3), np.full(61, np.inf)),
    "alpha": (np.ones(3), np.full(400, np.nan)),
    "problem": (None,),
}


@pytest.mark.parametrize(("name", "value"), [(name, v) for name in WRONG for v in WRONG[name]])
def test_what_does_not_fit_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    problem, path = problem_in_memory(), tmp_path / "run"
    train(problem, make_solver("dcd"), max_iter=2, tol=0.0, checkpoint=path)
    change(path, name, value)
    with pytest.raises(CheckpointError, match=r"Remove it to begin anew"):
        train(problem, make_solver("dcd"), tol=0.0, checkpoint=path)


@functools.cache
def optimum() -> Certificate:
    return train(problem_in_memory(), make_solver("newton"), tol=1e-12).certificate


def forgeries(alpha: bool) -> list[dict[str, Any]]:
    """What a forger may write who knows the format."""
    rng = np.random.default_rng(0)
    forged: list[dict[str, Any]] = [
        {"w": np.zeros(61)},
        {"w": rng.standard_normal(61), "best_w": rng.standard_normal(61)},
        {"w": 1e200 * np.ones(61)},
        {"best_w": 1e300 * np.ones(61)},
        {"passes": 0},
        {"passes": 30, "epochs": 2**31 - 1},
        {"smoothing": 1e12},
        {"smoothing": 5e-324},
    ]
    if alpha:
        forged += [{"alpha": value * np.ones(400)} for value in (-1.0, 0.0, 2.0, 1e9, 1e300)]
        forged += [{"alpha": rng.uniform(-1.0, 3.0, 400)}]
        # It proves an L above the optimum, but of a problem with another C.
        X, y = noisy_rows()
        steeper = Problem(Rows(X, intercept_scaling=1.0), y, C=200.0)
        proof = train(steeper, make_solver("newton"), tol=1e-3, keep_alpha=True)
        assert proof.certificate.dual > 2.0 * optimum().primal
        forged += [{"alpha": proof.alpha}]
    return forged


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        *((name, False) for name in ("auto", *SOLVERS)),
        *((name, True) for name in ("sgd-s", "newton", "block-dcd")),
    ],
)
@pytest.mark.filterwarnings("ignore:The weights to start from")
def test_a_forged_checkpoint_costs_time_not_truth(name: str, stream: bool, tmp_path: Path) -> None:
    problem: Any = problem_on_stream() if stream else problem_in_memory()
    solver, path = make_solver(name), tmp_path / "run"
    for forged in forgeries(not stream or name == "block-dcd"):
        path.unlink(missing_ok=True)
        train(problem, solver, max_iter=3, tol=0.0, checkpoint=path)
        for field, value in forged.items():
            change(path, field, value)
        for n in (1, 5):
            result = train(problem, solver, max_iter=n, tol=1e-3, checkpoint=path)
            claim = result.certificate
            assert claim.dual - claim.dual_rounding <= optimum().primal, forged
            assert claim.primal + claim.primal_rounding >= optimum().dual, forged
            J = 0.5 * result.w @ result.w + problem.C * math.fsum(losses(result.w))
            assert claim.primal == pytest.approx(J, rel=1e-9), forged


@pytest.mark.parametrize("size", [5e305, 1e306, 1e308])
def test_a_forged_alpha_whose_sums_overflow_proves_nothing(size: float, tmp_path: Path) -> None:
    """Those over parts may be finite."""
    problem, newton = problem_on_stream(loss=SQUARED_HINGE), make_solver("newton")
    path = tmp_path / "run"
    train(problem, newton, max_iter=2, tol=0.0, checkpoint=path)
    change(path, "alpha", np.full(400, size))
    result = train(problem, newton, max_iter=20, tol=1e-3, checkpoint=path)
    assert result.certificate.met


def losses(w: Any) -> Any:
    X, y = noisy_rows()
    return np.maximum(0.0, 1.0 - y * (X @ w[:-1] + w[-1]))


def test_a_solver_that_always_begins_at_zero_takes_no_checkpoint(tmp_path: Path) -> None:
    class Cold(SGDs):
        starts_warm = False

    with pytest.raises(CheckpointError, match="cannot go on from a checkpoint"):
        train(problem_in_memory(), Cold(), checkpoint=tmp_path / "run")
