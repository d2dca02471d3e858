"""From a file to a certified model: the rate of reading text, and the time of the whole job.

Reading: megabytes of text per second, best of five, in turn, in one process, files in the page
cache. `liblinear` is the whole of `liblinear-train` with a tolerance that ends it after one pass,
so its rate is slightly underestimated.

The whole job: seconds of the commands, best of three, in turn, kernels compiled beforehand:
`certsvm train FILE -c C --tol 0.01`, and `liblinear-train -s 3 -c C FILE` at its default
tolerance. The accuracy of liblinear's model is J against our dual bound.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.datasets import load_svmlight_file

from benchmarks.timing import best_seconds
from certsvm import Model, Problem, Rows
from certsvm.certificates.primal import primal_bound
from certsvm.files import load_liblinear, load_libsvm

NAMES = ("a9a", "w8a", "ijcnn1", "mushrooms", "moneyfx", "news20", "debian", "kdd99")
LIBLINEAR = shutil.which("liblinear-train")


def run(folder: Path | None) -> list[dict[str, Any]]:
    if folder is None:
        print("no data folder given (--data)", file=sys.stderr)
        return []
    if LIBLINEAR is None:
        print("liblinear-train is not installed: left out", file=sys.stderr)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in NAMES:
            file = _plain(folder, name, Path(scratch))
            if file is None:
                print(f"{name} is left out: not in the folder", file=sys.stderr)
                continue
            liblinear = LIBLINEAR if _is_read_by_liblinear(file) else None
            reading = _reading(file, liblinear)
            for C in (0.05, 1.0):
                job = _whole_job(file, C, Path(scratch), liblinear)
                rows.append({"data": name, **reading, "C": C, **job})
                print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _plain(folder: Path, name: str, scratch: Path) -> Path | None:
    if (folder / name).exists():
        return folder / name
    if not (folder / f"{name}.xz").exists():
        return None
    with lzma.open(folder / f"{name}.xz") as packed, (scratch / name).open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return scratch / name


def _is_read_by_liblinear(file: Path) -> bool:
    """Whether it can: it refuses blank lines, which some files have at their end."""
    return LIBLINEAR is not None and not subprocess.run(_one_pass(LIBLINEAR, file)).returncode


def _one_pass(liblinear: str, file: Path) -> list[str]:
    return [liblinear, "-s", "3", "-e", "1e30", "-c", "1e-9", "-q", str(file), os.devnull]


def _reading(file: Path, liblinear: str | None) -> dict[str, Any]:
    megabytes = file.stat().st_size / 1e6
    readers: dict[str, Callable[[], Any]] = {
        "1 thread, MB/s": lambda: load_libsvm(file, n_jobs=1),
        "2 threads, MB/s": lambda: load_libsvm(file, n_jobs=2),
        "scikit-learn, MB/s": lambda: load_svmlight_file(str(file)),
    }
    if liblinear is not None:
        words = _one_pass(liblinear, file)
        readers["liblinear, MB/s"] = lambda: subprocess.run(words, check=True)
    for read in readers.values():
        read()
    best = best_seconds(readers, 5)
    rates: dict[str, Any] = {name: round(megabytes / best[name], 1) for name in best}
    if liblinear is None:
        rates["liblinear, MB/s"] = "refused" if LIBLINEAR else "not installed"
    ratio = best["scikit-learn, MB/s"] / best["2 threads, MB/s"]
    return {"MB": round(megabytes, 1), **rates, "scikit-learn / ours": round(ratio, 1)}


def _whole_job(file: Path, C: float, scratch: Path, liblinear: str | None) -> dict[str, Any]:
    ours, theirs = scratch / "ours", scratch / "theirs"
    train = [sys.executable, "-m", "certsvm.cli", "train", str(file), "-c", str(C)]
    train += ["--tol", "0.01", "-q"]
    jobs: dict[str, Callable[[], Any]] = {
        "certsvm train, s": lambda: subprocess.run([*train, "-o", str(ours)], check=False)
    }
    if liblinear is not None:
        words = [liblinear, "-s", "3", "-c", str(C), "-q", str(file), str(theirs)]
        jobs["liblinear-train, s"] = lambda: subprocess.run(words, check=True)
    for job in jobs.values():
        job()
    best = best_seconds(jobs, 3)
    result: dict[str, Any] = {name: round(seconds, 3) for name, seconds in best.items()}
    certificate = Model.load(ours).certificates[0]
    result["proved"] = f"{certificate.proved_gap:.2%}"
    empty = {"liblinear-train, s": "", "theirs / ours": "", "theirs within": ""}
    if liblinear is None:
        return result | empty
    result["theirs / ours"] = round(best["liblinear-train, s"] / best["certsvm train, s"], 2)
    result["theirs within"] = f"{_accuracy(theirs, file, C, certificate.dual):.2%}"
    return result


def _accuracy(model: Path, file: Path, C: float, dual: float) -> float:
    trained = load_liblinear(model)
    X, y = load_libsvm(file, n_features=trained.n_features)
    problem = Problem(Rows(X), (y == trained.classes[1]) * 2.0 - 1.0, C=C)
    return primal_bound(problem, trained.coef[0].copy()).value / dual - 1.0
