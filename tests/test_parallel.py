"""Threads: nothing is left out, nothing is hidden, nothing stays changed."""

import itertools
import threading

import pytest
from threadpoolctl import threadpool_info

from certsvm.parallel import ALONE, Team, available_processors, single_threaded_blas


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


def test_an_error_in_a_thread_is_raised() -> None:
    def task(first: int, last: int) -> None:
        raise ValueError(f"piece {first}")

    with Team(2) as team, pytest.raises(ValueError, match="piece"):
        team.share(task, 2)


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


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_results_of_a_map_are_in_order(n_jobs: int) -> None:
    with Team(n_jobs) as team:
        assert team.map(lambda a, b: a + b, "abc", "xyz") == ["ax", "by", "cz"]
        assert team.map(str, []) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_of_several_errors_the_first_is_raised(n_jobs: int) -> None:
    def fail(name: str) -> None:
        raise ValueError(name)

    with Team(n_jobs) as team, pytest.raises(ValueError, match="first"):
        team.map(fail, ["first", "second", "third"])


def test_processors() -> None:
    assert available_processors() >= 1
