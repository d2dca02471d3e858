"""The loop over classes: seeds, threads, interruption, observers, for all kinds of data."""

import itertools
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from certsvm.files.streams import BlockStream, DataChangedError
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource, Source, StreamSource
from certsvm.problem.base import Objective
from certsvm.solvers import BlockDCD
from certsvm.solvers.base import RunLostError
from certsvm.training.loop import train
from certsvm.training.settings import INTERRUPTED, LOST, Observer, Result, Settings


def several(n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    return X, np.array(["a", "b", "c"])[(X[:, :3] + rng.standard_normal((n, 3))).argmax(axis=1)]


def source_of(kind: str, X: Any, y: Any) -> Source:
    if kind == "memory":
        return MemorySource(X, y)
    return StreamSource(BlockStream(lambda: [(X[:100], y[:100]), (X[100:], y[100:])]))


class Interrupting(Observer):
    """Ctrl-C in the training of a class, after so many passes; zero means before the first."""

    def __init__(self, label: Any, passes: int) -> None:
        self._label, self._passes = label, passes
        self.ended: list[tuple[Any, int]] = []

    def begin(self, i: int, label: Any, problem: Any) -> Sequence[Any]:
        def interrupt(progress: Any) -> None:
            if progress.record.passes == self._passes:
                raise KeyboardInterrupt

        if label == self._label and self._passes == 0:
            raise KeyboardInterrupt
        return [interrupt] if label == self._label else []

    def end(self, i: int, label: Any, result: Any) -> None:
        self.ended.append((label, result.passes))


SLOW = Settings(solver="sgd-s", tol=0.0, max_iter=4)


@pytest.mark.parametrize("passes", [0, 2])
def test_an_interrupt_keeps_the_classes_before(passes: int) -> None:
    observer = Interrupting("b", passes)
    results = fit_classes(source_of("memory", *several()), replace(SLOW, observers=[observer]))
    assert [result.passes for result in results] == [4, passes, 0]
    assert [result.reason == INTERRUPTED for result in results] == [False, True, True]
    assert results[0].w.any()
    assert not results[2].w.any()
    assert results[2].certificate.dual == 0.0
    assert not results[2].certificate.met
    assert observer.ended == [("a", 4), ("b", passes), ("c", 0)]


def test_on_a_stream_an_interrupt_keeps_the_passes_of_all_classes() -> None:
    settings = replace(
        SLOW, solver="block-dcd", max_iter=1000, observers=[Interrupting("b", 3)]
    )  # fmt: skip
    results = fit_classes(source_of("stream", *several()), settings)
    assert [result.reason for result in results] == [INTERRUPTED] * 3
    assert all(result.passes > 0 and result.w.any() for result in results)
    assert results[1].passes == 3


def test_an_interrupt_as_classes_begin_leaves_none_waiting_for_others() -> None:
    """Ctrl-C at every call of the main thread that begins a class or waits for it."""
    source, before, outcomes = source_of("stream", *several()), sys.getprofile(), list[str]()
    while INTERRUPTED in outcomes[-1:] or len(outcomes) < 2:
        calls = itertools.count()

        def interrupt(
            frame: Any, event: str, _: Any, calls: Any = calls, last: int = len(outcomes)
        ) -> None:
            begins = event == "call" and frame.f_code.co_name in ("submit", "start", "wait")
            if begins and next(calls) == last:
                raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            results = fit_classes(source, replace(SLOW, solver="block-dcd", max_iter=2))
        except KeyboardInterrupt:
            outcomes.append(INTERRUPTED)
            continue
        finally:
            sys.setprofile(before)
        outcomes.append(results[0].reason)
    assert len(outcomes) > 3


def test_an_interrupt_before_anything_is_known_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        fit_classes(
            source_of("memory", *several()), replace(SLOW, observers=[Interrupting("a", 0)])
        )


class Counted:
    """Blocks of rows of three classes, and how often they were read."""

    def __init__(self) -> None:
        X, y = several(900)
        self._blocks = [(X[i::5], y[i::5]) for i in range(5)]
        self.readings = self.blocks_read = 0

    def __call__(self) -> Iterator[Any]:
        self.readings += 1
        for block in self._blocks:
            self.blocks_read += 1
            yield block

    def fit(self, **settings: Any) -> list[Result]:
        source = StreamSource(BlockStream(self))
        self.readings = self.blocks_read = 0
        return fit_classes(source, replace(Settings(tol=1e-3), **settings))


@pytest.mark.parametrize("solver", ["block-dcd", "smoothed-newton", "sgd-s", "auto"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_classes_share_each_reading_of_a_stream(solver: str, n_jobs: int) -> None:
    counted = Counted()
    results = counted.fit(solver=solver, max_iter=30, tol=1e-4, n_jobs=n_jobs)
    assert len({result.passes for result in results}) > 1 or solver == "sgd-s"
    alone = []
    for i, seed in enumerate(np.random.SeedSequence(0).spawn(3)):
        stream = BlockStream(counted)
        counted.readings = counted.blocks_read = 0
        problem = StreamSource(stream).problem(i, Objective())
        settings = Settings(tol=1e-4, max_iter=30)
        alone.append((train(problem, solver, settings, seed=seed), counted.blocks_read))
    # The same bits as alone, in as many readings as the one that takes most.
    assert [r.w.tobytes() for r, _ in alone] == [r.w.tobytes() for r in results]
    counted.fit(solver=solver, max_iter=30, tol=1e-4, n_jobs=n_jobs)
    assert counted.blocks_read == max(blocks for _, blocks in alone)


def test_without_memory_for_all_classes_some_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    source = StreamSource(BlockStream(counted, cache_bytes=200_000))
    assert source.at_once(BlockDCD(), 1) == 2
    counted.readings = 0
    results = fit_classes(source, Settings(solver="block-dcd", tol=1e-4))
    assert all(result.certificate.met for result in results)
    longest = max(result.passes for result in results)
    assert longest < counted.readings < sum(result.passes for result in results)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, RunLostError])
def test_who_fails_in_a_pass_leaves_it(error: type[BaseException]) -> None:
    class Failing(StreamSource):
        def problem(self, i: int, objective: Objective) -> Any:
            problem = super().problem(i, objective)
            if i == 1:
                # What the error's traceback keeps alive does not end by itself.
                parts = problem.parts()
                next(parts)
                raise error("in the midst of a pass")
            return problem

    source = Failing(BlockStream(Counted()))
    settings = Settings(solver="sgd-s", tol=0.0, max_iter=5)
    if error is ValueError:
        with pytest.raises(error, match="midst"):
            fit_classes(source, settings)
        return
    results = fit_classes(source, settings)
    assert results[1].passes == 0
    assert all(result.passes > 0 for result in (results[0], results[2]))


def test_without_a_thread_for_each_class_none_waits_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(thread: threading.Thread, start: Any = threading.Thread.start) -> None:
        if thread.name.endswith("_2"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="new thread"):
        Counted().fit(solver="block-dcd", max_iter=3)


def test_a_stream_that_changes_is_an_error_of_all() -> None:
    counted = Counted()
    source = StreamSource(BlockStream(counted))
    counted._blocks.pop()
    with pytest.raises(DataChangedError, match="from block 5 of 5 on"):
        fit_classes(source, Settings(solver="block-dcd"))


def test_a_class_that_was_not_trained_has_a_true_certificate() -> None:
    X, y = several()
    weights = np.linspace(0.1, 3.0, len(y))
    source = MemorySource(X, y, weights, class_weight="balanced")
    result = fit_classes(source, replace(SLOW.at(0.5), observers=[Interrupting("b", 2)]))[2]
    exact = 0.5 * float((np.where(y == source.classes[2], source.factors[2], 1.0) * weights).sum())
    assert result.certificate.primal == pytest.approx(exact, rel=1e-13)
    assert result.certificate.C == 0.5
    assert np.isinf(result.certificate.proved_gap)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_column_of_labels_that_was_not_trained_has_a_true_certificate(weighted: bool) -> None:
    """A row may be of no class, or of several: its weight counts once in each problem."""
    X, y = several()
    columns = np.stack([y == "a", y == "b", np.zeros(len(y))], axis=1).astype(np.int64)
    weights = np.linspace(0.1, 3.0, len(y)) if weighted else None
    source = MemorySource(X, columns, weights, class_weight={0: 2.5} if weighted else None)
    stop = threading.Event()
    stop.set()
    for i, result in enumerate(fit_classes(source, replace(SLOW.at(0.5), stop=stop))):
        exact = 0.5 * source.problem(i, SLOW.objective).weights.sum()
        assert result.passes == 0
        assert result.certificate.primal == pytest.approx(exact, rel=1e-13)


class Lossy(MemorySource):
    """Loses the data of its second class."""

    def problem(self, i: int, objective: Objective) -> Any:
        if i == 1:
            raise RunLostError("gone")
        return super().problem(i, objective)


def test_what_is_lost_costs_only_its_class() -> None:
    results = fit_classes(Lossy(*several()), SLOW)
    assert results[1].reason == f"{LOST}: gone"
    assert [result.passes for result in results] == [4, 0, 4]


def test_if_all_is_lost_the_error_is_raised() -> None:
    class Hopeless(Lossy):
        def problem(self, i: int, objective: Objective) -> Any:
            return super().problem(1, objective)

    with pytest.raises(RunLostError, match="gone"):
        fit_classes(Hopeless(*several()), SLOW)


@pytest.mark.parametrize("level", ["WARNING", "INFO", "DEBUG"])
def test_fits_and_passes_are_logged(level: str, caplog: pytest.LogCaptureFixture) -> None:
    X, y = several()
    with caplog.at_level(level, logger="certsvm"):
        results = fit_classes(MemorySource(X, y), Settings(solver="dcd", tol=0.01))
    shown = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    passes = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    assert len(shown) == (0 if level == "WARNING" else 3)
    assert len(passes) == (sum(r.passes for r in results) if level == "DEBUG" else 0)
    for label, result, line in zip("abc", results, shown, strict=False):
        assert line.startswith(f"class {label}: ")
        assert line.endswith(str(result.certificate))


def test_a_stop_that_is_set_trains_nothing() -> None:
    stop = threading.Event()
    stop.set()
    results = fit_classes(MemorySource(*several()), replace(SLOW, stop=stop))
    assert [result.passes for result in results] == [0, 0, 0]


def test_each_class_has_a_random_stream_of_its_own() -> None:
    class Seeds(MemorySource):
        """The same problem three times."""

        def problem(self, i: int, objective: Objective) -> Any:
            return super().problem(0, objective)

    X, y = several()
    settings = Settings(solver="sgd-s", max_iter=20, tol=0.0)
    results = fit_classes(Seeds(X, y), settings)
    assert len({result.w.tobytes() for result in results}) == 3
    again = fit_classes(Seeds(X, y), settings)
    assert [r.w.tobytes() for r in again] == [r.w.tobytes() for r in results]


def test_an_error_in_one_class_stops_the_others() -> None:
    passes = []

    class Failing(Observer):
        def begin(self, i: int, label: Any, problem: Any) -> Sequence[Any]:
            if label == "a":
                raise ValueError("no")
            return [lambda progress: passes.append(progress.record.passes)]

    settings = Settings(solver="sgd-s", tol=0.0, max_iter=100_000, n_jobs=2)
    with pytest.raises(ValueError, match="no"):
        fit_classes(MemorySource(*several()), replace(settings, observers=[Failing()]))
    assert len(passes) < 100_000


def test_an_interrupt_while_finishing_keeps_the_result() -> None:
    def finish(i: int, problem: Any, result: Any) -> Any:
        raise KeyboardInterrupt

    results = fit_classes(MemorySource(*several()), SLOW, finish=finish)
    assert [result.passes for result in results] == [4, 0, 0]
    assert results[0].reason == INTERRUPTED
