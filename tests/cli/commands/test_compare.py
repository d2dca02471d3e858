"""Comparing solvers from the shell, and what is shown meanwhile."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import arguments, noisy, refuse, run, write


def test_comparing(tmp_path: Path) -> None:
    write(tmp_path / "data")
    words = "compare data --solvers auto,dcd,pegasos --max-iter 20 --json"
    table = run(words, cwd=tmp_path).json["table"]
    assert [row["solver"] for row in table] == ["auto", "dcd", "pegasos"]


def test_more_than_two_classes(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    words = ("compare", "data", "--solvers", "dcd", "--json")
    refuse("data has 3 classes (0, 1, 2)", *words, cwd=tmp_path)
    found = [run(*words, "--positive", k, cwd=tmp_path).json["primal"] for k in range(3)]
    assert len(set(found)) == 3
    refuse("there is no class 7; there are 0, 1, 2", *words, "--positive", "7", cwd=tmp_path)


def _on_a_terminal(*words: object, cwd: Path) -> tuple[int, bytes]:
    """Run a command whose standard error is a terminal, and return what it showed there."""
    terminal, line = os.openpty()
    process = subprocess.Popen(
        arguments(*words), cwd=cwd, stderr=line, stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(line)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 1 << 16)
        except OSError:
            break
    process.communicate(timeout=60)
    os.close(terminal)
    return process.returncode, shown


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_live_line_on_a_terminal(tmp_path: Path) -> None:
    write(tmp_path / "data")
    how = "--tol 1e-12 --max-iter 20000"
    code, shown = _on_a_terminal(f"train data --solver sgd-s {how}", cwd=tmp_path)
    assert code in (0, 3)
    assert b"training: pass" in shown
    code, shown = _on_a_terminal(f"compare data --solvers sgd-s {how}", cwd=tmp_path)
    assert code == 0
    assert b"sgd-s: pass" in shown


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_notes_and_ended_classes_on_a_terminal(tmp_path: Path) -> None:
    X, y = noisy(n_classes=3)
    rows = np.column_stack([X.toarray(), y])
    names = ",".join([*(f"f{j}" for j in range(X.shape[1])), "label"])
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header=names, comments="")
    words = "train t.csv --solver sgd-s --tol 1e-12 --max-iter 3000 --n-jobs 1"
    code, shown = _on_a_terminal(words, cwd=tmp_path)
    assert code == 3
    # A note is on a line of its own, which is cleared before.
    assert b"\x1b[2Kt.csv: labels are in column" in shown
    assert b"class 0" not in shown[shown.index(b"class 2") :]
