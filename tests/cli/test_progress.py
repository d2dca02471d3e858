"""Progress on a terminal and elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from certsvm.cli.progress import TimeEstimate
from tests.cli.running import arguments, write


def test_the_limit_bounds_the_estimate() -> None:
    estimate = TimeEstimate(1e-9, 10.0)
    assert estimate.seconds_left(1.0, float("inf")) == 9.0
    assert [estimate.seconds_left(s, 0.5**s) for s in (1.0, 2.0, 4.0)] == [9.0, 8.0, 6.0]
    assert estimate.seconds_left(12.0, 0.5**12) == 0.0


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_live_line_on_a_terminal(tmp_path: Path) -> None:
    write(tmp_path / "data")
    terminal, line = os.openpty()
    process = subprocess.Popen(
        arguments("train", "data", "--solver", "sgd-s", "--tol", "1e-9", "--max-iter", "50"),
        cwd=tmp_path, stderr=line, stdout=subprocess.PIPE,
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
    assert process.returncode in (0, 3)
    assert b"passes/s" in shown
