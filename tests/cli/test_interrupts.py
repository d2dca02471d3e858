"""Signals at any moment of a command."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from certsvm import Model
from certsvm.cli.interrupts import comes_from_interrupt
from tests.cli.running import arguments, run, write
from tests.platforms import linux

pytestmark = linux


def wait_until_handled(process: subprocess.Popen[bytes]) -> None:
    """Return when the command has taken over SIGTERM; before that, the system's default holds."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            if int(status.split("SigCgt:")[1].split()[0], 16) & bit:
                return
        time.sleep(0.0005)


def interrupted_at(
    seconds: float, number: signal.Signals, *words: object, cwd: Path
) -> tuple[int, str]:
    process = subprocess.Popen(
        arguments(*words), cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    wait_until_handled(process)
    time.sleep(seconds)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "words",
    [("train", "data", "-o", "out", "-q"), ("predict", "model", "data", "-o", "out", "-q"),
     ("convert", "data", "out", "-q")],
)  # fmt: skip
def test_a_signal_at_any_moment(
    words: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    write(tmp_path / "data", n_rows=500)
    run("train", "data", "-o", "model", "-q", cwd=tmp_path)
    began = time.monotonic()
    assert run(*words, cwd=tmp_path).code == 0
    length = time.monotonic() - began
    complete = (tmp_path / "out").read_bytes()
    names = {path.name for path in tmp_path.iterdir()}
    rng = np.random.default_rng(int(number))
    codes = set()
    # Early, when everything is imported, and late, when the interpreter ends.
    for share in [0.0, *rng.uniform(0, 1.1, size=3)]:
        code, err = interrupted_at(float(share * length), number, *words, cwd=tmp_path)
        codes.add(code)
        assert code in (0, 3, 130), err
        assert "Traceback" not in err
        assert "ignored" not in err
        assert ("interrupted" in err) == (code == 130), err
        assert {path.name for path in tmp_path.iterdir()} == names
        if words[0] == "train":
            Model.load(tmp_path / "out")
        else:
            assert (tmp_path / "out").read_bytes() == complete
    # The other two have hardly anything to do once everything is imported.
    assert 130 in codes or words[0] != "train"


def test_a_job_that_ignores_ctrl_c_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "data")
    process = subprocess.Popen(
        arguments("train", "data", "-o", "m", "-q"), cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    wait_until_handled(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_errors_that_come_from_an_interrupt() -> None:
    interrupt, error, other = KeyboardInterrupt(), ValueError(), RuntimeError()
    assert comes_from_interrupt(interrupt)
    assert not comes_from_interrupt(error)
    # Each is the cause of the other.
    error.__cause__, other.__cause__ = other, error
    assert not comes_from_interrupt(error)
    other.__context__ = interrupt
    assert comes_from_interrupt(error)
