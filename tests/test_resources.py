"""Threads leave nothing out, passes are cut short, and memory is asked for first."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from certsvm import LinearSVC, Problem, Rows, bound, compare, fit_stream, resources, train
from certsvm.resources import NotEnoughMemoryError, require_time, single_threaded_blas
from certsvm.solvers import SGDs, directions
from tests.cli.running import run_process as run
from tests.platforms import linux


def blas() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("pieces", [0, 1, 2, 7])
def test_every_piece_is_done_once(n_jobs: int, pieces: int) -> None:
    with resources.Team(n_jobs) as team:
        done = team.share(lambda first, last: list(range(first, last)), pieces)
    assert list(itertools.chain(*done)) == list(range(pieces))
    assert len(done) <= max(1, min(n_jobs, pieces))


def test_a_team_uses_threads_and_leaves_none_behind() -> None:
    names = set()
    barrier = threading.Barrier(2, timeout=10)

    def task(first: int, last: int) -> None:
        barrier.wait()
        names.add(threading.current_thread().name)

    with resources.Team(2) as team:
        team.share(task, 2)
    assert len(names) == 2
    assert not any(thread.name.startswith("certsvm_") for thread in threading.enumerate())
    resources.ALONE.share(lambda first, last: names.add(threading.current_thread().name), 5)
    assert threading.current_thread().name in names


def test_blas_has_its_threads_back_when_the_last_fit_ends() -> None:
    before = blas()
    with single_threaded_blas():
        assert set(blas()) <= {1}
        with single_threaded_blas():
            assert set(blas()) <= {1}
        assert set(blas()) <= {1}
    assert blas() == before
    with pytest.raises(RuntimeError), single_threaded_blas():
        raise RuntimeError
    assert blas() == before


@pytest.fixture
def two_threads() -> Iterator[None]:
    """BLAS with two threads, even on a machine with one processor."""
    with threadpool_limits(limits=2, user_api="blas"):
        if set(blas()) != {2}:
            pytest.skip("BLAS has no threads here")
        yield


def in_thread(task: Callable[[], None]) -> None:
    """Run the task in a new thread, and raise its error here."""
    with ThreadPoolExecutor(1) as executor:
        executor.submit(task).result(timeout=60)


def fit(n_jobs: int = 1) -> None:
    # Enough columns for LAPACK: smaller systems have a kernel.
    X = np.random.default_rng(0).standard_normal((120, 40))
    y = np.arange(120) % 3
    LinearSVC(solver="newton", n_jobs=n_jobs, tol=1e-6).fit(X, y)


def test_blas_has_one_thread_in_fits(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # The threads that factorise, and the limits that they see.
    seen: list[tuple[str, list[int]]] = []
    solve = directions.dposv

    def dposv(*arguments: Any, **options: Any) -> Any:
        seen.append((threading.current_thread().name, blas()))
        return solve(*arguments, **options)

    monkeypatch.setattr(directions, "dposv", dposv)
    fit()
    main = len(seen)
    assert main > 0
    in_thread(fit)
    assert len(seen) > main
    fit(n_jobs=2)
    with ThreadPoolExecutor(3) as executor:
        for future in [executor.submit(fit) for _ in range(6)]:
            future.result(timeout=60)
    names = {name for name, _ in seen}
    assert len(names) >= 4
    assert all(set(numbers) == {1} for _, numbers in seen)
    assert set(blas()) == {2}
    in_thread(lambda: seen.append(("after", blas())))
    assert seen[-1] == ("after", blas())


def test_limits_hold_inside_and_not_afterwards() -> None:
    stop = threading.Event()
    with resources.pass_limits(60.0, stop):
        require_time()
        stop.set()
        with pytest.raises(resources.PassCutError):
            require_time()
    require_time()


WIDEST = 2**31 - 1
TEXT = f"1 1:1\n\n-1 {WIDEST}:1\n"


def wide(n_columns: int = 2_000_000) -> tuple[sp.csr_matrix, np.ndarray]:
    X = sp.csr_matrix(([1.0, 1.0], [0, n_columns - 1], [0, 1, 2]), shape=(2, n_columns))
    return X, np.array([1, -1])


def little_memory() -> None:
    import resource

    # Enough for interpreter and compiler, too little for a vector.
    resource.setrlimit(resource.RLIMIT_AS, (8 * 10**9, 8 * 10**9))


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available_memory", lambda: 10**7)
    monkeypatch.setattr(resources, "_ALWAYS_GRANTED", 10**6)


@linux
@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_single_large_index_is_refused_by_the_command(command: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    done = run(command, "data", cwd=tmp_path, preexec=little_memory)
    assert done.code == 2
    assert "2,147,483,647 columns" in done.err
    assert "GB are available" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.usefixtures("small_machine")
def test_every_way_to_train_asks_for_room() -> None:
    X, y = wide()
    ways: list[Callable[[], Any]] = [
        lambda: LinearSVC().fit(X, y),
        lambda: LinearSVC().partial_fit(X, y, classes=[-1, 1]),
        lambda: compare(X, y),
        lambda: fit_stream(lambda: [(X, y)]),
        lambda: train(Problem(Rows(X), y), SGDs()),
        lambda: bound(np.zeros(X.shape[1]), X, y, C=1.0),
    ]
    for way in ways:
        with pytest.raises(NotEnoughMemoryError):
            way()


def test_the_least_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, swap = SimpleNamespace(available=300 * 1024), SimpleNamespace(free=100 * 1024)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(psutil, "swap_memory", lambda: swap)
    monkeypatch.setattr(resources, "_CGROUPS", str(tmp_path / "cgroups"))
    monkeypatch.setattr(resources, "_OWN_CGROUPS", str(tmp_path / "own"))
    monkeypatch.setattr(resources, "limits_of_process", dict)
    assert resources.available_memory() == 400 * 1024
    (tmp_path / "own").write_text("4:memory:/a/b\n0::/c/d\n")
    inner = tmp_path / "cgroups" / "c" / "d"
    inner.mkdir(parents=True)
    (inner.parent / "memory.max").write_text("90000")
    (inner.parent / "memory.current").write_text("50000")
    (inner.parent / "memory.stat").write_text("file 3\ninactive_file 10000\n")
    assert resources.available_memory() == 50_000
    (inner / "memory.max").write_text("max\n")
    assert resources.available_memory() == 50_000
    (inner / "memory.max").write_text("7000\n")
    (inner / "memory.current").write_text("6000\n")
    (inner / "memory.stat").write_text("inactive_file 500\n")
    assert resources.available_memory() == 1500


@pytest.mark.usefixtures("small_machine")
def test_many_classes_need_more() -> None:
    X = sp.csr_matrix(np.eye(20, 40_000))
    LinearSVC().fit(X, np.arange(20) % 2)
    with pytest.raises(NotEnoughMemoryError, match="24 vectors"):
        LinearSVC().fit(sp.csr_matrix(np.eye(20, 60_000)), np.arange(20))
