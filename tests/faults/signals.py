"""Commands that are killed or interrupted at random moments."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import certsvm
from tests.cli.running import Ran
from tests.faults.tally import (
    HANG,
    INTERRUPTED,
    Budget,
    Tally,
    attempt,
    begin,
    complaint,
    contents,
    ended,
)
from tests.faults.writers import Writer, prepared

LIBRARY = str(Path(certsvm.__file__).parent)
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def campaign(
    seed: int, budget: Budget, folder: Path, names: tuple[str, ...] | None = None
) -> Tally:
    tally = Tally("signals")
    writers = prepared(folder, names)
    for k in budget.rounds():
        r = random.Random(f"{seed} signals {k}")
        one_signal(writers[k % len(writers)], SIGNALS[k // len(writers) % 3], r, folder, tally)
    return tally


def one_signal(
    writer: Writer, number: signal.Signals, r: random.Random, folder: Path, tally: Tally
) -> None:
    writer.clear(folder)
    old = writer.put_old(folder, r)
    process = begin(*writer.words, cwd=folder)
    wait(process, r, writer, folder)
    ready = catches(process.pid, signal.SIGTERM)
    process.send_signal(number)
    ran = ended(process, 60)
    if ran is None:
        tally.add(writer.name, HANG, f"goes on for a minute after {number.name}")
        return
    if ran.code == -signal.SIGINT and ran.err == "interrupted\n":
        # Python ends so if the interrupt came in an ``exec``, which dataclasses use, although it
        # was handled. Shells report 130 either way.
        ran = Ran(INTERRUPTED, ran.out, ran.err)
    found = contents(folder, "out")
    outcome = writer.outcome(folder, found, old)
    wrong = None
    if outcome is None:
        wrong = f"the output is neither old nor complete (exit code {ran.code}, {ran.err[-300:]})"
    elif number != signal.SIGKILL or ran.code >= 0:
        wrong = complaint(ran, (writer.code, 3, INTERRUPTED) if writer.data else (0, INTERRUPTED))
        # Before a command has begun, signals do what they do in any Python program; before Python
        # has, SIGINT ends it with a traceback and another code.
        starting = "KeyboardInterrupt" in ran.err and LIBRARY not in ran.err
        usual = ran.code in (-signal.SIGINT, -signal.SIGTERM, INTERRUPTED)
        if not ready and (starting or usual):
            wrong = None
        left = [name for name in found if name.startswith(".")]
        if left:
            wrong = f"{left} were left behind"
        if ran.code in (0, 3) and outcome != "complete":
            wrong = f"exit code {ran.code}, and the output is {outcome}"
    if wrong is None and writer.resumes:
        again = attempt(*writer.words, cwd=folder)
        wrong = complaint(again, (0, 3))
        if wrong is None and writer.outcome(folder, contents(folder, "out"), {}) != "complete":
            wrong = "resumed to a model that does not verify"
        outcome = f"{outcome}, then resumed"
    tally.add(writer.name, f"{number.name}: output {outcome}", wrong)


def wait(process: subprocess.Popen[bytes], r: random.Random, writer: Writer, folder: Path) -> None:
    """Wait for a random time, or until a file is being written."""
    at_writing = r.random() < 0.4
    end = time.monotonic() + (60.0 if at_writing else r.uniform(0.0, 1.05 * writer.seconds))
    while process.poll() is None and time.monotonic() < end:
        if at_writing and any(folder.glob(".out*")):
            return
        time.sleep(0.0005)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal; True where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (number - 1) & 1)
