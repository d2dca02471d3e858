"""Data with too many columns are refused before anything of their width is allocated."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import scipy.sparse as sp

from certsvm import LinearSVC, Problem, Rows, bound, compare, fit_stream, resources, train
from certsvm.resources import NotEnoughMemoryError, available_memory
from certsvm.solvers import SGDs
from tests.cli.running import run_process as run
from tests.platforms import linux

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
    with pytest.raises(NotEnoughMemoryError):
        LinearSVC().fit(X, y)
    with pytest.raises(NotEnoughMemoryError):
        LinearSVC().partial_fit(X, y, classes=[-1, 1])
    with pytest.raises(NotEnoughMemoryError):
        compare(X, y)
    with pytest.raises(NotEnoughMemoryError):
        fit_stream(lambda: [(X, y)])
    with pytest.raises(NotEnoughMemoryError):
        train(Problem(Rows(X), y), SGDs())
    with pytest.raises(NotEnoughMemoryError):
        bound(np.zeros(X.shape[1]), X, y, C=1.0)


def test_the_least_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, swap = SimpleNamespace(available=300 * 1024), SimpleNamespace(free=100 * 1024)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(psutil, "swap_memory", lambda: swap)
    monkeypatch.setattr(resources, "_CGROUPS", str(tmp_path / "cgroups"))
    monkeypatch.setattr(resources, "_OWN_CGROUPS", str(tmp_path / "own"))
    monkeypatch.setattr(resources, "limits_of_process", dict)
    assert available_memory() == 400 * 1024
    (tmp_path / "own").write_text("4:memory:/a/b\n0::/c/d\n")
    inner = tmp_path / "cgroups" / "c" / "d"
    inner.mkdir(parents=True)
    (inner.parent / "memory.max").write_text("90000")
    (inner.parent / "memory.current").write_text("50000")
    (inner.parent / "memory.stat").write_text("file 3\ninactive_file 10000\n")
    assert available_memory() == 50_000
    (inner / "memory.max").write_text("max\n")
    assert available_memory() == 50_000
    (inner / "memory.max").write_text("7000\n")
    (inner / "memory.current").write_text("6000\n")
    (inner / "memory.stat").write_text("inactive_file 500\n")
    assert available_memory() == 1500


@pytest.mark.usefixtures("small_machine")
def test_many_classes_need_more() -> None:
    X = sp.csr_matrix(np.eye(20, 40_000))
    LinearSVC().fit(X, np.arange(20) % 2)
    with pytest.raises(NotEnoughMemoryError, match="24 vectors"):
        LinearSVC().fit(sp.csr_matrix(np.eye(20, 60_000)), np.arange(20))
