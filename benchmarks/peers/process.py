"""The parent's side of the pipe: start a worker, send requests, kill it when it takes too long."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from benchmarks.peers.adapters import Array

ROOT = Path(__file__).parents[2]
START_SECONDS = 600.0
"""Limit for imports, compilation and copies before the clock runs."""

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class UnavailableError(Exception):
    """The system cannot be used here; the message says why."""


class OutOfTimeError(Exception):
    """No answer came within the limit; the process has been killed."""


@dataclass
class Fit:
    """The outcome of one fit: a weight vector, a failure, or a timeout."""

    seconds: float | None = None
    w: Array | None = None
    memory: int | None = None
    remarks: dict[str, Any] = field(default_factory=dict)
    failed: str | None = None
    exceeded: float | None = None


class Worker:
    """A process with one system and one data set, started at its first fit."""

    def __init__(
        self, python: Path, name: str, data: Path, threads: int, loss: str = "hinge"
    ) -> None:
        self.name = name
        self._python = python
        self._arguments = ["--data", str(data), "--scratch", str(data.parent), "--loss", loss]
        self._threads = threads
        self._log = data.parent / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._unavailable: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def fit(self, C: float, variant: str, setting: float, limit: float) -> Fit:
        """Request a fit; kill the process after ``limit`` seconds."""
        try:
            process = self._started()
            _send(process, {"C": C, "variant": variant, "setting": setting})
            answer = _answer(process, limit)
        except OutOfTimeError:
            self.kill()
            return Fit(exceeded=limit)
        except UnavailableError as error:
            self.kill()
            return Fit(failed=str(error))
        if "failed" in answer:
            return Fit(failed=answer["failed"])
        w = np.load(answer["w"])
        if not np.isfinite(w).all():
            return Fit(failed="the answer is not finite")
        return Fit(answer["seconds"], w, answer["memory"], answer["remarks"])

    def kill(self) -> None:
        """End the process; the next fit starts another."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._unavailable:
            # A worker that failed to start once will fail again.
            raise UnavailableError(self._unavailable)
        if self._process is None:
            self._process = start(
                self._python, self.name, self._threads, self._arguments, log=self._log
            )
            try:
                _answer(self._process, START_SECONDS)
                ready = _answer(self._process, START_SECONDS)
            except OutOfTimeError:
                ready = {"failed": f"not ready after {START_SECONDS:g} s"}
            except UnavailableError as error:
                ready = {"failed": str(error)}
            if "failed" in ready:
                self._unavailable = str(ready["failed"])
                raise UnavailableError(self._unavailable)
        return self._process


def versions(pythons: dict[str, Path]) -> tuple[dict[str, str], dict[str, str]]:
    """The versions of the systems that can be imported; why the others cannot."""
    available, missing = {}, {}
    processes = {name: start(python, name, 1, []) for name, python in pythons.items()}
    for name, process in processes.items():
        try:
            answer = _answer(process, START_SECONDS)
        except (UnavailableError, OutOfTimeError) as error:
            answer = {"failed": str(error)}
        if "version" in answer:
            available[name] = str(answer["version"])
        else:
            missing[name] = str(answer["failed"])
        end(process)
    return available, missing


def start(
    python: Path, name: str, threads: int, arguments: list[str], log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a worker in a session of its own, so that Ctrl-C reaches us alone."""
    environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads))
    inherited = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    # Another environment must not import from ours.
    same = str(python) == sys.executable
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *(inherited if same else [])])
    command = [str(python), "-m", "benchmarks.peers.worker", name, "--threads", str(threads)]
    with open(log or os.devnull, "ab") as errors:
        return subprocess.Popen(
            command + arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            bufsize=0, env=environment, start_new_session=True,
        )  # fmt: skip


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and close its pipes."""
    process.kill()
    _pipe(process.stdin).close()
    _pipe(process.stdout).close()
    process.wait()


def _send(process: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    try:
        _pipe(process.stdin).write(json.dumps(request).encode() + b"\n")
    except BrokenPipeError:
        raise UnavailableError(_ended(process)) from None


def _answer(process: subprocess.Popen[bytes], limit: float) -> dict[str, Any]:
    """The next line of JSON. A worker writes whole lines, so a line that has begun is complete."""
    pipe = _pipe(process.stdout)
    until = time.monotonic() + limit
    while not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        if time.monotonic() >= until:
            raise OutOfTimeError(f"no answer in {limit:g} s")
    line = pipe.readline()
    if not line:
        raise UnavailableError(_ended(process))
    answer: dict[str, Any] = json.loads(line)
    return answer


def _ended(process: subprocess.Popen[bytes]) -> str:
    return f"the process ended with status {process.wait()}"


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
