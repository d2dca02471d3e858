import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import certsvm.problem.rows as part_module
from certsvm import History, Rows, train
from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.files.streams import BlockStream
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem, StreamedProblem
from certsvm.solvers import SGDm, SGDs, WorkingSet, make_solver
from certsvm.training import settings as training
from certsvm.training.settings import Progress
from tests.interrupts import ctrl_c_at
from tests.problems import noisy


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 20))
    labels = np.where(X[:, 0] + rng.standard_normal(5000) > 0, 1, -1)
    return Problem(Rows(X), labels, C=0.01)


def test_the_history_has_a_record_for_each_pass(problem: Problem) -> None:
    result = train(problem, SGDm(), tol=0.001, seed=0)
    history = result.history
    assert isinstance(history, History)
    assert len(history) == result.passes
    assert history["passes"].tolist() == list(range(1, result.passes + 1))
    assert history["epochs"].tolist()[:6] == [5, 10, 15, 20, 21, 22]
    assert (np.diff(history["seconds"]) > 0).all()
    # Best bounds so far never get worse.
    assert (np.diff(history["dual"]) >= 0).all()
    gaps = history["relative_gap"]
    assert (gaps[1:] <= gaps[:-1]).all()
    last = history[-1]
    assert last.relative_gap == result.certificate.relative_gap


def long_stream(during: Callable[[], None]) -> tuple[StreamedProblem, list[int]]:
    """A problem on a stream, and how many blocks each pass over it has read."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    y = np.sign(X[:, 0] + rng.standard_normal(600))
    read: list[int] = []

    def blocks() -> Iterator[Any]:
        read.append(0)
        for first in range(0, 600, 20):
            read[-1] += 1
            if read[-1] == 5:
                during()
            yield X[first : first + 20], y[first : first + 20]

    return StreamedProblem(BlockStream(blocks), 1, Objective(C=0.1)), read


@pytest.mark.parametrize("solver", ["sgd-s", "sgd-m", "smoothed-newton"])
@pytest.mark.parametrize("reason", [training.OUT_OF_TIME, training.INTERRUPTED])
def test_a_long_pass_is_ended(monkeypatch: pytest.MonkeyPatch, solver: str, reason: str) -> None:
    """And what was proved before it remains, whatever the pass has done to the solver's state."""
    clock, stop = [0.0], threading.Event()
    seen: list[Progress] = []

    def during() -> None:
        if len(seen) == 2:
            clock[0] = 3600.0
            if reason == training.INTERRUPTED:
                stop.set()

    problem, read = long_stream(during)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    max_time = 60.0 if reason == training.OUT_OF_TIME else None
    result = train(
        problem, make_solver(solver), tol=0.0, max_time=max_time, stop=stop, seed=0,
        keep_alpha=True, callbacks=[seen.append],
    )  # fmt: skip
    assert result.reason == reason
    assert result.passes == len(result.history) == len(seen) == 2
    # The block in which it happened is the last but for one, which may have been read ahead.
    assert read[-1] in (5, 6)
    whole = in_one_piece(problem)
    optimum = train(whole, make_solver("newton"), tol=1e-9, seed=0).certificate
    assert result.certificate.dual <= optimum.primal
    assert result.certificate.primal >= optimum.dual
    assert result.certificate.primal == pytest.approx(primal_bound(whole, result.w).value)
    L = dual_bound(dual_point(whole, result.alpha, ""), scaled=False)[0].value
    assert result.certificate.dual == pytest.approx(L)


def in_one_piece(problem: StreamedProblem) -> Problem:
    parts = [(part.rows.matrix, part.labels) for part in problem.parts()]
    X, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Problem(Rows(X), labels, C=problem.C)


def test_a_long_pass_in_memory_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_module, "_VALUES_PER_CALL", 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    problem = Problem(Rows(X), np.sign(X[:, 0] + rng.standard_normal(600)))
    # A clock that ticks when it is read, and faster from the third pass on.
    clock, tick = [0.0], [1e-3]

    def now() -> float:
        clock[0] += tick[0]
        return clock[0]

    def faster(progress: Progress) -> None:
        tick[0] = 1.0 if progress.record.passes >= 2 else tick[0]

    monkeypatch.setattr(time, "perf_counter", now)
    result = train(problem, make_solver("dcd"), tol=0.0, max_time=20.0, seed=0, callbacks=[faster])
    assert result.reason == training.OUT_OF_TIME
    assert result.passes == 2
    assert clock[0] < 40.0
    assert result.certificate.dual <= result.certificate.primal


def test_the_first_pass_is_completed() -> None:
    stop = threading.Event()
    stop.set()
    problem, read = long_stream(lambda: None)
    result = train(problem, SGDs(), tol=0.0, max_time=0.0, stop=stop, seed=0)
    assert result.passes == 1
    assert set(read) == {30}


def test_a_callback_sees_each_pass_and_can_stop(problem: Problem) -> None:
    seen = []

    def callback(progress: Progress) -> bool:
        seen.append(progress.record.passes)
        assert progress.w().shape == (20,)
        return len(seen) == 4

    result = train(problem, SGDs(), tol=0.0, seed=0, callbacks=[callback])
    assert seen == [1, 2, 3, 4]
    assert result.reason == training.STOPPED


def interrupt_after(passes: int) -> training.Callback:
    def callback(progress: Progress) -> None:
        if progress.record.passes == passes:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_before_any_exact_computation_still_certifies() -> None:
    # With many rows per column, J would be computed in the first pass.
    cut = train(noisy(60, 6), WorkingSet(), tol=1e-9, seed=0, callbacks=[interrupt_after(1)])
    assert np.isnan(cut.history["primal"]).all()
    assert np.isfinite(cut.certificate.primal)
    assert cut.certificate.primal >= cut.certificate.dual


class InterruptedMidPass(SGDs):
    """SGD-s on which Ctrl-C falls in the middle of a pass."""

    def start(self, problem, options):  # type: ignore[no-untyped-def]
        run = super().start(problem, options)
        whole = run._state.present

        def half(order, ell=1, part=None):  # type: ignore[no-untyped-def]
            if run._passes == 6:
                whole(order[: order.size // 2], ell, part)
                raise KeyboardInterrupt
            return whole(order, ell, part)

        run._state.present = half  # type: ignore[method-assign]
        return run


def test_half_a_pass_does_not_enter_the_certificate(problem: Problem) -> None:
    cut = train(problem, InterruptedMidPass(), tol=0.0, seed=0)
    whole = train(problem, SGDs(), tol=0.0, seed=0, max_iter=5)
    assert cut.reason == training.INTERRUPTED
    assert cut.certificate.dual == whole.certificate.dual
    assert cut.passes == 5


def test_an_interrupt_while_the_first_pass_is_recorded(problem: Problem) -> None:
    """Ctrl-C at every line that runs between the first pass and its record."""
    passes, pressed = list[int](), True
    while pressed:
        try:
            with ctrl_c_at(len(passes), "end_pass", "_record") as at:
                result = train(problem, SGDs(), tol=0.0, max_iter=1, seed=0)
            pressed = bool(at)
            assert result.passes == len(result.history)
            passes.append(result.passes)
        except KeyboardInterrupt:
            passes.append(0)
    assert set(passes) == {0, 1}


@pytest.mark.parametrize("name", ["sgd-s", "sgd-r", "dcd", "svmperf"])
def test_the_answer_is_never_worse_than_zero(name: str) -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    hard = Problem(Rows(1000 * rng.standard_normal((200, 5))), y, C=1e6)
    result = train(hard, make_solver(name), tol=0.0, max_iter=1, seed=0)
    assert result.certificate.primal <= hard.C * hard.weight_sum * (1 + 1e-12)


def test_the_reason_is_about_the_answer_that_is_given() -> None:
    """Labels at random: zero is better than what a few passes find, and near the optimum."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    undecided = Problem(Rows(rng.standard_normal((200, 5))), y)
    result = train(undecided, SGDs(), tol=0.8, max_iter=2, seed=0)
    assert not result.w.any()
    assert result.certificate.met
    assert result.reason == training.TARGET_MET


def test_a_callback_cannot_change_the_certified_w(problem: Problem) -> None:
    def meddle(progress: Progress) -> None:
        w = progress.w()
        w /= np.linalg.norm(w)

    untouched = train(problem, SGDs(), tol=0.01, seed=0)
    meddled = train(problem, SGDs(), tol=0.01, seed=0, callbacks=[meddle])
    np.testing.assert_array_equal(untouched.w, meddled.w)
