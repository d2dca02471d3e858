"""Full disks, folders that cannot be written to, little memory, and two writers of one file."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.cli.running import Ran
from tests.faults.tally import REFUSED, Budget, Tally, attempt, begin, complaint, contents, ended
from tests.faults.writers import PASSES, Writer, prepared


def campaign(
    seed: int, budget: Budget, folder: Path, names: tuple[str, ...] | None = None
) -> Tally:
    tally = Tally("limits")
    writers = prepared(folder, names)
    kinds: list[Callable[[Writer, random.Random, Path, Tally], None]] = [
        full_disk, little_memory, read_only, two_writers
    ]  # fmt: skip
    for k in budget.rounds():
        r = random.Random(f"{seed} limits {k}")
        kinds[k % 4](writers[k // 4 % len(writers)], r, folder, tally)
    return tally


def limited(kind: int, size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (size, size))


def judged(
    tried: str,
    writer: Writer,
    ran: Ran | None,
    folder: Path,
    old: dict[str, bytes],
    tally: Tally,
    codes: tuple[int, ...] | None = None,
) -> None:
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
    ran = attempt(*writer.words, cwd=folder, preexec=limited(resource.RLIMIT_FSIZE, size))
    judged("full disk", writer, ran, folder, old, tally)


def little_memory(writer: Writer, r: random.Random, folder: Path, tally: Tally) -> None:
    writer.clear(folder)
    size = int(
        r.choice([100, 400, 800, 1200, 1220, 1240, 1300, 1500, 2000]) * r.uniform(1e6, 1.05e6)
    )
    ran = attempt(*writer.words, cwd=folder, preexec=limited(resource.RLIMIT_AS, size))
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
    if wrong is None and not (
        found.keys() == {"out"} and Writer("", words, "data").verified(folder)
    ):
        wrong = f"{sorted(found)} remain, and are of neither run"
    tally.add("two writers", "the file of one of them", wrong)
