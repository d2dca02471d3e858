"""Files larger than memory: certsvm and its peers, to a true 1 % of the optimum.

Text is generated: rows of `text` have 80 values in 200,000 columns, whose frequencies fall as those
of words do, weighted as by tf-idf, of length one; rows of `table` have 50 values in 50 columns, of
which the last 40 are noise. Labels follow a random weight vector, and one in twenty is wrong. There
is no intercept, and the loss is the hinge.

certsvm proves its 1 %. The others prove nothing, so they are told: their J after each pass is
compared with a lower bound of certsvm's, and the time is that of the passes until it is within 1 %,
without that of computing J. Vowpal Wabbit makes steps of plain SGD that fall with the number of
rows seen (--sgd --power_t 1 --initial_t 1000), the best of five settings that were tried on 30 MB
of text; SGDClassifier averages. `prepare` is the conversion to each program's own format. Memory is
the peak of the process; certsvm is given a limit. Each line is one run.

    python -m benchmarks.streams --scratch FOLDER --gigabytes 1 --blocktrain PATH --vw PATH

`--blocktrain` is the folder of liblinear-cdblock (`blocktrain` and `blockspliter`, of Yu et al.
2010), `--vw` a folder where Python finds the package vowpalwabbit. Without them, they are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import markdown
from certsvm.files.block_file import BlockFile

CHUNK, MOST_PASSES, BLOCKS = 20_000, 15, 40
WORDS, PER_ROW, FIRST_WORD = 200_000, 80, 100_000
FIELDS, NOISE = 50, 40
WITHIN = 1.01
VW_STEPS = ("--sgd", "--power_t", 1, "--initial_t", 1000)


class Done(NamedTuple):
    """What came of a process: seconds, peak memory in MB, and output."""

    seconds: float
    peak: float
    output: str


class Data(NamedTuple):
    """A generated set: text, and the file that certsvm trains from."""

    text: Path
    blocks: Path
    n_rows: int
    n_columns: int


def _text_rows(rng: np.random.Generator, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Columns and values: one word of each of ranges that grow as frequencies fall."""
    edges = np.arange(PER_ROW + 1) + np.geomspace(1, WORDS - PER_ROW, PER_ROW + 1).astype(int) - 1
    words = rng.integers(edges[:-1], edges[1:], size=(n, PER_ROW))
    values = rng.exponential(size=words.shape) * np.log1p(words) + 0.1
    return FIRST_WORD + words, values / np.linalg.norm(values, axis=1, keepdims=True)


def _table_rows(rng: np.random.Generator, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.broadcast_to(10 + np.arange(FIELDS), (n, FIELDS)), rng.random((n, FIELDS))


def generate(path: Path, kind: str, size: int) -> int:
    """Write text of about so many bytes; return the number of rows."""
    rng = np.random.default_rng(0)
    rows, digits = (_text_rows, 6) if kind == "text" else (_table_rows, 2)
    w = rng.standard_normal(FIRST_WORD + WORDS)
    if kind == "table":
        w[10 + FIELDS - NOISE :] = 0.0
    n_rows = 0
    with path.open("wb") as file:
        while file.tell() < size:
            columns, values = rows(rng, CHUNK)
            numbers = np.clip(np.rint(values * 1e4).astype(int), 1, 9999)
            score = (w[columns] * numbers).sum(axis=1)
            # A random weight vector has no reason to cut the table in halves.
            positive = (score > (np.median(score))) != (rng.random(CHUNK) < 0.05)
            file.write(_lines(positive, columns, digits, numbers))
            n_rows += CHUNK
    return n_rows


def _lines(positive: NDArray[Any], columns: NDArray[Any], digits: int, numbers: Any) -> bytes:
    """Lines of fixed width: `+1 dddddd:0.dddd ...`."""
    n, k = numbers.shape
    width = digits + len(":0.dddd ")
    line = np.empty((n, 3 + width * k), dtype=np.uint8)
    line[:, 0] = np.where(positive, ord("+"), ord("-"))
    line[:, 1:3] = np.frombuffer(b"1 ", np.uint8)
    fields = line[:, 3:].reshape(n, k, width)
    for place in range(digits):
        fields[:, :, place] = ord("0") + columns // 10 ** (digits - 1 - place) % 10
    fields[:, :, digits : digits + 3] = np.frombuffer(b":0.", np.uint8)
    for place in range(4):
        fields[:, :, digits + 3 + place] = ord("0") + numbers // 10 ** (3 - place) % 10
    fields[:, :, -1] = ord(" ")
    line[:, -1] = ord("\n")
    return line.tobytes()


def run(*command: object, **options: Any) -> Done:
    """Run a command to its end."""
    began, peak = time.perf_counter(), 0
    with open(options.pop("log"), "w+") as log:
        process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log, **options)
        # What the kernel counts for children begins with the memory of the process that made them.
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            if found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text()):
                peak = int(found[1])
            time.sleep(0.02)
        log.seek(0)
        output = log.read()
    if process.returncode not in (0, 3):
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {output[-500:]}")
    return Done(time.perf_counter() - began, peak / 1e3, output)


def primal(blocks: Path, w: NDArray[Any], C: float) -> float:
    """J(w), in a pass."""
    loss = 0.0
    for X, y, _ in BlockFile(blocks)():
        loss += float(np.maximum(0.0, 1.0 - np.where(y > 0, 1.0, -1.0) * (X @ w)).sum())
    return 0.5 * float(w @ w) + C * loss


def certsvm(data: Data, C: float, tol: float, memory: str, scratch: Path) -> tuple[Done, Any]:
    """A run of certsvm, and what it printed."""
    done = run(
        sys.executable, "-m", "certsvm.cli", "train", data.blocks, "--memory", memory, "--stream",
        "-c", C, "--tol", tol, "--json", "-o", scratch / "model", log=scratch / "log",
    )  # fmt: skip
    return done, json.loads(done.output[done.output.index("{") :])


def cdblock(data: Data, C: float, bound: float, folder: Path, scratch: Path) -> Iterator[Any]:
    """liblinear-cdblock, which prints J of each pass."""
    split = scratch / "split"
    if not split.exists():
        prepared = run(
            folder / "blockspliter", "-S", BLOCKS, "-c", data.text, split, log=scratch / "log"
        )
        yield "prepare", prepared.seconds
    done = run(
        folder / "blocktrain", "-s", 3, "-c", C, "-m", MOST_PASSES, "-e", 1e-9, "-p", "-o", split,
        scratch / "cdblock.model", log=scratch / "log",
    )  # fmt: skip
    seconds = [float(s) for s in re.findall(r"iter \d+ time (\S+)", done.output)]
    values = [float(J) for J in re.findall(r"primal (\S+)", done.output)]
    yield from _reached(values, seconds, bound)
    yield "memory, MB", round(done.peak)


def vowpal_wabbit(data: Data, C: float, bound: float, folder: Path, scratch: Path) -> Iterator[Any]:
    """Vowpal Wabbit, which saves its model after each pass."""
    text, cache, log = scratch / "vw.txt", scratch / "vw.cache", scratch / "log"
    where = {"env": os.environ | {"PYTHONPATH": str(folder)}, "log": log}
    vw = (sys.executable, "-m", "vowpalwabbit", "--quiet", "--noconstant", "-b", 19)
    began = time.perf_counter()
    with text.open("wb") as out:
        subprocess.run(["sed", "s/ / | /", data.text], stdout=out, check=True)
    yield "prepare", time.perf_counter() - began
    done = run(
        *vw, text, *VW_STEPS, "--loss_function", "hinge", "--l2", 1.0 / (C * data.n_rows),
        "--passes", MOST_PASSES, "--holdout_off", "-c", "--cache_file", cache, "--save_per_pass",
        "-f", scratch / "vw.model", **where,
    )  # fmt: skip
    values = []
    for number in range(MOST_PASSES):
        saved, readable = scratch / f"vw.model.{number + 1}", scratch / "vw.readable"
        run(*vw, "-t", "-i", saved, "--readable_model", readable, "/dev/null", **where)
        w = np.zeros(data.n_columns)
        for index, weight in re.findall(r"^(\d+):(\S+)$", readable.read_text(), re.MULTILINE):
            # The names of features are numbers, which count from 1.
            w[int(index) - 1] = float(weight)
        values.append(primal(data.blocks, w, C))
    each = done.seconds / MOST_PASSES
    yield from _reached(values, [each * (i + 1) for i in range(MOST_PASSES)], bound)
    yield "memory, MB", round(done.peak)


def sgd_classifier(data: Data, C: float, bound: float, scratch: Path) -> Iterator[Any]:
    """scikit-learn's SGDClassifier, on the blocks of certsvm."""
    code = (
        "import json, sys, time; from pathlib import Path; from benchmarks.streams import sgd_pass;"
        "sgd_pass(Path(sys.argv[1]), *map(float, sys.argv[2:]))"
    )
    done = run(sys.executable, "-c", code, data.blocks, data.n_rows, C, bound, log=scratch / "log")
    values, seconds = json.loads(done.output.splitlines()[-1])
    yield from _reached(values, seconds, bound)
    yield "memory, MB", round(done.peak)


def sgd_pass(blocks: Path, n_rows: float, C: float, bound: float) -> None:
    """Make passes with SGDClassifier until J is within 1 %; print J and the seconds."""
    from sklearn.linear_model import SGDClassifier

    clf = SGDClassifier(alpha=1.0 / (C * n_rows), fit_intercept=False, average=True, random_state=0)
    values: list[float] = []
    seconds: list[float] = []
    spent = 0.0
    for _ in range(MOST_PASSES):
        began = time.perf_counter()
        for X, y, _ in BlockFile(blocks)():
            clf.partial_fit(X, y, classes=[-1.0, 1.0])
        spent += time.perf_counter() - began
        seconds.append(spent)
        values.append(primal(blocks, clf.coef_[0], C))
        if values[-1] <= WITHIN * bound:
            break
    print(json.dumps([values, seconds]))


def _reached(values: list[float], seconds: list[float], bound: float) -> Iterator[tuple[str, Any]]:
    """The passes and seconds to 1 %, and how far the best J is from the bound."""
    near = [value <= WITHIN * bound for value in values]
    first = near.index(True) if any(near) else None
    yield "passes", f"> {len(values)}" if first is None else first + 1
    yield "seconds", round(seconds[-1] if first is None else seconds[first], 1)
    yield "within", f"{100 * (min(values, default=np.inf) / bound - 1):.2g} %"


def read_twice(path: Path) -> float:
    """Seconds to read a file twice, without doing anything with it."""
    began = time.perf_counter()
    for _ in range(2):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
    return time.perf_counter() - began


def measure(kind: str, gigabytes: float, arguments: Any, scratch: Path) -> list[dict[str, Any]]:
    """All programs on one set."""
    text, blocks = scratch / "data.txt", scratch / "data.arrow"
    n_rows = generate(text, kind, int(gigabytes * 1e9))
    memory = arguments.memory
    converted = run(
        sys.executable, "-m", "certsvm.cli", "convert", text, blocks, "--memory", memory, "-q",
        log=scratch / "log",
    )  # fmt: skip
    data = Data(text, blocks, n_rows, next(iter(BlockFile(blocks)())).X.shape[1])
    facts = {
        "data": kind, "GB": round(text.stat().st_size / 1e9, 1), "rows": n_rows,
        "columns": data.n_columns,
    }  # fmt: skip
    reading, table = read_twice(blocks), []

    def note(C: float, program: str, **found: Any) -> None:
        keys = ("prepare", "passes", "seconds", "within", "memory, MB")
        table.append(facts | {"C": C, "program": program} | {k: found.get(k, "") for k in keys})
        print(table[-1], file=sys.stderr, flush=True)

    for C in arguments.C:
        done, fit = certsvm(data, C, 0.01, memory, scratch)
        gap = f"{100 * fit['certificates'][0]['proved_gap']:.2g} %, proved"
        found = {"passes": fit["passes"][0], "within": gap, "memory, MB": round(done.peak)}
        note(C, f"certsvm --memory {memory}", prepare=round(converted.seconds, 1),
             seconds=round(done.seconds, 1), **found)  # fmt: skip
        tight = certsvm(data, C, 1e-3, memory, scratch)[1]
        bound = tight["certificates"][0]["dual"]
        peers: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
            ("SGDClassifier", sgd_classifier, ())
        ]
        if arguments.blocktrain:
            peers.append(("liblinear-cdblock", cdblock, (arguments.blocktrain,)))
        if arguments.vw:
            peers.append(("Vowpal Wabbit", vowpal_wabbit, (arguments.vw,)))
        for name, peer, more in peers if not arguments.alone else ():
            found = dict(peer(data, C, bound, *more, scratch))
            if "prepare" in found:
                found["prepare"] = round(found["prepare"], 1)
            note(C, name, **found)
    note(0.0, "reading the blocks twice", seconds=round(reading, 1))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for the files")
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1.0])
    parser.add_argument("--kinds", nargs="+", choices=["text", "table"], default=["text", "table"])
    parser.add_argument("--C", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--memory", default="1G", help="limit of certsvm")
    parser.add_argument("--blocktrain", type=Path, help="folder of liblinear-cdblock")
    parser.add_argument("--vw", type=Path, help="folder of the package vowpalwabbit")
    parser.add_argument("--alone", action="store_true", help="certsvm alone")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--name", default="streams", help="name of the table")
    arguments = parser.parse_args()
    table = []
    for gigabytes in arguments.gigabytes:
        for kind in arguments.kinds:
            scratch = arguments.scratch / f"{kind}-{gigabytes:g}"
            scratch.mkdir(parents=True)
            try:
                table += measure(kind, gigabytes, arguments, scratch)
            finally:
                shutil.rmtree(scratch)
    print(markdown.write(arguments.out, arguments.name, __doc__ or "", table))


if __name__ == "__main__":
    main()
