"""A file several times larger than memory: text to blocks to a certificate, in bounded memory.

libsvm text is generated (rows of 40 values in 500 columns, one label in ten wrong), converted, and
used for training with `--memory`. Memory is the peak of the process (VmHWM), interpreter and
libraries included; RLIMIT_DATA enforces a limit. Seconds are of one run each, on the disk of the
temporary folder.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

MEMORY = 360_000_000
ROWS, PER_ROW, COLUMNS = 3_000_000, 40, 500
CHUNK = 100_000

COMMAND = """
import json, re, sys, time
began = time.perf_counter()
from certsvm.cli import main
code = 0
try:
    main()
except SystemExit as end:
    code = end.code or 0
status = open("/proc/self/status").read()
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status).group(1))
print(json.dumps([code, time.perf_counter() - began, peak / 1e3]), file=sys.stderr)
"""


def run(folder: Path | None) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        text, blocks = Path(scratch) / "data.txt", Path(scratch) / "data.arrow"
        generate(text)
        rows = [_measured("convert", text, blocks, "--memory", MEMORY, "--block-size", "8M",
                          "--quiet")]  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
        text.unlink()
        for words in (
            ("--solver", "auto", "-c", 1),
            ("--solver", "auto", "-c", 1, "--tol", 1e-4),
            ("--solver", "auto", "-c", 100),
            ("--solver", "sgd-s", "-c", 1e-3),
            ("--solver", "sgd-m", "-c", 1e-3),
        ):
            rows.append(
                _measured("train", blocks, "--memory", MEMORY, "--json", "-o",
                          Path(scratch) / "m", *words)
            )  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def generate(path: Path) -> None:
    """Write text of fixed width: `+1 ddd:0.d ddd:0.d ...`."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(COLUMNS)
    with path.open("wb") as file:
        for _ in range(ROWS // CHUNK):
            # Ascending columns: one of each run of neighbours. The format wants three digits.
            step = (COLUMNS - 100) // PER_ROW
            columns = np.arange(PER_ROW) * step + rng.integers(step, size=(CHUNK, PER_ROW)) + 100
            tenths = rng.integers(1, 10, size=(CHUNK, PER_ROW))
            score = (w[columns] * tenths).sum(axis=1)
            wrong = rng.random(CHUNK) < 0.1
            positive = (score > 0) != wrong
            line = np.empty((CHUNK, 3 + 8 * PER_ROW), dtype=np.uint8)
            line[:, 0] = np.where(positive, ord("+"), ord("-"))
            line[:, 1:3] = np.frombuffer(b"1 ", np.uint8)
            fields = line[:, 3:].reshape(CHUNK, PER_ROW, 8)
            for place in range(3):
                fields[:, :, place] = ord("0") + columns // 10 ** (2 - place) % 10
            fields[:, :, 3:6] = np.frombuffer(b":0.", np.uint8)
            fields[:, :, 6] = ord("0") + tenths
            fields[:, :, 7] = ord(" ")
            line[:, -1] = ord("\n")
            file.write(line.tobytes())


def _measured(*words: object) -> dict[str, Any]:
    size = os.path.getsize(str(words[1]))
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, words)], capture_output=True, text=True,
        check=False, preexec_fn=_limit,
    )  # fmt: skip
    code, seconds, peak = json.loads(done.stderr.splitlines()[-1])
    result: dict[str, Any] = {
        "what": " ".join(str(w) for w in words if _distinctive(w)),
        "file, MB": round(size / 1e6),
        "memory given, MB": MEMORY // 10**6,
        "memory at most, MB": round(peak),
        "seconds": round(seconds, 1),
        "passes": "",
        "proved": "",
        "exit": code,
    }
    if done.stdout.startswith("{"):
        fit = json.loads(done.stdout)
        result["passes"] = max(fit["passes"])
        result["proved"] = f"{max(c['proved_gap'] for c in fit['certificates']):.2g}"
    elif code:
        result["what"] += ": " + done.stderr.splitlines()[0]
    return result


def _distinctive(word: object) -> bool:
    """Whether a word distinguishes one line of the table from another."""
    return (str(word)[:1] not in "/-" and word not in (MEMORY, "8M")) or word in ("-c", "--tol")


def _limit() -> None:
    # More than the budget: the limit also counts memory that is reserved and never touched.
    resource.setrlimit(resource.RLIMIT_DATA, (2 * MEMORY, 2 * MEMORY))
