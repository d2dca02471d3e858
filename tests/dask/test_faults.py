"""Workers that are killed, stopped or gone, a scheduler that is gone, data that changes."""

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from dask import delayed
from distributed import Client
from sklearn.base import clone

import certsvm
from certsvm.dask import ClusterLostError, LinearSVC
from certsvm.dask.cluster import ClusterProblem
from certsvm.files.streams import DataChangedError
from certsvm.solvers.smoothed_newton import SmoothedNewton
from certsvm.training.settings import Observer
from tests.dask.conftest import make_cluster, processes
from tests.dask.problems import blocks, cut, data
from tests.platforms import posix

pytestmark = posix


@pytest.fixture
def mortals(patience: None) -> Iterator[Client]:
    """Three workers that are started again when they die."""
    cluster = make_cluster(3)
    client = Client(cluster)
    client.run(_slowly, None)  # What workers have to import takes longer than a deadline.
    yield client
    # A cluster of which much was killed may not answer.
    for part in (client, cluster):
        with contextlib.suppress(Exception):
            part.close(timeout=10)


class Killer:
    """Kills workers at random moments while it is entered."""

    def __init__(self, client: Client, seed: int) -> None:
        self._random = random.Random(seed)
        self._client = client
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.killed = 0

    def _work(self) -> None:
        victims = self._random.choice([1, 1, 2])
        while self.killed < victims and not self._stop.wait(self._random.uniform(0.0, 1.2)):
            # It may have been killed already, or not be up again yet.
            with contextlib.suppress(Exception):
                os.kill(self._random.choice(processes(self._client)), signal.SIGKILL)
                self.killed += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("run", range(6))
def test_killed_workers_cost_nothing_but_time(mortals: Client, run: int) -> None:
    X, y, parts, labels = blocks()
    solver = ("smoothed-newton", "cocoa")[run % 2]
    clf = LinearSVC(0.01, tol=1e-3, solver=solver, random_state=run, client=mortals, deadline=20.0)
    with Killer(mortals, run) as killer:
        try:
            # A fit may be over before the first worker is killed.
            while not killer.killed:
                clf = clone(clf)
                clf.fit(parts, labels)
        except ClusterLostError as error:
            # Allowed, if unlucky; but what it carries must be true.
            assert not hasattr(clf, "coef_")
            if error.model is None:
                return
            clf = error.model
    report = certsvm.verify(clf, X, y)
    assert report.ok, str(report)
    optimum = certsvm.LinearSVC(0.01, tol=1e-7, random_state=0).fit(X, y).certificate_
    assert clf.certificate_.dual <= optimum.primal * (1 + 1e-9)
    assert clf.certificate_.primal >= optimum.dual * (1 - 1e-9)


@pytest.mark.parametrize("solver", ["smoothed-newton", "cocoa"])
def test_all_workers_gone(patience: None, solver: str) -> None:
    _, _, parts, labels = blocks()
    with make_cluster(2) as cluster, Client(cluster) as client:
        clf = LinearSVC(
            1.0, tol=0.0, solver=solver, random_state=0, client=client, deadline=3.0,
            max_iter=10**6,
        )  # fmt: skip
        threading.Timer(2.0, lambda: cluster.scale(0)).start()
        with pytest.raises(ClusterLostError) as caught:
            clf.fit(parts, labels)
        assert not hasattr(clf, "coef_")
        model = caught.value.model
        if model is not None:
            assert 0 < model.certificate_.dual <= model.certificate_.primal
            assert certsvm.verify(model, np.concatenate(parts), np.concatenate(labels)).ok


def test_the_scheduler_is_gone(patience: None) -> None:
    _, _, parts, labels = blocks()
    cluster = make_cluster(2)
    client = Client(cluster)
    clf = LinearSVC(1.0, tol=0.0, solver="cocoa", client=client, deadline=5.0, max_iter=10**6)
    threading.Timer(2.0, cluster.close).start()
    with pytest.raises(ClusterLostError):
        clf.fit(parts, labels)
    client.close(timeout=2)


def test_a_stalled_worker(patience: None) -> None:
    _, _, parts, labels = blocks()
    with make_cluster(2) as cluster, Client(cluster) as client:
        victim = processes(client)[0]
        clf = LinearSVC(1.0, tol=0.0, solver="cocoa", client=client, deadline=4.0, max_iter=10**6)
        threading.Timer(2.0, lambda: os.kill(victim, signal.SIGSTOP)).start()
        try:
            with pytest.raises(ClusterLostError, match="4 s"):
                clf.fit(parts, labels)
        finally:
            os.kill(victim, signal.SIGKILL)


def _read(path: str) -> Any:
    return np.load(path)


def test_data_that_is_made_anew_and_differs(
    mortals: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, parts, labels = blocks(count=3)
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    for path, part in zip(paths, parts, strict=True):
        np.save(path, part)

    passes = 0

    def change_and_kill(_: Any) -> bool:
        """After the third round, when all blocks have been seen."""
        nonlocal passes
        passes += 1
        if passes == 3:
            for path, part in zip(paths, parts, strict=True):
                np.save(path, 2.0 * part)
            for process in processes(mortals)[:2]:
                os.kill(process, signal.SIGKILL)
        return False

    how: Any = {"tol": 0.0, "max_iter": 10**6, "max_time": 60, "deadline": 40.0}
    clf = LinearSVC(1.0, solver="cocoa", client=mortals, **how)
    sources = [delayed(_read, pure=False)(str(path)) for path in paths]

    class Changing(Observer):
        def begin(self, i: int, label: Any, problem: Any) -> list[Any]:
            return [change_and_kill]

    plain = LinearSVC._settings
    monkeypatch.setattr(
        LinearSVC, "_settings", lambda *given: replace(plain(*given), observers=[Changing()])
    )
    with pytest.raises((DataChangedError, ClusterLostError)) as caught:
        clf.fit(sources, labels)
    assert not hasattr(clf, "certificate_")
    model = getattr(caught.value, "model", None)
    if model is not None:
        # Workers did not come back: what was proved was about the rows as they were.
        assert certsvm.verify(model, np.concatenate(parts), np.concatenate(labels)).ok
    assert passes >= 3


def _missing(path: str) -> Any:
    raise FileNotFoundError(f"there is no {path}")


def test_an_error_of_a_task_is_not_taken_for_one_of_the_cluster(client: Client) -> None:
    _, _, parts, labels = blocks()
    broken = [*parts[:-1], delayed(_missing, pure=False)("file")]
    with pytest.raises(ValueError, match="a task has failed on a worker: there is no file"):
        LinearSVC(0.1, client=client).fit(broken, labels)


def _slowly(block: Any, *_: Any) -> Any:
    time.sleep(0.7)
    return block


def test_tasks_that_others_wait_for_count_as_progress(client: Client) -> None:
    """Here a chain of them, longer than the deadline, before there is a first block."""
    X, y, parts, labels = blocks(count=2)
    client.run(_slowly, None)  # What workers have to import takes longer.
    before = None
    for _ in range(9):
        before = delayed(_slowly, pure=False)(before)
    chained = [delayed(_slowly, pure=False)(part, before) for part in parts]
    clf = LinearSVC(0.1, random_state=0, client=client, deadline=5.0).fit(chained, labels)
    assert certsvm.verify(clf, X, y).ok


def test_classes_do_not_all_wait_for_a_lost_cluster(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data(400, columns=40, classes=40)
    asked = []

    def lost(self: Any, *_: Any, **__: Any) -> Any:
        asked.append(self)
        time.sleep(0.1)
        raise self.cluster._lost("it was unplugged")

    monkeypatch.setattr(ClusterProblem, "total", lost)
    with pytest.raises(ClusterLostError, match="unplugged"):
        LinearSVC(solver=SmoothedNewton(samples=False), client=client).fit(cut(X, 200), cut(y, 200))
    assert len(asked) <= 16
