"""Threads: nothing is left out, nothing is hidden, nothing stays changed."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from certsvm import LinearSVC
from certsvm.parallel import ALONE, Team, single_threaded_blas
from certsvm.solvers import directions


def blas() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("pieces", [0, 1, 2, 7])
def test_every_piece_is_done_once(n_jobs: int, pieces: int) -> None:
    with Team(n_jobs) as team:
        done = team.share(lambda first, last: list(range(first, last)), pieces)
    assert list(itertools.chain(*done)) == list(range(pieces))
    assert len(done) <= max(1, min(n_jobs, pieces))


def test_a_team_uses_threads_and_leaves_none_behind() -> None:
    names = set()
    barrier = threading.Barrier(2, timeout=10)

    def task(first: int, last: int) -> None:
        barrier.wait()
        names.add(threading.current_thread().name)

    with Team(2) as team:
        team.share(task, 2)
    assert len(names) == 2
    assert not any(thread.name.startswith("certsvm_") for thread in threading.enumerate())
    ALONE.share(lambda first, last: names.add(threading.current_thread().name), 5)
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


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[int]]]:
    """The threads that factorise, and the limits that they see."""
    seen: list[tuple[str, list[int]]] = []
    solve = directions.dposv

    def dposv(*arguments: Any, **options: Any) -> Any:
        seen.append((threading.current_thread().name, blas()))
        return solve(*arguments, **options)

    monkeypatch.setattr(directions, "dposv", dposv)
    return seen


def fit(n_jobs: int = 1) -> None:
    # Enough columns for LAPACK: smaller systems have a kernel.
    X = np.random.default_rng(0).standard_normal((120, 40))
    y = np.arange(120) % 3
    LinearSVC(solver="newton", n_jobs=n_jobs, tol=1e-6).fit(X, y)


def test_blas_has_one_thread_in_fits_of_all_threads(
    two_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watched(monkeypatch)
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
