"""What a campaign tried, what happened, and what was wrong."""

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.running import Ran, arguments
from tests.cli.running import run_process as run

MET, REFUTED, REFUSED, NOT_MET, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 4, 130
CODES = (MET, REFUTED, REFUSED, NOT_MET, UNDECIDED)
HANG = "timeout"


@dataclass
class Tally:
    """Counts of one kind of fault."""

    kind: str
    tried: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, tried: str, happened: str, wrong: str | None = None) -> None:
        self.tried[tried] += 1
        self.happened[f"WRONG: {happened}" if wrong else happened] += 1
        if wrong:
            self.wrong.append(f"{self.kind}, {tried}: {wrong}")

    def row(self) -> str:
        cells = [
            ", ".join(f"{count} {name}" for name, count in counts.most_common())
            for counts in (self.tried, self.happened)
        ]
        return f"| {self.kind} | {cells[0]} | {cells[1]} |"


@dataclass(frozen=True)
class Budget:
    """How long, and how many times, a campaign may try."""

    seconds: float = 1e9
    count: int = 10**9

    def rounds(self) -> Iterator[int]:
        end = time.monotonic() + self.seconds
        for k in range(self.count):
            if time.monotonic() > end:
                return
            yield k


def attempt(*words: object, cwd: Path, preexec: Any = None) -> Ran | None:
    """Run a command; None if it hangs."""
    try:
        return run(*words, cwd=cwd, preexec=preexec)
    except subprocess.TimeoutExpired:
        return None


def begin(*words: object, cwd: Path) -> subprocess.Popen[bytes]:
    """Begin a command, and do not wait for its end."""
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments(*words), cwd=cwd, stdout=pipe, stderr=pipe)


def ended(process: subprocess.Popen[bytes], seconds: float) -> Ran | None:
    """How a command ended; None if it goes on, and is killed."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    return Ran(process.returncode, out.decode(), err.decode())


def complaint(ran: Ran | None, codes: tuple[int, ...] = CODES) -> str | None:
    """What is wrong with how a command ended."""
    if ran is None:
        return HANG
    if ran.code < 0:
        return f"killed by signal {-ran.code}: {ran.err[-300:]}"
    if "Traceback" in ran.err:
        return f"traceback: {ran.err[-600:]}"
    if ran.code not in codes:
        return f"exit code {ran.code}: {ran.err[-300:]}"
    return None


def contents(folder: Path, name: str) -> dict[str, bytes]:
    """The output of this name, its witness, and temporary files of either that were left."""
    pattern = re.compile(rf"{name}(\.witness)?|\.{name}.*")
    names = [entry for entry in os.listdir(folder) if pattern.fullmatch(entry)]
    return {entry: (folder / entry).read_bytes() for entry in names if (folder / entry).is_file()}
