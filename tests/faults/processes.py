"""Commands that are killed or interrupted, lack disk or memory, or write to the same file."""

import ctypes
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import certsvm
from tests.cli.running import Ran, catches, limited
from tests.faults import tally as endings
from tests.faults.tally import REFUSED, Budget, Tally, attempt, begin, complaint, contents, ended
from tests.faults.writers import PASSES, Writer, prepared

LIBRARY = str(Path(certsvm.__file__).parent)
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
Names = tuple[str, ...] | None


def signals(seed: int, budget: Budget, folder: Path, names: Names = None) -> Tally:
    """Signals at random moments."""
    tally = Tally("signals")
    writers = prepared(folder, names)
    for k in budget.rounds():
        r = random.Random(f"{seed} signals {k}")
        one_signal(writers[k % len(writers)], SIGNALS[k // len(writers) % 3], r, folder, tally)
    return tally


def limits(seed: int, budget: Budget, folder: Path, names: Names = None) -> Tally:
    """Full disks, folders that cannot be written to, little memory, two writers of one file."""
    tally = Tally("limits")
    writers = prepared(folder, names)
    kinds = [full_disk, little_memory, read_only, two_writers]
    for k in budget.rounds():
        r = random.Random(f"{seed} limits {k}")
        kinds[k % 4](writers[k // 4 % len(writers)], r, folder, tally)
    return tally


def one_signal(writer: Writer, number: int, r: random.Random, folder: Path, tally: Tally) -> None:
    writer.clear(folder)
    name, old = signal.Signals(number).name, writer.put_old(folder, r)
    process = begin(*writer.words, cwd=folder)
    wait(process, r, writer, folder)
    ready = catches(process.pid, signal.SIGTERM)
    process.send_signal(number)
    ran = ended(process, 60)
    if ran is None:
        tally.add(writer.name, endings.HANG, f"goes on for a minute after {name}")
        return
    if ran.code == -signal.SIGINT and ran.err == "interrupted\n":
        # Python ends so if the interrupt came in an ``exec``, which dataclasses use, although it
        # was handled. Shells report 130 either way.
        ran = Ran(endings.INTERRUPTED, ran.out, ran.err)
    found = contents(folder, "out")
    outcome = writer.outcome(folder, found, old)
    wrong = None
    if outcome is None:
        wrong = f"the output is neither old nor complete (exit code {ran.code}, {ran.err[-300:]})"
    elif number != signal.SIGKILL or ran.code >= 0:
        right = (writer.code, 3) if writer.data else (0,)
        wrong = complaint(ran, (*right, endings.INTERRUPTED))
        # Before a command has begun, signals do what they do in any Python program; before Python
        # has, SIGINT ends it with a traceback and another code.
        starting = "KeyboardInterrupt" in ran.err and LIBRARY not in ran.err
        usual = ran.code in (-signal.SIGINT, -signal.SIGTERM, endings.INTERRUPTED)
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
    tally.add(writer.name, f"{name}: output {outcome}", wrong)


def wait(process: subprocess.Popen[bytes], r: random.Random, writer: Writer, folder: Path) -> None:
    """Wait for a random time, or until a file is being written."""
    at_writing = r.random() < 0.4
    end = time.monotonic() + (60.0 if at_writing else r.uniform(0.0, 1.05 * writer.seconds))
    while process.poll() is None and time.monotonic() < end:
        if at_writing and any(folder.glob(".out*")):
            return
        time.sleep(0.0005)


def judged(
    tried: str, writer: Writer, ran: Ran | None, folder: Path, old: dict[str, bytes], tally: Tally,
    codes: tuple[int, ...] | None = None,
) -> None:  # fmt: skip
    """Record a run that either did its work or was refused without a trace."""
    wrong = complaint(ran, codes or (writer.code, REFUSED))
    found = contents(folder, "out")
    outcome = writer.outcome(folder, found, old)
    code = None if ran is None else ran.code
    if wrong is None and (
        outcome is None
        or any(name.startswith(".") for name in found)
        or (code != REFUSED and outcome != "complete")
        or (code == REFUSED and outcome != "complete" and found != old)
    ):
        wrong = f"exit code {code}, output {outcome}, files {sorted(found)}"
    tally.add(tried, f"exit code {code}, output {outcome}", wrong)


def full_disk(writer: Writer, r: random.Random, folder: Path, tally: Tally) -> None:
    """No file may grow beyond a size; a disk without room for the rest behaves so."""
    writer.clear(folder)
    old = writer.put_old(folder, r)
    size = r.randrange(int(1.2 * max(map(len, writer.whole.values()))))
    # Python ignores SIGXFSZ, so that writing fails with an error.
    ran = attempt(*writer.words, cwd=folder, preexec=limited(size))
    judged("full disk", writer, ran, folder, old, tally)


def little_memory(writer: Writer, r: random.Random, folder: Path, tally: Tally) -> None:
    writer.clear(folder)
    megabytes = r.choice([100, 400, 800, 1200, 1220, 1240, 1300, 1500, 2000])
    size = int(megabytes * r.uniform(1e6, 1.05e6))
    ran = attempt(*writer.words, cwd=folder, preexec=limited(size, "RLIMIT_AS"))
    judged("little memory", writer, ran, folder, {}, tally)


def without_override() -> None:
    """Take from root the right to write where its permissions forbid it; others have none."""
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
    if os.getuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
        raise PermissionError("the right to override permissions cannot be dropped")


def read_only(writer: Writer, r: random.Random, folder: Path, tally: Tally) -> None:
    """A folder that nobody may write to."""
    writer.clear(folder)
    old = writer.put_old(folder, r)
    folder.chmod(0o555)
    try:
        ran = attempt(*writer.words, cwd=folder, preexec=without_override)
    except subprocess.SubprocessError:
        tally.add("read-only folder", "skipped: root cannot be held back here")
        return
    finally:
        folder.chmod(0o755)
    judged("read-only folder", writer, ran, folder, old, tally, (REFUSED,))


def two_writers(writer: Writer, r: random.Random, folder: Path, tally: Tally) -> None:
    """Two runs with other C write to the same file: that of one of them remains."""
    writer.clear(folder)
    words = ("train", "data", *PASSES, "-q", "-o", "out")
    both = [begin(*words, "-c", c, cwd=folder) for c in (20, 30)]
    wrong = None
    for process in both:
        wrong = wrong or complaint(ended(process, 120), (0, 3))
    found = contents(folder, "out")
    one = found.keys() == {"out"} and Writer("", words, "data").verified(folder)
    if wrong is None and not one:
        wrong = f"{sorted(found)} remain, and are of neither run"
    tally.add("two writers", "the file of one of them", wrong)
