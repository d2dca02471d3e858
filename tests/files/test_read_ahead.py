"""Reading one item ahead."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.read_ahead import Reader


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "certsvm-read"]


@given(st.lists(st.integers(), max_size=20), st.integers(1, 3))
def test_the_same_items_in_every_pass(items: list[int], passes: int) -> None:
    reader = Reader()
    for _ in range(passes):
        assert list(reader.one_ahead(items)) == items


def test_one_item_ahead_and_no_further() -> None:
    read: list[int] = []
    third = threading.Event()

    def items() -> Iterator[int]:
        for i in range(10):
            read.append(i)
            if i == 2:
                third.set()
            yield i

    ahead = Reader().one_ahead(items())
    assert next(ahead) == 0
    assert next(ahead) == 1
    # Item 2 is read while item 1 is in use, and item 3 is not.
    assert third.wait(10)
    time.sleep(0.02)
    assert read == [0, 1, 2]
    ahead.close()


def test_errors_reach_the_caller_after_the_items_before_them() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    reader = Reader()
    ahead = reader.one_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)
    assert list(reader.one_ahead([5])) == [5]


def test_a_generator_is_closed_by_the_thread_that_reads_it() -> None:
    closed_in: list[threading.Thread] = []

    def items() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed_in.append(threading.current_thread())

    ahead = Reader().one_ahead(items())
    next(ahead)
    ahead.close()
    assert [thread.name for thread in closed_in] == ["certsvm-read"]


def test_a_pass_that_is_open_at_exit_does_not_keep_the_process_alive() -> None:
    code = (
        "from certsvm.files.read_ahead import Reader\n"
        "ahead = Reader().one_ahead(iter(range(10)))\n"
        "print(next(ahead))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=True, text=True
    )
    assert done.stdout == "0\n"


def test_two_passes_at_once() -> None:
    reader = Reader()
    first, second = reader.one_ahead(range(3)), reader.one_ahead("abc")
    assert list(zip(first, second, strict=True)) == [(0, "a"), (1, "b"), (2, "c")]


def test_the_thread_ends_with_its_reader() -> None:
    gc.collect()
    before = set(readers())
    reader = Reader()
    (thread,) = set(readers()) - before
    del reader
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
