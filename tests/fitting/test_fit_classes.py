"""The loop over classes: seeds, threads, interruption, observers, for all kinds of data."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from certsvm.files.streams import BlockStream
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource, Source, StreamSource
from certsvm.problem.base import Objective
from certsvm.solvers.base import RunLostError
from certsvm.training.settings import INTERRUPTED, LOST, Observer, Settings

KINDS = ["memory", "stream"]


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [0, 2])
def test_an_interrupt_keeps_the_classes_before(kind: str, passes: int) -> None:
    observer = Interrupting("b", passes)
    results = fit_classes(source_of(kind, *several()), replace(SLOW, observers=[observer]))
    assert [result.passes for result in results] == [4, passes, 0]
    assert [result.reason == INTERRUPTED for result in results] == [False, True, True]
    assert results[0].w.any()
    assert not results[2].w.any()
    assert results[2].certificate.dual == 0.0
    assert not results[2].certificate.met
    assert observer.ended == [("a", 4), ("b", passes), ("c", 0)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_before_anything_is_known_is_raised(kind: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit_classes(source_of(kind, *several()), replace(SLOW, observers=[Interrupting("a", 0)]))


def test_a_class_that_was_not_trained_has_a_true_certificate() -> None:
    X, y = several()
    weights = np.linspace(0.1, 3.0, len(y))
    source = MemorySource(X, y, weights, class_weight="balanced")
    result = fit_classes(source, replace(SLOW.at(0.5), observers=[Interrupting("b", 2)]))[2]
    exact = 0.5 * float((np.where(y == source.classes[2], source.factors[2], 1.0) * weights).sum())
    assert result.certificate.primal == pytest.approx(exact, rel=1e-13)
    assert result.certificate.C == 0.5
    assert np.isinf(result.certificate.proved_gap)


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
    assert len(shown) == (0 if level == "WARNING" else 4)
    assert len(passes) == (sum(r.passes for r in results) if level == "DEBUG" else 0)
    for label, result, line in zip("abc", results, shown, strict=False):
        assert line.startswith(f"class {label}: ")
        assert line.endswith(str(result.certificate))
    assert all(line.startswith("3 classes, 3 targets met") for line in shown[3:])


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
